"""The learning curve of the demo, as a PNG."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter


def draw_curve(path: str, losses: Sequence[float], accuracies: Sequence[float]) -> None:
    """Draw the loss and the test accuracy over the epochs.

    Parameters
    ----------
    path : str
        The PNG.
    losses, accuracies : sequence of float
        One number an epoch.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    epochs = range(1, len(losses) + 1)
    # Not pyplot's: no window, no global state.
    figure = Figure(figsize=(7, 6), dpi=120, layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    above.set_title(f"Learning hand-written digits: {accuracies[-1]:.1%} of the test digits are told right")
    above.semilogy(epochs, losses, "o-", markersize=3.5, color="tab:blue")
    above.set_ylabel("training loss (cross-entropy)")
    below.plot(epochs, accuracies, "o-", markersize=3.5, color="tab:green")
    below.set_ylabel("test accuracy")
    below.yaxis.set_major_formatter(PercentFormatter(1))
    below.set_xlabel("epoch")
    below.set_xlim(0.5, len(losses) + 0.5)
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="png")
