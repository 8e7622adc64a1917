"""From plain Python functions to machine code, kept on disk: the only part that knows the compiler."""
