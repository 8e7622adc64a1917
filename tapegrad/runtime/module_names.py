"""PyTorch's names of modules whose contents stand elsewhere here: ``from tapegrad.distributions.normal import Normal``.

Such a module has the names of its home. Nothing is imported before a program asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, cast

# By package: its modules in PyTorch, of which the package itself has the names.
IN_PACKAGES: Final = {
    "autograd": "anomaly_mode grad_mode",
    "distributions": """
        bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exponential fishersnedecor gamma
        generalized_pareto geometric gumbel half_cauchy half_normal inverse_gamma kumaraswamy laplace lkj_cholesky
        log_normal logistic_normal lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal
        negative_binomial normal one_hot_categorical pareto poisson studentT transformed_distribution uniform von_mises
        weibull wishart
    """,
    "nn.modules": "channelshuffle distance flatten fold instancenorm pixelshuffle upsampling",
    "optim": "adadelta adagrad adamax adamw asgd nadam radam rmsprop rprop",
}
_HOMES: Final = {
    "tapegrad._tensor": "tapegrad.tensor",
    "tapegrad.multiprocessing": "multiprocessing",
    **{f"tapegrad.{home}.{name}": f"tapegrad.{home}" for home, names in IN_PACKAGES.items() for name in names.split()},
    "tapegrad.backends.cudnn": "tapegrad.backends:cudnn",
    "tapegrad.cuda.amp": "tapegrad.cuda:amp",
    "tapegrad.distributions.relaxed_bernoulli": "tapegrad.distributions.relaxed",
    "tapegrad.distributions.relaxed_categorical": "tapegrad.distributions.relaxed",
    "tapegrad.utils._pytree": "tapegrad.func.trees",
    "tapegrad.utils.data._utils": "tapegrad.utils.data",
    "tapegrad.utils.data._utils.collate": "tapegrad.utils.data.collate",
    "tapegrad.utils.hooks": "tapegrad.tape.hooks",
    "tapegrad.version": "tapegrad._version",
}


class _Finder:
    """Finds and loads them; no subclass of what importlib.abc has, whose import takes as long as all of this file."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        return ModuleSpec(fullname, cast(Any, self), is_package=True) if fullname in _HOMES else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None  # a plain one

    def exec_module(self, module: ModuleType) -> None:
        home, _, attribute = _HOMES[module.__name__].partition(":")
        names: Any = import_module(home)
        vars(module)["__getattr__"] = partial(getattr, getattr(names, attribute) if attribute else names)


def install() -> None:
    """Let import statements find these modules, if no file has their names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
