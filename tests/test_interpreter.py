"""The interpreter: the same functions in Python give the same bits, and an access out of bounds is an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tapegrad

ROOT = Path(tapegrad.__file__).parents[1]


def interpreted(program, **variables):
    """Run a program in a process that interprets compiled functions; return what it prints."""
    environment = os.environ | {"TAPEGRAD_INTERPRET": "1", "PYTHONPATH": str(ROOT)} | variables
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


RUN = """
import tapegrad as tg
from tapegrad.sweep import sweep
tg.manual_seed(3)
x, w = tg.randn(7, 5, requires_grad=True), tg.randn(5, requires_grad=True)
h = tg.stack([tg.sin(x * w), tg.exp(x) / (w + 9)])
loss = (h[0, 1:, [0, 2]] * 2).sum() + (h.amax(0) @ w).sum() + tg.cat([h[0], h[1] * h[0]], 1).mean() + (x @ w)[3] ** 3
loss.register_hook(lambda g: g * 2)
loss.backward(retain_graph=True)
(second,) = tg.autograd.grad(loss, w, create_graph=True)
second.sum().backward()
print(loss.item().hex(), [g.item().hex() for g in x.grad.reshape(-1)], [g.item().hex() for g in w.grad])
"""


def test_bits_are_those_of_compiled_code():
    assert interpreted(RUN) == interpreted(RUN, TAPEGRAD_INTERPRET="0") != ""


LARGE = """
import numpy as np, tapegrad as tg
from tapegrad.runtime import blocking
blocking.set_block_size(64)
x, w = tg.from_numpy(np.arange(3000.0).reshape(600, 5) / 1e3), tg.ones(5, requires_grad=True)
x.requires_grad_()
(tg.sin(x * w + 1) * x).sum().backward()
print(x.grad.sum().item().hex(), [g.item().hex() for g in w.grad])
"""


def test_groups_are_interpreted_too():
    assert interpreted(LARGE) == interpreted(LARGE, TAPEGRAD_INTERPRET="0") != ""


BROKEN = """
import numpy as np, tapegrad as tg
from tapegrad.runtime.memory import OutOfBoundsError, watch
from tapegrad.sweep import sweep
from tapegrad.recording import plan
from tapegrad.tape.entries import recorder

kept = []

def product():
    recorder._next_page()  # the last one may bear marks of a walk that did not end
    x = tg.ones(3, requires_grad=True)
    y = tg.sin(x) * x
    kept.append(y)  # and its leaf, which bears a mark too: nothing else may get its record
    return y

def attempt(y):
    try:
        y.sum().backward()
        print("fine")
    except OutOfBoundsError as error:
        print("caught:", error)

attempt(product())
for word, value in ((plan.CALLS, 64), (plan.RESULT_CLASS, 10**6)):
    y = product()
    words = y._node[2]._words
    before, words[word] = words[word], value
    if word == plan.CALLS:
        fused, words[plan.FUSED] = words[plan.FUSED], 0
    attempt(y)
    words[word] = before
words[plan.FUSED] = fused
attempt(product())
workspace = sweep._idle[-1].workspace
memory = np.empty(1024, dtype=np.int64)  # nobody else gets it, who might be watched
freed = watch(memory[:], "an array that is freed")
workspace.state[sweep.ws.EDGES_AT] = freed.ctypes.data
del freed
attempt(product())
"""


def test_what_a_broken_plan_or_a_freed_buffer_would_touch_is_caught():
    lines = interpreted(BROKEN).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["fine", *["caught"] * 2, "fine", "caught"]


def test_a_call_says_what_its_compiled_form_says():
    program = (
        "import tapegrad as tg\n"
        "from tapegrad.recording.native import load\n"
        "from tapegrad.sweep import find\n"
        "import numpy as np\n"
        "f = load(find.find, np.zeros(200, dtype=np.int64), 'find', 'Find.')\n"
        "print(f.__name__, f.__doc__)\n"
        "try: f(retain=1)\n"
        "except TypeError as error: print(error)\n"
        "try: tg.ones(3).matmul(tg.ones(4))\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    assert interpreted(program) == "find Find.\nfind() takes no keyword arguments\nRuntimeError\n"


@pytest.mark.skipif(bool(os.environ.get("TAPEGRAD_INTERPRET")), reason="they exist then")
def test_intrinsics_are_not_for_python_otherwise():
    from tapegrad.compiler.intrinsics import get

    with pytest.raises(TypeError, match=r"get\(\) exists only inside compiled kernels"):
        get(1, 2)
