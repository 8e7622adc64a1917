"""Random programs over everything public that also exists in PyTorch, run on both.

`calls` says how each public name is called, `programs` draws and runs programs, `compare` holds the results together,
`known_errors`, `known_values` and `known_slopes` list what semantics.md and kinks.md in docs/understand explain, and
``python -m tests.fuzz --minutes 60`` runs by hand.
"""
