"""The functions that GradBench's evals ask for."""
