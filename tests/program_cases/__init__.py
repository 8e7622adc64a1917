"""Small functions as users write them, and what tracing one must give.

Each is traced with the first of its inputs. `PROGRAM`: a program without guards. `GUARD`: Python depends on values,
hence guards. `ERROR`: a `TracingError` that names the line. In the first two cases the program must agree with eager
for the other inputs, unless a guard has another outcome: a wrong answer is never silent.
"""

from tests.program_cases import derivatives, flow, loops, numpy_arrays, refused, stops, values, writes
from tests.program_cases.case import CASES, ERROR, GUARD, PROGRAM, Case

__all__ = [
    "CASES",
    "ERROR",
    "GUARD",
    "PROGRAM",
    "Case",
    "derivatives",
    "flow",
    "loops",
    "numpy_arrays",
    "refused",
    "stops",
    "values",
    "writes",
]
