"""The centralised-training loop, the worker pools under it, and the scripts that reproduce each table."""

import os

# Threads that wait by spinning make an update ten times slower on a machine that is also busy with something else
# (workers, another run of a sweep). OpenMP reads this when torch is loaded, which the modules below do.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
