"""The centralised-training loop, the worker pools under it, and the scripts that reproduce each table."""
