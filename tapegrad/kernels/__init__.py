"""Kernels: from the rules of a row to compiled loops, and the steps of a sweep that call them."""
