"""Layers, losses and containers, with PyTorch's names; `tapegrad.nn` has them all."""

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
