"""Programs in which random programs once found a difference from PyTorch, minimised; each was a defect."""

from __future__ import annotations

#: What was wrong, with the lines that showed it.
FOUND: dict[str, list[str]] = {
    "a view without elements was not known as one": [
        "v0 = m.tensor(data(1, (2, 0), 'float64'), requires_grad=True)",
        "v1 = v0[0:2, :]",
        "v1.mul_(2)",
    ],
    "copying what was stretched onto itself was refused": [
        "v0 = m.tensor(data(1, (2, 1), 'float64'))",
        "v1 = (v0 * 2).expand((2, 3))",
        "v1.copy_(v1)",
    ],
    "logsumexp of no complex numbers was refused": [
        "v0 = m.tensor(data(1, (2, 0), 'complex128'), requires_grad=True)",
        "v1 = m.logsumexp(v0, dim=1)",
        "v2 = m.logsumexp(v0, dim=1, keepdim=True)",
    ],
    "H of one complex number did not conjugate it": [
        "v0 = m.tensor(data(1, (), 'complex128'), requires_grad=True)",
        "v1 = v0.H.clone()",
        "v2 = v0.mH.clone()",
    ],
    "what a write in place saved of no elements counted as written over": [
        "v0 = m.tensor(data(1, (2, 0), 'float64'), requires_grad=True)",
        "v1 = v0.sinh()",
        "v1.sin_()",
    ],
    "a write that was refused counted as one": [
        "v0 = m.tensor(data(1, (3,), 'float64'), requires_grad=True)",
        "v1 = m.tensor(data(2, (3,), 'int64'))",
        "v2 = m.atan2(v1, v0)",
        "v1.div_(2.5)",
        "v1.add_(data(1, (4,), 'int64'))",
    ],
    "abs_ of complex numbers was accepted": ["v0 = m.tensor(data(1, (3,), 'complex64'))", "v0.abs_()"],
    "the dtype of a vector without elements was left out by cat": [
        "v0 = m.tensor(data(1, (0,), 'float64'), requires_grad=True)",
        "v1 = m.tensor(data(2, (2, 2), 'float32'), requires_grad=True)",
        "v2 = m.cat([v0, v1], 0)",
        "v3 = m.cat([v0, v1], 0)",
        "v4 = m.cat([v0, v1], 0)",
        "v5 = m.cat([v1.detach(), v0, v1.detach()], 1)",
        "v6 = m.cat([v0, v0], 0)",
    ],
    "addmm took an input of another dtype": [
        "v0 = m.tensor(data(1, (3, 3), 'float64'), requires_grad=True)",
        "v1 = m.addmm(v0.float(), v0, v0)",
    ],
    "copy_ took a source with more dimensions": [
        "v0 = m.tensor(data(1, (3,), 'float64'))",
        "v1 = m.tensor(data(1, (1, 3), 'float64'))",
        "v0.copy_(v1)",
    ],
    "no integers were written to unsigned ones": [
        "v0 = m.tensor(data(1, (3,), 'int64'))",
        "v1 = m.tensor(data(2, (3,), 'uint8'))",
        "v1.add_(v0)",
        "v1.__imul__(v0)",
        "v1.add_(-1)",
        "v1.__setitem__(0, -1)",
    ],
    "the imaginary part of a number, or of a leaf, was no view of it": [
        "v0 = m.tensor(data(1, (3,), 'complex128'), requires_grad=True)",
        "v1 = v0.sum()",
        "v2 = v1.imag",
        "v2.mul_(3)",
        "v3 = m.imag(v0)",
        "v4 = m.imag(v0)",
        "v4.relu_()",
    ],
    "a column was not contiguous": [
        "v0 = m.tensor(data(1, (1, 3), 'float64'))",
        "v1 = v0.t()",
        "v2 = v1.contiguous()",
        "v0.cos_()",
    ],
    "what was stretched to no elements was read-only": [
        "v0 = m.tensor(data(1, (), 'float64'), requires_grad=True)",
        "v1 = (v0 * 2).expand((0, 3))",
        "v1.sin_()",
    ],
    "a float that integers do not hold was converted": [
        "v0 = m.tensor(data(1, (2,), 'uint8'))",
        "v1 = m.full_like(v0, -1.5)",
        "v0.fill_(-1.5)",
    ],
    "bools had no squared distance from numbers": [
        "v0 = m.tensor(data(1, (3,), 'float64'), requires_grad=True)",
        "v1 = F.mse_loss(m.ge(v0, 0), v0 * 0.5)",
        "v2 = F.mse_loss(v0, m.ge(v0, 0))",
    ],
    "a dimension of a tensor without dimensions was not checked by flip": [
        "v0 = m.tensor(data(1, (), 'float64'), requires_grad=True)",
        "v1 = m.flip(v0, (7,))",
    ],
    "what was stretched to no elements was no view of a leaf": [
        "v0 = m.tensor(data(1, (2, 1), 'float64'), requires_grad=True)",
        "v1 = v0.expand((2, 0))",
        "v1.exp_()",
    ],
    "copying a view of a leaf onto itself was accepted": [
        "v0 = m.tensor(data(1, (2, 3), 'float64'), requires_grad=True)",
        "v1 = v0[...]",
        "v1.__setitem__((...,), v1.view_as(v1))",
    ],
    "the diagonal of no elements had no gradient": [
        "v0 = m.tensor(data(1, (2, 1, 3, 0), 'float64'), requires_grad=True)",
        "v1 = m.diagonal(v0, -1)",
    ],
    "complex logsumexp of nothing had a second derivative that was nan": [
        "v0 = m.tensor(data(1, (0, 3), 'complex128'), requires_grad=True)",
        "v1 = m.tensor(data(2, (2, 3), 'complex128'), requires_grad=True)",
        "v2 = F.linear(0.0 - m.logsumexp(v0, dim=0), v1)",
    ],
    "what was written over had a second derivative": [
        "v0 = m.tensor(data(1, (3,), 'float64'), requires_grad=True)",
        "v1 = v0 / 0.0",
        "v1.zero_()",
        "v2 = (v1 + 2).log()",
    ],
    "unsigned integers were raised to a negative power": [
        "v0 = m.tensor(data(1, (3,), 'uint8'))",
        "v1 = v0 ** -1",
    ],
    "the imaginary part of what is not contiguous was not written to": [
        "v0 = m.tensor(data(774, (2, 3), 'complex128', 'uniform'), requires_grad=True)",
        "v1 = m.t(v0).acos()",
        "v2 = m.imag(v1)",
        "v2.add_(v2 * 2)",
    ],
    "a choice between two numbers had not the default dtype": [
        "v0 = m.tensor(data(1, (3,), 'float64'))",
        "v1 = m.where(v0 > 0, 1.0, 2)",
        "v2 = m.where(v0 > 0, 1j, 2)",
    ],
    "a sum of single precision was not computed in double precision": [
        "v0 = m.tensor(data(454, (3,), 'float32'), requires_grad=True)",
        "v1 = v0.sum(-1, dtype=m.float64)",
        "v2 = v0.mean(dtype=m.float64)",
    ],
    "a bool was subtracted in place": [
        "v0 = m.tensor(data(1, (3,), 'float64'))",
        "v1 = v0 > 0",
        "v0.__isub__(v1)",
    ],
}

#: Programs that differ for a reason that docs/semantics.md or docs/kinks.md gives, which is recognised.
EXPLAINED: dict[str, list[str]] = {
    "PyTorch's sums multiply infinite complex numbers by alpha": [
        "v0 = m.full((2,), complex(float('inf'), 1.0))",
        "v1 = v0 + v0",
    ],
    "PyTorch saved what is written to": [
        "v0 = m.tensor(data(1, (2, 3), 'float64'), requires_grad=True)",
        "v1 = v0 * 3",
        "v2 = F.softplus(v1, beta=2)",
        "v1.exp_()",
    ],
    "PyTorch saved complex numbers that are written to through a view": [
        "v0 = m.tensor(data(1, (3, 3), 'complex128'), requires_grad=True)",
        "v1 = m.asin(v0)",
        "v2 = v1.diagonal(-1)",
        "v3 = v1.var()",
        "v2.sin_()",
    ],
    "a tensor is copied onto a view of the same elements": [
        "v0 = m.tensor(data(1, (3,), 'float64'), requires_grad=True)",
        "v1 = v0.sgn() * v0",
        "v2 = m.broadcast_to(v1, (3,))",
        "v3 = m.square(v1)",
        "v1.copy_(v2)",
    ],
    "tapegrad saved an operand of a product of batches, of which PyTorch saves a copy": [
        "v0 = m.tensor(data(1, (3,), 'float64'), requires_grad=True)",
        "v1 = m.tensor(data(2, (2, 1, 3, 2), 'float64')) * 2",
        "v2 = m.matmul(v0, v1)",
        "v1.fill_(2.0)",
    ],
    "an operand of a write is a view of what is written to": [
        "v0 = m.tensor(data(1, (3, 3), 'float64'))",
        "v1 = m.swapdims(v0, 1, 0)",
        "v2 = v1.diagonal(0)",
        "v1.add_(v2)",
    ],
    "PyTorch takes a view for a leaf": [
        "v0 = m.tensor(data(1, (2,), 'float64'))",
        "v1 = m.tensor(data(2, (), 'float64'), requires_grad=True)",
        "v2 = m.permute(v0, (0,))",
        "v0.mul_(v1)",
        "v2.mul_(2)",
    ],
    "what is added up cancels": [
        "v0 = m.tensor(data(1, (5000,), 'float32', 'normal'), requires_grad=True)",
        "v1 = m.atan2(v0, v0)",
    ],
    "a write moves a number past a singularity": [
        "v0 = m.tensor(data(654, (200,), 'float32'), requires_grad=True)",
        "v1 = m.tan(m.asin(v0))",
        "v1.sin_()",
    ],
    "a product of what is not finite": [
        "v0 = m.tensor(data(1, (4,), 'float64'), requires_grad=True)",
        "v1 = m.log2(v0)",
        "v2 = m.prod(v1, dim=0)",
    ],
    "PyTorch saves a padded copy of an image": [
        "v0 = m.tensor(data(388, (3, 2), 'float64', 'uniform'), requires_grad=True)",
        "v1 = v0.detach() * 1",
        "v2 = F.conv2d(v1.reshape(1, 1, 3, 2), v0.reshape(1, 1, 3, 2), padding='same')",
        "v1.sqrt_()",
    ],
    "a derivative that PyTorch refuses, and the program does not take, explains no other": [
        "v0 = m.tensor(data(460, (3, 3), 'float64'), requires_grad=True)",
        "v1 = v0.logit(eps=0.1)",
        "v2 = m.ge(v0, 0).logaddexp(m.ones_like(v1))",
    ],
    "a complex number that is infinite is raised to -1": [
        "v0 = m.tensor(data(929, (), 'int32')) * 0",
        "v1 = m.log2(v0.cfloat())",
        "v2 = v1 ** -1",
        "v1.pow_(-1)",
    ],
    "on a branch cut the sign of a zero decides on slopes, too": [
        "v0 = m.conj(m.full((3,), 0.5 + 0j)).clone().requires_grad_()",
        "v1 = m.acosh(v0)",
    ],
    "a number that is minus infinity is raised to 0.5": [
        "v0 = m.logsumexp(m.tensor(data(75, (0,), 'float32'), requires_grad=True), 0)",
        "v1 = v0 ** 0.5",
        "v0.__ipow__(0.5)",
    ],
    "log_softmax loses digits in single precision": [
        "v0 = m.tensor(data(817, (20000, 2), 'float32', 'grid'), requires_grad=True)",
        "v1 = m.tensor(data(604, (20000, 2), 'int32', 'grid'))",
        "v2 = m.div(v1, v0)",
        "v3 = m.log_softmax(v2, dim=-1)",
        "v4 = v1 / v3",
    ],
    "products with infinite cotangents": [
        "v0 = m.tensor(data(924, (2, 3), 'float64', 'uniform'), requires_grad=True)",
        "v1 = v0.prod(dim=1)",
        "v2 = v1 * v1",
        "v2.div_(0)",
    ],
    "the sign of a complex zero": [
        "v0 = m.tensor(data(1, (3,), 'complex128'), requires_grad=True)",
        "v1 = v0 * 0",
        "v2 = m.sgn(v1)",
    ],
}
