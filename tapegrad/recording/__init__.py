"""Recording: plans, their cache, and the compiled way from a call to its entry."""
