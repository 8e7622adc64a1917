"""The fusing compiler: a program's operations as scalar nodes, and these as loops of machine code."""
