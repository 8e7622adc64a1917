"""Forwards: the functions that compute the results of ops, by NumPy or by kernels of ours."""
