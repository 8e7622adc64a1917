"""One function for many arguments, each a task of its own: fits from several starts, ensembles, scans of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from distributed import Client, as_completed
from rich.progress import track


def map(function: Callable[..., Any], *iterables: Iterable[Any], client: Client, show: bool = True) -> list[Any]:
    """Call a function for each item, on the workers of a cluster.

    Parameters
    ----------
    function : callable
        Takes an item of each iterable.
    *iterables : iterable
        Of equal lengths.
    client : distributed.Client
    show : bool, default True
        Whether a bar shows how many calls are done.

    Returns
    -------
    list
        The results, in the order of the items.

    Raises
    ------
    ValueError
        If there are no iterables, or they have different lengths.
    Exception
        What a call raises. The others are called nevertheless.

    Notes
    -----
    If a worker dies, the calls that it had not done are done by others.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> import tapegrad as tg
    >>> def fit(start):
    ...     return tg.scipy.minimize(lambda x: (x**4 - x**2).sum(), start)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     fits = tg.distributed.map(fit, np.linspace(-1, 1, 4)[:, None], client=client, show=False)
    >>> bool(np.isclose(min(fit.fun for fit in fits), -0.25))
    True
    """
    columns = [list(items) for items in iterables]
    if not columns:
        raise ValueError("map() needs at least one iterable of items")
    if len({len(items) for items in columns}) > 1:
        raise ValueError(
            f"map() got iterables of {', '.join(str(len(items)) for items in columns)} items; give as many in each"
        )
    futures = client.map(function, *columns, pure=False)
    done = as_completed(futures)
    for _ in track(done, f"{len(futures)} calls", total=len(futures)) if show else done:
        pass
    return list(client.gather(futures))
