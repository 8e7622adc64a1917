"""Padding: elements added at the ends of the last dimensions."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.modules.layer import Layer
from tapegrad.nn.modules.pooling import repeated

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Layer):
    """Padding of the last `_dims` dimensions; `padding` begins with the last one."""

    _dims = 1
    _mode = "constant"
    padding: Any

    def _setup(self) -> None:
        self.__dict__["padding"] = repeated(self.padding, 2 * self._dims)

    def forward(self, input: Any) -> Any:
        return functional.pad(input, self.padding, self._mode, self.__dict__.get("value"))

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    value: float

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """`pad` by a number, of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ConstantPad1d((1, 0), 9.0)(tg.tensor([[1.0, 2.0]]))
    tensor([[9., 1., 2.]])
    """


class ConstantPad2d(_ConstantPad):
    """`pad` by a number, of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ConstantPad2d(1, 5.0)(tg.zeros(1, 1, 2))
    tensor([[[5., 5., 5., 5.],
             [5., 0., 0., 5.],
             [5., 5., 5., 5.]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """`pad` by a number, of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ConstantPad3d(1, 5.0)(tg.ones(1, 1, 2, 2, 2)).shape
    (1, 1, 4, 4, 4)
    """

    _dims = 3


class ZeroPad1d(_Pad):
    """`pad` by zeros, of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ZeroPad1d((1, 2))(tg.ones(1, 2))
    tensor([[0., 1., 1., 0., 0.]])
    """


class ZeroPad2d(_Pad):
    """`pad` by zeros, of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ZeroPad2d(1)(tg.ones(1, 1, 2, 2)).shape
    (1, 1, 4, 4)
    """

    _dims = 2


class ZeroPad3d(_Pad):
    """`pad` by zeros, of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ZeroPad3d(1)(tg.ones(1, 1, 2, 2, 2)).sum()
    tensor(8.)
    """

    _dims = 3


class ReflectionPad1d(_Pad):
    """`pad` by reflections, of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReflectionPad1d(1)(tg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """`pad` by reflections, of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReflectionPad2d(1)(tg.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[4., 3., 4., 3.],
             [2., 1., 2., 1.],
             [4., 3., 4., 3.],
             [2., 1., 2., 1.]]])
    """

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """`pad` by reflections, of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReflectionPad3d(1)(tg.ones(1, 1, 2, 2, 2)).shape
    (1, 1, 4, 4, 4)
    """

    _dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """`pad` by the elements at the ends, of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReplicationPad1d(1)(tg.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 2., 2.]])
    """

    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """`pad` by the elements at the ends, of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReplicationPad2d(1)(tg.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[1., 1., 2., 2.],
             [1., 1., 2., 2.],
             [3., 3., 4., 4.],
             [3., 3., 4., 4.]]])
    """

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """`pad` by the elements at the ends, of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReplicationPad3d(1)(tg.ones(1, 1, 2, 2, 2)).shape
    (1, 1, 4, 4, 4)
    """

    _dims = 3
    _mode = "replicate"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Any) -> Any:
        least = self._dims + 1
        if input.ndim not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """`pad` by the elements at the other ends, of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.CircularPad1d(1)(tg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """


class CircularPad2d(_CircularPad):
    """`pad` by the elements at the other ends, of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.CircularPad2d(1)(tg.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[4., 3., 4., 3.],
             [2., 1., 2., 1.],
             [4., 3., 4., 3.],
             [2., 1., 2., 1.]]])
    """

    _dims = 2


class CircularPad3d(_CircularPad):
    """`pad` by the elements at the other ends, of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.CircularPad3d(1)(tg.ones(1, 1, 2, 2, 2)).shape
    (1, 1, 4, 4, 4)
    """

    _dims = 3
