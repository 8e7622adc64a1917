"""Calls of functions of signals, images and volumes: texts of a matrix x, in which {n} and {m} are its lengths."""

from __future__ import annotations

_IMAGE, _VOLUME = "x.reshape(1, 1, {n}, {m})", "x.reshape(1, 1, 1, {n}, {m})"
_OPERANDS = ("x", _IMAGE, _VOLUME)
_SIZES = ("min(2, {m})", "(1, min(2, {m}))", "(1, min(2, {n}), 1)")
WINDOWS = {
    name: text
    for n, (operand, size) in enumerate(zip(_OPERANDS, _SIZES, strict=True), 1)
    for name, text in {
        f"avg_pool{n}d": f"F.avg_pool{n}d({operand}, {size}, 1)",
        f"max_pool{n}d": f"F.max_pool{n}d({operand}, {size}, 1)",
        f"adaptive_avg_pool{n}d": f"F.adaptive_avg_pool{n}d({operand}, 2)",
        f"adaptive_max_pool{n}d": f"F.adaptive_max_pool{n}d({operand}, 2)",
        f"lp_pool{n}d": f"F.lp_pool{n}d({operand}, 2, {size})",
        f"max_unpool{n}d": f"F.max_unpool{n}d(*F.max_pool{n}d({operand}, {size}, return_indices=True), {size})",
    }.items()
}
WINDOWS |= {
    "interpolate": f"F.interpolate({_IMAGE}, size=({{n}} + 1, 2), mode='bilinear')",
    "unfold": f"F.unfold({_IMAGE}, (1, min(2, {{m}})))",
    "fold": "F.fold(m.cat([x, x]).reshape(1, 2, -1), (1, {n} * {m} + 1), (1, 2))",
    "embedding_bag": "F.embedding_bag(m.tensor([[0, {n} - 1]]), x)",
    "affine_grid": "F.affine_grid(m.cat([x.reshape(-1)] * 6)[:6].reshape(1, 2, 3), (1, 1, 2, 3), align_corners=False)",
}
NOT_CALLED = {
    "pdist": "PyTorch has no second derivative",
    "grid_sample": "PyTorch has 0 at coordinates that are nan",
    "ctc_loss": "PyTorch's derivative is that of log_softmax, too",
    **dict.fromkeys(("upsample", "upsample_bilinear", "upsample_nearest"), "PyTorch's warn: `interpolate` is called"),
}
