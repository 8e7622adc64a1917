"""What runs beneath everything: locks, threads, memory, and how work on large arrays is divided."""
