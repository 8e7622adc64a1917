"""Programs outside of Python: in code that Numba compiles, and as object code for C."""
