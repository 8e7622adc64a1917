"""Functions on several processes and machines, by Dask.distributed: ``pip install tapegrad[distributed]``.

`data_parallel` splits a batch over workers and adds up what they return; `map` calls a function for many arguments.
"""

try:
    import distributed as _distributed  # noqa: F401
    import rich as _rich  # noqa: F401
except ModuleNotFoundError as error:
    message = f"tapegrad.distributed needs {error.name}: pip install 'tapegrad[distributed]'"
    raise ModuleNotFoundError(message, name=error.name) from None

from tapegrad.distributed.ensembles import map
from tapegrad.distributed.parallel import data_parallel, split

__all__ = ["data_parallel", "map", "split"]
