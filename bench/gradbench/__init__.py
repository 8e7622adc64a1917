"""Tapegrad as a tool of GradBench (https://gradben.ch): its harness asks for functions, in JSON lines, and checks them.

    ./gradbench run --eval './gradbench repo eval gmm' --tool 'python -m bench.gradbench'

`protocol.py` answers the lines. Each file of `evals/` has the functions of one eval, as a user would write them: a
function over arrays, its derivative by `tapegrad.func`, compiled. `inputs.py` makes inputs of the sizes that GradBench
has, so that `python -m bench.gradbench --times` measures them without the harness.
"""
