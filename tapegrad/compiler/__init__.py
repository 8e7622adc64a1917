"""From plain Python functions to machine code, which is cached on disk. No other folder knows the compiler."""
