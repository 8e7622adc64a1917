"""The benchmark: the same problems in each tool, checked before they are timed; ``python -m bench``."""
