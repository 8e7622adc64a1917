"""Bad calls, as text, on tapegrad and on PyTorch: the same type of error, and the same first words."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# f and d are vectors in single and double precision, i of integers, b of bools, z a complex number, X an image, p a
# dictionary.
DTYPES = """
T.dot(d, f)
T.vdot(d, f)
T.matmul(d, f)
T.mm(d.diag(), f.diag())
T.linalg.cross(d, f)
T.linalg.vecdot(d, f)
T.cdist(d.diag(), f.diag())
T.linalg.vector_norm(d, dtype=T.float32)
T.linalg.vector_norm(d, dtype=T.complex128)
T.linalg.vector_norm(d, dtype=T.int64)
T.norm(d, dtype=T.float32)
F.binary_cross_entropy(f / 4, d / 4)
F.binary_cross_entropy(d / 4, i)
F.cross_entropy(T.ones(2, 3, dtype=T.float64), T.tensor([0, 1]), weight=f)
F.layer_norm(X, (3,), f, f)
F.layer_norm(X, (3,), f)
F.layer_norm(X.float(), (3,), d, d)
F.group_norm(X, 2, f.new_ones(4), f.new_ones(4))
F.group_norm(X.float(), 2, d.new_ones(4), d.new_ones(4))
F.batch_norm(X, f.new_zeros(4), f.new_ones(4))
F.batch_norm(X.float(), d.new_zeros(4), d.new_ones(4))
F.batch_norm(X.float(), d.new_zeros(4), d.new_ones(4), training=True)
F.instance_norm(X.float(), weight=d.new_ones(4), bias=d.new_ones(4))
"""
WRITES = """
b.add_(i)
b.mul_(f)
b.mul_(2)
b.mul_(2.5)
i.div_(i)
i.mul_(f)
i.mul_(d)
"""
NUMBERS = """
float(d)
int(d)
complex(d)
float(T.ones(0))
float(z)
int(z)
[1, 2][d[0]]
[1, 2][i]
"""
MEMBERS = """
p['missing']
p.pop('missing')
p.__setitem__(3, d)
p.get('missing').x
p.__delitem__('missing')
T.nn.ParameterList()(d)
d.to('foo')
d.type('foo')
F.cross_entropy(d, i[:2])
"""

INTEGERS = """
i.uniform_()
i.normal_()
T.lerp(i, i, 0.5)
T.bernoulli(i)
T.randint(2.5, (2,))
~d
T.tensor([[1], 2])
i.mean()
T.tensor([1, 2], requires_grad=True)
i.add_(1.5)
i.div_(2)
i.exp_()
i.pow_(-1)
i.copy_(d).backward()
F.softmax(i, 0)
F.relu(b)
F.layer_norm(i, (3,))
i.logsumexp(0).backward()
T.linalg.norm(i)
T.linalg.inv(i.diag())
i @ d
i // 0
i % 0
i ** -1
d & d
d << 1
-b
b - b
1 - b
b // b
b % b
T.multinomial(i, 1)
T.quantile(i, 0.5)
T.gcd(d, d)
T.nextafter(i, i)
T.complex(i, i)
T.autograd.grad(i.sum(), i)
i.backward()
T.nn.Parameter(i)
T.nn.Embedding(3, 2)(d)
T.frexp(i)
i[d]
i.index_add_(0, T.tensor([0]), d[:1])
i.scatter_(0, T.tensor([0]), d[:1])
"""
COUNTS = """
T.nn.ReLU()(d, d)
T.nn.GELU()(d, 'tanh')
T.nn.MSELoss()(d, d, 'sum')
T.nn.Softmax(0)(d, 0)
T.nn.Linear(3, 2)(d, d)
T.nn.Linear(3, 2)()
T.sin(d, d)
T.sin(d, foo=1)
F.softmax(d, 0, foo=1)
F.linear(d)
F.linear(1, d)
T.nn.Linear(3, 2)(1)
d.backward(1, 2, 3, 4, 5)
"""


def names_of(m: Any) -> dict[str, Any]:
    """Return what a call may use."""
    d = m.tensor([1.0, 2.0, 3.0], dtype=m.float64)
    return {
        "T": m, "F": m.nn.functional, "d": d, "f": d.float(), "i": m.tensor([1, 2, 3]),
        "b": m.tensor([True, False, True]), "z": m.tensor(1 + 2j),
        "X": m.ones(2, 4, 3, dtype=m.float64), "p": m.nn.ParameterDict({"a": d}),
    }  # fmt: skip


def words(message: str) -> list[str]:
    """Return what a message begins with, but for brackets and the library."""
    text = message.splitlines()[0].replace("torch.", "").replace("tapegrad.", "")
    return re.findall(r"[a-z_']+", re.sub(r"\(.*?\)|\[.*?\]", "", text.lower()))[:6]


@pytest.fixture(autouse=True)
def _numbers_are_double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def calls(text: str) -> Any:
    """Return the mark that runs a test for each line."""
    return pytest.mark.parametrize("call", text.strip().splitlines())


def compare(call: str) -> None:
    """Compare the errors of a call."""
    found = []
    for m in (tg, torch):
        with pytest.raises(Exception) as raised:  # noqa: PT011  # of either library
            eval(call, names_of(m))
        found.append(raised.value)
    ours, theirs = found
    assert type(theirs) in type(ours).__mro__, repr(ours)
    if type(theirs) is NotImplementedError:  # it names the kernel
        return
    expected = words(str(theirs))
    assert words(str(ours))[: len(expected)] == expected, (str(ours), str(theirs))


@calls(DTYPES)
def test_two_dtypes(call: str) -> None:
    """Functions that do not promote say so as PyTorch does."""
    compare(call)


@calls(WRITES)
def test_writes_of_other_dtypes(call: str) -> None:
    compare(call)


@calls(NUMBERS)
def test_numbers(call: str) -> None:
    """Tensors that are no number."""
    compare(call)


@calls(INTEGERS)
def test_integers(call: str) -> None:
    """What functions of real numbers do with integers, and functions of integers with real numbers."""
    compare(call)


@calls(COUNTS)
def test_counts_of_arguments(call: str) -> None:
    """Arguments that a function does not have, or that are missing: Python's own words, which PyTorch's differ from."""
    for m in (tg, torch):
        with pytest.raises(TypeError, match="argument"):
            eval(call, names_of(m))


@calls(MEMBERS)
def test_members(call: str) -> None:
    """Parameters that a dictionary does not have."""
    compare(call)


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_results_of_two_dtypes() -> None:
    """What PyTorch computes of two dtypes has its dtype; a bool is an index; real numbers may be complex tensors."""
    for m in (tg, torch):
        d, f = m.tensor([1.0, 2.0], dtype=m.float64), m.tensor([1.5, 2.0], dtype=m.float32)
        for function in (m.nn.functional.huber_loss, m.nn.functional.soft_margin_loss):
            assert function(f, d).dtype == m.float32
            assert function(d, f).dtype == m.float64
        assert m.nn.functional.rms_norm(f, (2,), d).dtype == m.float32
        assert [1, 2][m.tensor(True)] == 2
        assert (float(m.tensor(2 + 0j)), int(m.tensor(2 + 0j))) == (2.0, 2)


def test_dictionaries_of_parameters() -> None:
    """Order, copies and values of `ParameterDict`."""
    found = []
    for m in (tg, torch):
        p = m.nn.ParameterDict({"b": m.ones(1), "a": m.ones(2)})  # of a plain dictionary by name
        q = m.nn.ParameterDict([("b", m.ones(1)), ("a", m.ones(2)), ("number", 3)])
        both = p | m.nn.ParameterDict({"c": m.ones(3)})
        p |= q
        last = q.popitem()
        found.append([
            list(p), list(q), list(reversed(both)), last, [name for name, _ in p.named_parameters()], p["number"],
            list(p.copy()), list(p.fromkeys(["x", "y"], 1)), p.setdefault("z"), p.get("a").requires_grad, len(both),
        ])  # fmt: skip
    assert found[0] == found[1]


def test_bytes_as_other_elements() -> None:
    """Views of another dtype: the same memory, no gradient, and PyTorch's errors."""
    found = []
    for m in (tg, torch):
        x = m.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=m.float32)
        bits = x.view(m.int32)
        bits[0, 0] = 0
        wide = m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True).view(m.int64)
        found.append([bits.tolist(), x.tolist(), wide.tolist(), wide.requires_grad, x.view(m.uint8).tolist()])
        found[-1] += [x.view(m.float64).tolist(), x.view(m.float32) is x, list(x.view(m.complex64).shape)]
        with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2"):
            m.ones(3, dtype=m.float32).view(m.float64)
        with pytest.raises(RuntimeError, match=r"self.dim\(\) cannot be 0 to view"):
            m.ones((), dtype=m.float32).view(m.float64)
    found[1][6] = True  # a new tensor in PyTorch
    assert found[0] == found[1]


def test_instance_norm_of_other_channels() -> None:
    """Without parameters the number of channels does not matter; both warn."""
    for m in (tg, torch):
        with pytest.warns(UserWarning, match="input's size at dim=1 does not match num_features"):
            m.nn.InstanceNorm1d(5)(m.ones(2, 3, 4))
