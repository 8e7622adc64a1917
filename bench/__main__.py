"""One thread for everybody, then the command line."""

import os
import sys

# Read when OpenMP, a BLAS or Numba is loaded, hence set before anything else is imported.
os.environ.update(
    OMP_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    VECLIB_MAXIMUM_THREADS="1",
    NUMEXPR_NUM_THREADS="1",
    NUMBA_NUM_THREADS="1",
)

from bench.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
