"""Random programs over everything public that also exists in PyTorch, run on both.

`calls` says how each public name is called, `programs` draws and runs programs, `compare` holds the results together,
`differences` lists what docs/semantics.md explains, and ``python -m tests.fuzz --minutes 60`` runs by hand.
"""
