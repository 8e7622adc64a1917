"""One thread for what is measured here, then the command line."""

import os
import sys

from bench.processes import thread_variables

# Read when OpenMP, a BLAS or XLA is loaded, hence set before anything else is imported. Processes for other numbers of
# threads are given theirs.
os.environ.update(thread_variables(1))

from bench.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
