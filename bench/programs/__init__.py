"""Workloads for compiled programs: value and derivative beside those written by hand in Numba, and other tools'.

`python -m bench --programs` runs them.
"""
