"""LLVM's IR that the package ships: `python -m tools.shipped` writes it, with `--check` it only compares."""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path

from tapegrad.compiler.assembly import target_machine
from tapegrad.compiler.frontend import lower_together
from tapegrad.compiler.shipped import FILE, text_of_file
from tapegrad.forward.computed import compute
from tapegrad.forward.joined import join
from tapegrad.forward.powers import run_power
from tapegrad.program.entry import FIRST
from tapegrad.program.sharing import run_blocks
from tapegrad.sweep import groups
from tapegrad.sweep.leaf_grads import bind_grads, bind_inputs, commit_grads
from tapegrad.sweep.loop import sweep
from tapegrad.sweep.rule_stops import run_rules

#: What the first program needs, and the first gradient without one.
FUNCTIONS = (
    *FIRST, run_blocks, compute, join, run_power, sweep, bind_grads, bind_inputs, commit_grads, groups.run, run_rules,
)  # fmt: skip


def main() -> int:
    """Write the file, or say whether it is stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.shipped", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is stale")
    check = parser.parse_args().check
    machine, path = target_machine(), Path(FILE)
    text = text_of_file(FUNCTIONS, lower_together(FUNCTIONS, machine), machine)
    if path.exists() and gzip.decompress(path.read_bytes()).decode() == text:
        return 0
    print(f"{'stale' if check else 'written'}: {path.name}")
    if not check:
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return int(check)


if __name__ == "__main__":
    sys.exit(main())
