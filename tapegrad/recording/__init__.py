"""Recording: plans, their cache, and the compiled path from a call to its entry."""
