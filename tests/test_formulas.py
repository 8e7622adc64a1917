"""The formula of each elementwise op, compiled, computes what the forward does, nan and inf included."""

from __future__ import annotations

import numpy as np
import pytest

from tapegrad.forward.scipy import SciPy
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.op import Op, op_table
from tapegrad.runtime.source_text import evaluated
from tests import checks
from tests.cases import OF_COUNTS, Case
from tests.test_table import extremes

# Forwards that only NumPy or SciPy computes.
NO_FORMULA = {
    "airy_ai",
    "airy_ai_prime",
    "airy_bi",
    "airy_bi_prime",
    "sine_integral",
    "cosine_integral",
    "sinh_integral",
    "cosh_integral",
    "fresnel_s",
    "fresnel_c",
    "bessel_i2",
    "bessel_i2e",
    "bessel_j2",
    "airye_ai",
    "airye_ai_prime",
    "airye_bi",
    "airye_bi_prime",
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "pbwa_value",
    "pbwa_slope",
    "pbdv_value",
    "pbdv_slope",
    "pbvv_value",
    "pbvv_slope",
    "itairy_ai",
    "itairy_bi",
    "itairy_ai_left",
    "itairy_bi_left",
    "itj0",
    "ity0",
    "iti0",
    "itk0",
    "it2j0",
    "it2y0",
    "it2i0",
    "it2k0",
    "expn",
    "jacobi_amplitude",
    "kv_slope",
    "kve_slope",
    "lpmv",
    "lambertw",
    "modfresnel_f_real",
    "modfresnel_f_imag",
    "modfresnel_k_real",
    "modfresnel_k_imag",
    *OF_COUNTS,
    "voigt_dispersion",
    "voigt_slope",
    "cbrt",  # before version 0.66, numba makes a power of it
    "isneginf",
    "isposinf",
    "isreal",
    "logaddexp2",
    "floor_divide",
    "fmod",
    "frac",
    "heaviside",
    "nextafter",
    "remainder",
    "trunc_divide",
}
ELEMENTWISE = [
    op
    for op in op_table.values()
    if op.family in ("unary", "binary", "elementwise")
    and op.name not in NO_FORMULA
    and (op.formula is not None or not isinstance(op.forward, SciPy))
]


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, "float64") for op in ELEMENTWISE] + [(op, "float32") for op in ELEMENTWISE if op.fx],
    ids=lambda value: getattr(value, "name", value),
)
def test_formula(op: Op, dtype: str) -> None:
    assert op.formula is not None
    formula, operands = op.formula, op.operands
    arguments = ", ".join(operands)
    with_names = evaluated(f"lambda {arguments}: formula({arguments})", {"formula": formula})
    ufunc = Function(f"formula-{op.name}", op.forward, formula=with_names).ufunc(dtype)
    points = [Case(op, number).operands(dtype) for number in range(len(op.samples))]
    with np.errstate(all="ignore"):
        for values in [*points, extremes(op, dtype)[0]]:
            expected = np.asarray(op.forward(*values)).astype(dtype)
            found = ufunc(*[np.asarray(value).astype(dtype) for value in values])
            scale = {"float32": 2e-6, "float64": 4e-15}[dtype]
            checks.assert_close([found], [expected], dtype=dtype)
            np.testing.assert_allclose(found, expected, rtol=scale)
