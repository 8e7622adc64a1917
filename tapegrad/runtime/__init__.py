"""The ground floor: locks, threads, memory, objects of CPython and NumPy, and how work on large arrays is divided."""
