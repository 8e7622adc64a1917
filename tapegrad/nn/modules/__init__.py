"""Layers, losses and containers, with PyTorch's names; `tapegrad.nn` has them all."""

from sys import modules as _loaded

from tapegrad.nn.modules.activation import *
from tapegrad.nn.modules.adaptive import *
from tapegrad.nn.modules.attention import *
from tapegrad.nn.modules.batchnorm import *
from tapegrad.nn.modules.cells import *
from tapegrad.nn.modules.container import *
from tapegrad.nn.modules.conv import *
from tapegrad.nn.modules.dropout import *
from tapegrad.nn.modules.lazy import *
from tapegrad.nn.modules.linear import *
from tapegrad.nn.modules.loss import *
from tapegrad.nn.modules.margin_loss import *
from tapegrad.nn.modules.module import *
from tapegrad.nn.modules.normalization import *
from tapegrad.nn.modules.padding import *
from tapegrad.nn.modules.piecewise import *
from tapegrad.nn.modules.pooling import *
from tapegrad.nn.modules.rnn import *
from tapegrad.nn.modules.shaping import *
from tapegrad.nn.modules.sparse import *
from tapegrad.nn.modules.transformer import *

# By module in PyTorch: where its other names stand here.
for _module, _others in {
    "activation": "attention piecewise", "batchnorm": "lazy", "conv": "lazy", "linear": "attention lazy",
    "loss": "margin_loss", "normalization": "shaping", "rnn": "cells",
}.items():  # fmt: skip
    for _own in (_loaded[f"{__name__}.{_other}"] for _other in _others.split()):
        vars(_loaded[f"{__name__}.{_module}"]).update({_name: getattr(_own, _name) for _name in _own.__all__})
