"""Safe multi-agent reinforcement learning in driving."""
