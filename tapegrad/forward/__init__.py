"""Forwards: what computes the result of a row, on NumPy or by kernels of ours."""
