"""Draw a sweep step by step, as an animation: which entry is passed, and the cotangents.

All numbers are those of a real pass, which hooks tell. Run it with the name of the picture:
``python -m docs.figures.sweep docs/figures/sweep.svg``.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import tapegrad as tg
from docs.figures._svg import BLUE, FAINT, GREEN, INK, ORANGE, Picture

SECONDS = 2.5
ROW, TOP = 50, 88


class Entry(NamedTuple):
    """An entry of the tape: its name, what computes it, what its derivative needs, its value and its cotangent."""

    name: str
    call: str
    saved: str
    value: str
    cotangent: str


def numbers(x: Any) -> str:
    """Return numbers with two digits."""
    values = x.tolist()
    return " ".join(f"{value:.2f}" for value in (values if isinstance(values, list) else [values]))


def passed() -> tuple[list[Entry], list[str]]:
    """Run a program and its sweep; return the entries in the order of recording, and the leaf's gradient after each."""
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    wave = x.sin()
    product = wave * x
    total = product.sum()
    seen: dict[str, str] = {}
    values = {"%0": wave, "%1": product, "%2": total}
    for name, value in values.items():
        value.register_hook(lambda ct, name=name: seen.update({name: numbers(ct)}))
    (by_product,) = tg.autograd.grad((wave.detach() * x).sum(), [x])
    total.backward()
    calls = {"%0": ("sin(x)", "x"), "%1": ("mul(%0, x)", "%0, x"), "%2": ("sum(%1)", "")}
    entries = [Entry(name, *calls[name], numbers(values[name]), seen[name]) for name in values]
    assert x.grad is not None
    return entries, ["0.00 0.00", "0.00 0.00", numbers(by_product), numbers(x.grad)]


def draw(picture: Picture, entries: list[Entry], grads: list[str], step: int) -> None:
    """Draw the tape after so many steps of the sweep; the entry that is passed next is the last one not yet passed."""
    at = len(entries) - step
    words = ["the tape after the forward", "seed: the result's cotangent is 1", "mul gives each operand its part",
             "sin adds its part to x.grad", "done: what the entries kept is freed"]  # fmt: skip
    picture.text(16, 26, f"{step}/{len(entries) + 1}  {words[step]}", bold=True)
    for place, heading in ((16, "entry"), (150, "keeps"), (230, "value"), (340, "cotangent")):
        picture.text(place, 54, heading, FAINT)
    grad = grads[min(max(step - 1, 0), len(entries))]
    picture.box(8, TOP - 24, 444, 30, GREEN)
    picture.text(16, TOP - 4, "leaf x")
    picture.text(230, TOP - 4, "1.00 2.00")
    picture.text(340, TOP - 4, grad if step else "", GREEN, bold=True)
    for number, entry in enumerate(entries):
        y = TOP + 20 + number * (ROW - 14)
        is_next, is_passed = number == at and step > 0, number > at
        picture.box(8, y, 444, 30, ORANGE if is_next else FAINT if is_passed else BLUE)
        ink = FAINT if is_passed else INK
        picture.text(16, y + 20, f"{entry.name} {entry.call}", ink)
        picture.text(150, y + 20, "freed" if at < 0 and entry.saved else entry.saved, ink)
        picture.text(230, y + 20, entry.value, ink)
        picture.text(340, y + 20, entry.cotangent if number >= at and step else "", ORANGE if is_next else ink)


def main(path: str) -> None:
    """Draw all steps into a file."""
    entries, grads = passed()
    picture = Picture(460, "A sweep step by step")
    count = len(entries) + 2
    for step in range(count):
        picture.frame(step, count, SECONDS)
        draw(picture, entries, grads, step)
    picture.write(path, frames=True)


if __name__ == "__main__":
    main(sys.argv[1])
