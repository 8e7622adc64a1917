"""Calls of linear algebra: texts of a matrix, or a batch of them, and how they are drawn.

In a text ``x`` is the value, ``a`` has its numbers but for those that are large or nan, and ``A`` is the one matrix of
all its rows; ``P`` is positive definite, ``G`` invertible, ``T`` tall and of full rank, with as many columns as ``x``
has rows (see `prelude.py`). ``{b}``, ``{n}`` and ``{k}`` are the numbers of matrices, rows and columns, ``{p}`` is the
order of a norm. Vectors that are unique up to a phase are seen through absolute values or through a reconstruction.
"""

from __future__ import annotations

import math
import re
from typing import Any

_MATRICES = {"a": "finite(m, x)", "A": "finite(m, x).reshape({b} * {n}, {k})", "P": "definite(m, x)"}
_MATRICES |= {"G": "invertible(m, x)", "T": "tall(m, x)"}
_BATCH, _VOLUME = "a.reshape({b}, {n}, {k})", "a.reshape(1, 1, {b}, {n}, {k})"
_IMAGE = "a.reshape(1, 1, {b} * {n}, {k})"
_EYE = "m.eye({n}).type_as(x)"
_SCALES = "-sizes(G.sum(-1)).type_as(G) * 0.0001"  # below 0: no reflector is singular

#: How each name is called, in one or more ways.
TEXTS: dict[str, tuple[str, ...]] = {
    # Products
    "addbmm": (f"m.addbmm({_EYE}, {_BATCH}, {_BATCH}.mT, beta=0.5, alpha=2)",),
    "baddbmm": (f"m.baddbmm({_EYE}, {_BATCH}, {_BATCH}.mT, beta=2)",),
    "addmv": ("m.addmv(A.sum(1), A, A.sum(0), alpha=0.5)", "m.addmv(A.sum(1), A, A.sum(0), beta=0)"),
    "addr": ("m.addr(A, A.sum(1), A.sum(0), beta=2)",),
    "ger": ("m.ger(A.sum(1), A.sum(0))",),
    "inner": ("m.inner(a, A * 0.5 + 1)",),
    "kron": ("m.kron(A, A[:2] + 1)", "m.kron(a, A.sum(1))"),
    "multi_dot": ("m.linalg.multi_dot([A, A.mH, A])", "m.linalg.multi_dot([A.sum(0), A.mT, A])"),
    "tensordot": ("m.tensordot(A, A, dims=([0], [0]))", "m.tensordot(a, A.mT, 1)", "m.tensordot(a, a, 2)"),
    "cross": tuple(
        f"{name}(m.stack([a, 1 - a, a * 0.5], {dim}), m.stack([a * 2, a, a + 1], {dim}), dim={dim})"
        for name, dim in (("m.cross", -1), ("m.linalg.cross", 0))
    ),
    "vdot": ("m.vdot(a.reshape(-1), a.reshape(-1) * 0.5 + 1)",),
    "vecdot": ("m.linalg.vecdot(a, a * 0.5 + 1)", "m.linalg.vecdot(a, a * 0.5 + 1, dim=0)"),
    "trace": ("m.trace(A)",),
    "matrix_power": ("m.linalg.matrix_power(G, 3)", "m.linalg.matrix_power(G, -2)", "m.matrix_power(P, 0)"),
    "vander": ("m.linalg.vander(a)", "m.linalg.vander(a, N=3)"),
    "conv1d": (f"F.conv1d({_BATCH}, {_BATCH}[:1, :, :2], padding=1)",),
    "conv3d": (f"F.conv3d({_VOLUME}, {_VOLUME}[..., :1, :1, :2])",),
    "conv_transpose1d": (f"F.conv_transpose1d({_BATCH}, {_BATCH}[0][:, None, :2])",),
    "conv_transpose2d": (f"F.conv_transpose2d({_IMAGE}, {_IMAGE}[..., :2, :2], stride=2)",),
    "conv_transpose3d": (f"F.conv_transpose3d({_VOLUME}, {_VOLUME}[..., :1, :1, :2], padding=(0, 0, 1))",),
    # Norms and statistics
    "norm": ("m.norm(x, {p})", "m.norm(x, {p}, dim=-1)", "m.linalg.norm(x, {p}, dim=0)", "m.linalg.norm(a)"),
    "matrix_norm": tuple(
        f"m.linalg.matrix_norm(T, {order})" for order in ("", "'nuc'", "1", "2", "-2", "float('inf')")
    ),
    "cond": tuple(f"m.linalg.cond(G{order})" for order in ("", ", 'fro'", ", 1", ", -2")),
    "dist": ("m.dist(x, x * 0.5 + 1, {p})",),
    "cdist": ("m.cdist(a, a * 0.5 + m.linspace(1, 1.37, {k}), {p})",),
    "renorm": ("m.renorm(x, 2, 0, 1.5)",),
    "cov": ("m.cov(A)", "m.cov(A, correction=0)"),
    "corrcoef": ("m.corrcoef(T.reshape(-1, {n}))",),
    "matrix_rank": ("m.linalg.matrix_rank(T)", "m.linalg.matrix_rank(G * 0)"),
    # Factors
    "cholesky": ("m.linalg.cholesky(P)", "m.linalg.cholesky(P, upper=True)", "m.linalg.cholesky(-P)"),
    "cholesky_ex": ("m.linalg.cholesky_ex(P)[0]", "m.linalg.cholesky_ex(-P)[1]"),
    "cholesky_inverse": ("m.cholesky_inverse(m.linalg.cholesky(P))", "m.cholesky_inverse(m.triu(P), upper=True)"),
    "cholesky_solve": ("m.cholesky_solve(a, m.linalg.cholesky(P))", "m.cholesky_solve(a, m.triu(P), upper=True)"),
    "eig": ("with_vectors(m.linalg.eig(G))", "sizes(m.linalg.eig(G)[1]).sum(-1)"),
    "eigh": ("m.linalg.eigh(P + 0j, UPLO='U')[0]", "sizes(m.linalg.eigh(P)[1])", "with_vectors(m.linalg.eigh(P))"),
    "eigvals": ("(m.linalg.eigvals(G) ** 2).sum(-1)",),
    "eigvalsh": ("m.linalg.eigvalsh(P)", "m.linalg.eigvalsh(P, UPLO='U')"),
    "svd": ("m.linalg.svd(T, False)[1]", "sizes(m.linalg.svd(T, False)[0])", "sizes(m.linalg.svd(T, False)[2])"),
    "svdvals": ("m.linalg.svdvals(T)", "m.linalg.svdvals(T.mT)"),
    "qr": ("m.linalg.qr(T)[0]", "m.linalg.qr(T)[1]", "m.linalg.qr(T.mT)[1].abs()", "m.qr(G)[0] @ m.qr(G)[1]"),
    "lu": ("m.linalg.lu(G)[0]", "m.linalg.lu(G)[1]", "m.linalg.lu(T)[2]"),
    "lu_factor": ("m.linalg.lu_factor(G)[0]", "m.linalg.lu_factor(G)[1]"),
    "lu_factor_ex": ("m.linalg.lu_factor_ex(G)[0]", "m.linalg.lu_factor_ex(G * 0)[2]"),
    "lu_unpack": ("m.lu_unpack(*m.linalg.lu_factor(G))[1]", "m.lu_unpack(*m.linalg.lu_factor(G))[2]"),
    "lu_solve": ("m.linalg.lu_solve(*m.linalg.lu_factor(G), a)", "m.lu_solve(a, *m.linalg.lu_factor(G))"),
    "ldl_factor": ("m.linalg.ldl_factor(P.detach())[0]", "m.linalg.ldl_factor((P - 9 * P[..., :1, :1]).detach())[0]"),
    "ldl_factor_ex": ("m.linalg.ldl_factor_ex(P.detach())[1]",),
    "ldl_solve": ("m.linalg.ldl_solve(*m.linalg.ldl_factor(P.detach()), a.detach())",),
    "householder_product": ("m.linalg.householder_product(T, -sizes(T.sum(-2)).type_as(T) * 0.0001)",),
    "orgqr": (f"m.orgqr(G, {_SCALES})",),
    "ormqr": (f"m.ormqr(G, {_SCALES}, a)", f"m.ormqr(G, {_SCALES}, a.mT, left=False)"),
    # Inverses, solutions, functions
    "det": ("m.linalg.det(G)", "m.det(a @ a.mT)", "m.linalg.det(G * 0)"),
    "slogdet": ("m.linalg.slogdet(G)[1]", "m.slogdet(G)[0]", "m.linalg.slogdet(G * 0)[1]"),
    "logdet": ("m.logdet(G)",),
    "inv": (
        "m.linalg.inv(G)",
        "m.linalg.inv(P)",
        "m.linalg.inv(G * 0)",
        "m.linalg.inv(T)",
        "m.linalg.inv(P * (1 + 0.5j))",
    ),
    "inverse": ("m.inverse(G)", "m.inverse(G * 0)"),
    "inv_ex": ("m.linalg.inv_ex(G)[0]", "m.linalg.inv_ex(G * 0)[1]"),
    "pinv": ("m.linalg.pinv(T)", "m.linalg.pinv(T.mT)", "m.linalg.pinv(P, hermitian=True)", "m.linalg.pinv(G * 0)"),
    "pinverse": ("m.pinverse(G)",),
    "solve": (
        "m.linalg.solve(G, a)",
        "m.linalg.solve(G, a.mT, left=False)",
        "m.linalg.solve(G * 0, a)",
        "m.linalg.solve(first(G), first(a)[:, 0])",
    ),
    "solve_ex": ("m.linalg.solve_ex(G, a)[0]", "m.linalg.solve_ex(G * 0, a)[1]"),
    "solve_triangular": (
        "m.linalg.solve_triangular(G, a, upper=True)",
        "m.linalg.solve_triangular(G, a.mT, upper=False, left=False)",
        "m.linalg.solve_triangular(G * 0.01, a, upper=False, unitriangular=True)",
    ),
    "triangular_solve": ("m.triangular_solve(a, P)[0]", "m.triangular_solve(a, G, False, True)[0]"),
    "lstsq": ("m.linalg.lstsq(T, m.cat([a, a], -2))[0]", "m.linalg.lstsq(G, a)[0]"),
    "tensorinv": ("m.linalg.tensorinv(first(G), ind=1)", "m.linalg.tensorinv(first(G).reshape({n}, 1, {n}), ind=2)"),
    "tensorsolve": ("m.linalg.tensorsolve(first(G), first(a).sum(-1))",),
    "matrix_exp": ("m.linalg.matrix_exp(G * 0.1)", "m.matrix_exp(a @ a.mT * 0.1)"),
    # Elementwise, with other arguments than those have
    "isclose": ("m.isclose(x, x * 0.5 + 1)", "m.isclose(x, x, equal_nan=True)"),
    "frexp": ("m.frexp(x)[0]", "m.frexp(x)[1]"),
    "multigammaln": ("m.special.multigammaln(a.abs() + 1, 3)",),
    "mvlgamma": ("m.mvlgamma(a.abs() + 1, 2)", "m.mvlgamma(x, 2)"),
    "polygamma": ("m.polygamma(2, a.abs() + 0.5)", "m.polygamma(0, x)"),
}


def linear_algebra(draw: Any, name: str) -> str | None:
    """Of real and complex matrices; now and then of other dtypes, which are refused."""

    def fits(value: Any) -> bool:
        small = len(value.shape) >= 2 and max(value.shape[-2:]) <= 8 and math.prod(value.shape) < 200
        return small and (value.kind in "fc" or draw.rng.random() < 0.02)

    x = draw.one(fits)
    if x is None or len(x.shape) < 2 or math.prod(x.shape) >= 200:
        return None
    text = re.sub(r"\b[aAPGT]\b", lambda name: _MATRICES[name[0]], draw.rng.choice(TEXTS[name]))
    lengths = {"{b}": math.prod(x.shape[:-2]), "{n}": x.shape[-2], "{k}": x.shape[-1]}
    for length, number in {**lengths, "{p}": draw.rng.choice([1, 2, 3, "float('inf')"])}.items():
        text = text.replace(length, str(number))
    # What is saved of a result is not what is written to.
    return re.sub(r"\bx\b", x.name, text) + ".clone()"
