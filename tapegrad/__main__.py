"""The command: ``python -m tapegrad`` is the demo, with ``--warmup`` it compiles ahead of time.

The demo trains a network on digits, checks its gradient and prints a tape.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import tapegrad as tg
from tapegrad.compiler import cache, files

if TYPE_CHECKING:
    from rich.console import Console

    from tapegrad import Tensor
    from tapegrad.demo.network import Training

_DIRECTIONS = 5
_INTERRUPTED = 130  # what shells report of a program that Ctrl-C ended
_SESSION = """\
x, y = tg.tensor([1.0, 2.0, 3.0]), tg.tensor([1.0, 3.0, 5.0])
w = tg.tensor(1.0, requires_grad=True)
b = tg.tensor(0.0, requires_grad=True)
loss = ((w * x + b - y) ** 2).mean()
print(loss.tape())
loss.backward()
print(w.grad, b.grad)"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo, or compile ahead of time.

    Parameters
    ----------
    arguments : sequence of str, optional
        The options; default those of the process.

    Returns
    -------
    int
        The exit code: 0, 1 if the gradient check fails or the plot or the cache cannot be written, 130 after Ctrl-C.

    Raises
    ------
    SystemExit
        With code 2 if an option is wrong or a package is missing, 0 after ``--help``.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.warmup is not None:
            return _warm_up(parser, options.warmup)
        if options.plot is not None:
            _require(parser, "matplotlib.figure", "matplotlib")
        _require(parser, "rich.console", "rich")
        return _run(options)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return _INTERRUPTED


# ---- the options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tapegrad",
        description="Train a two-layer network on real hand-written digits, check its gradient "
        "against finite differences, and print the tape of a small expression.",
    )
    add = parser.add_argument
    add("--epochs", type=_epochs, default=30, metavar="N", help="passes over the digits (default: 30)")
    add("--seed", type=_seed, default=0, metavar="N", help="of weights, batches and directions (default: 0)")
    add("--plot", type=_plot, metavar="FILE", help="draw the learning curve into FILE, a .png")
    add(
        "--warmup",
        nargs="*",
        metavar="OP",
        help="no demo: compile the kernels of all operations, or of these, into the cache, for images and clusters",
    )
    return parser


def _epochs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def _plot(text: str) -> str:
    path = Path(text)
    if path.suffix.lower() != ".png":
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .png")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return text


def _require(parser: argparse.ArgumentParser, module: str, package: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        repair = "pip install 'tapegrad[demo]'"
        parser.exit(2, f"{parser.prog}: the demo needs {package}: {repair} ({error})\n")


# ---- compiling ahead of time


def _warm_up(parser: argparse.ArgumentParser, ops: Sequence[str]) -> int:
    from tapegrad.runtime.blocking import cores

    try:
        with _progress() as progress:
            done = tg.warmup(ops or None, processes=cores(), progress=progress)
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 1
    print(f"compiled {done.compiled} functions and found {done.found} in {done.seconds:.1f} s")
    print(f"the cache {done.folder} has {done.nbytes / 1e6:.1f} MB")
    return 0


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], object]]:
    """Show how far the work is: a bar if there is a terminal and rich, else a line for each tenth."""
    try:
        from rich.console import Console
    except ImportError:
        yield _write_tenth
        return
    console = Console()
    if not console.is_interactive:
        yield _write_tenth
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as bars:
        bar = bars.add_task("", total=None)
        yield lambda count, total, name: bars.update(bar, completed=count, total=total, description=name)


def _write_tenth(count: int, total: int, name: str) -> None:
    if count * 10 // total != (count - 1) * 10 // total:
        print(f"compiling {count}/{total}  {name}", flush=True)


# ---- the demo


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    with _compiling_is_told(console):
        training = _train(console, options)
        passed = _check(console, training)
        _show_tape(console)
    if options.plot is not None:
        from tapegrad.demo.curve import draw_curve

        try:
            draw_curve(options.plot, training.losses, training.accuracies)
        except OSError as error:
            sys.stderr.write(f"the learning curve cannot be written: {error}\n")
            return 1
        console.print(f"\nThe learning curve is in {options.plot}", soft_wrap=True)
    return 0 if passed else 1


@contextmanager
def _compiling_is_told(console: Console) -> Iterator[None]:
    from rich.text import Text

    told: list[str] = []

    def tell(name: str) -> None:
        if not told:
            place = files.folder()
            kept = f"kept in {place}" if place else "there is no safe folder to keep them in"
            text = Text(f"compiling kernels for the first time ({kept})\n", "yellow")
            console.print(text, soft_wrap=True)
        told.append(name)

    cache.on_compile.append(tell)
    try:
        yield
    finally:
        cache.on_compile.remove(tell)


def _train(console: Console, options: argparse.Namespace) -> Training:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text  # its style, unlike that of print(), is not the bar's as well

    from tapegrad.demo.network import BATCH, HIDDEN, Training, split_digits

    training = Training(*split_digits(), options.seed)
    console.print(f"tapegrad {tg.__version__} learns hand-written digits", style="bold")
    console.print(f"{len(training.train)} digits to train on, {len(training.test)} to test on")
    count = sum(param.numel() for param in training.params)
    console.print(f"network 64 -> {HIDDEN} (tanh) -> 10, {count} parameters, seed {options.seed}")
    steps = f"{options.epochs} x {training.steps_per_epoch} steps"
    console.print(f"Adam on the cross-entropy of batches of {BATCH}, {steps}\n")
    columns = TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    # Into a pipe goes no bar: it is made of control characters.
    with Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as progress:
        bar = progress.add_task("", total=options.epochs * training.steps_per_epoch)
        for epoch in range(1, options.epochs + 1):
            training.epoch(lambda: progress.advance(bar))
            if epoch == 1:  # not before: kernels may be compiled first, which says so
                console.print(Text("epoch    loss  test accuracy", "bold"))
            console.print(f"{epoch:5}  {training.losses[-1]:.4f}  {training.accuracies[-1]:13.4f}")
    console.print(f"\ntest accuracy      {training.accuracies[-1]:.4f}", style="bold")
    if training.steps:
        speed = training.steps / training.seconds
        console.print(f"steps per second   {speed:<6,.0f} (forward, backward, Adam; without compiling)")
    return training


def _check(console: Console, training: Training) -> bool:
    from tapegrad.demo.check import LIMIT, slopes
    from tapegrad.demo.network import loss_of

    console.print("\nGradient check of the trained loss, along random directions d", style="bold")
    console.print("     gradient . d     (finite difference)     relative error")
    passed = True

    def loss(params: Sequence[Tensor]) -> Tensor:
        return loss_of(params, training.train)

    for slope in slopes(loss, training.params, training.rng, _DIRECTIONS):
        right = slope.error <= LIMIT  # not if it is NaN
        passed &= right
        row = f"{slope.gradient:+17.10e}   {slope.difference:+21.10e}   {slope.error:16.1e}"
        console.print(row if right else row + "  WRONG", style=None if right else "red")
    if passed:
        console.print(f"passed: all relative errors are below {LIMIT:.0e}")
    else:
        console.print(f"FAILED: a relative error is above {LIMIT:.0e}", style="bold red")
    return passed


def _show_tape(console: Console) -> None:
    console.print("\nThe tape of a small expression, and its gradients", style="bold")
    names = {"tg": tg}
    for line in _SESSION.splitlines():
        console.print(f">>> {line}", style="dim" if console.is_terminal else None)
        exec(line, names)  # what is shown is what runs


if __name__ == "__main__":
    sys.exit(main())
