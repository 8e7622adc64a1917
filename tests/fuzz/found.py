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
    "small integers wrapped around where a factor met them": [
        "v0 = m.rsub(m.tensor(data(16, (1,), 'uint8')), m.tensor(data(332, (2, 1), 'float64')), alpha=-1)",
    ],
    "a bool was subtracted with a factor": [
        "v0 = m.tensor(data(1, (3,), 'float64'))",
        "v1 = m.sub(v0, v0 > 0, alpha=2)",
        "v2 = m.rsub(v0 > 0, v0, alpha=0.5)",
        "v0.sub_(v0 > 0, alpha=2)",
    ],
    "a bool was subtracted in place": [
        "v0 = m.tensor(data(1, (3,), 'float64'))",
        "v1 = v0 > 0",
        "v0.__isub__(v1)",
    ],
    "a sum of bools with a factor was an integer": [
        "v0 = m.tensor(data(156, (3,), 'bool'))",
        "v1 = m.add(v0, v0, alpha=0)",
        "v2 = m.add(v0, ~v0, alpha=-1)",
        "v0.add_(~v0, alpha=2)",
    ],
    "a write had a factor that the result cannot hold": [
        "v0 = m.tensor(data(1, (3,), 'float64'))",
        "v1 = m.tensor(data(2, (3,), 'int64'))",
        "v2 = m.tensor(data(3, (3,), 'uint8'))",
        "v0.add_(v2, alpha=-1)",
        "v1.add_(v1, alpha=0.5)",
    ],
    "the second derivative of a complex variance of equal numbers was 0": [
        "v0 = m.zeros((3, 3), dtype=m.complex128, requires_grad=True)",
        "v1 = m.var(v0, dim=-2, correction=0)",
    ],
    "a complex variance of two numbers with correction 2 was inf": [
        "v0 = m.tensor(data(986, (2, 1), 'float64', 'grid')).to(m.complex128)",
        "v1 = m.var(v0, correction=2)",
    ],
    "a number that a loss broadcasts did not count": [
        "v0 = m.tensor(data(953, (2, 3), 'float32', 'uniform'), requires_grad=True)",
        "v1 = m.tensor(data(280, (), 'float64', 'normal'))",
        "v2 = F.mse_loss(v0, v1, reduction='mean')",
    ],
    "relu lost the sign of a zero": [
        "v0 = m.tensor(data(1, (3,), 'float64')) * -0.0",
        "v1 = 1 / m.relu(v0)",
        "v2 = 1 / v0.relu_()",
    ],
    "a complex quotient that is infinite was multiplied": [
        "v0 = m.tensor(data(1, (3,), 'complex128', 'uniform'), requires_grad=True)",
        "v1 = m.zeros(3, dtype=m.complex128)",
        "v2 = m.addcdiv(v0, v0, v1, value=2.0)",
    ],
    "an integer exponent took precision from a number": [
        "v0 = m.tensor(data(1, (), 'complex128'))",
        "v1 = m.tensor(data(2, (3,), 'int64'))",
        "v2 = m.ldexp(v0, v1)",
        "v3 = m.ldexp(v0.real, v1)",
        "v4 = m.ldexp(v1, v1)",
    ],
    "a power of two overflowed before it met a small number": [
        "v0 = m.tensor(data(1, (2, 9), 'float32'))",
        "v1 = m.ldexp(v0, m.arange(9) * 100 - 400)",
        "v2 = m.ldexp(v0 * 1e-30, m.tensor(200))",
        "v3 = m.ldexp(v0.double() * 1e-300, m.tensor([[3000], [2000]]))",
        "v4 = m.ldexp(v0.cfloat(), m.tensor(200))",
    ],
    "a weight without dimensions was of one dtype only": [
        "v0 = m.tensor(data(52, (2,), 'float32', 'normal'), requires_grad=True)",
        "v1 = m.tensor(data(53, (2,), 'float32', 'normal'))",
        "v2 = m.lerp(v0, v1, m.tensor(0.25, dtype=m.float64))",
        "v3 = m.lerp(v1, v1 * 2, m.tensor(0.25j, dtype=m.complex64))",
    ],
    "what no element is divided by was looked at": [
        "v0 = m.tensor(data(1, (2, 0), 'int64'))",
        "v1 = m.fmod(v0, 0)",
        "v2 = m.remainder(v0, m.zeros((2, 1), dtype=m.int64))",
    ],
    "complex logsumexp of infinite numbers was nan": [
        "v0 = m.tensor(data(1, (2, 3), 'float64')).cdouble() * 0 + 1",
        "v0.__setitem__((0,), -float('inf'))",
        "v0.__setitem__((..., 1), -float('inf'))",
        "v1 = m.logsumexp(v0, 0)",
        "v2 = m.logsumexp(v0, (0, 1))",
        "v3 = m.logsumexp(-v0.real.cdouble(), 1)",
    ],
    "a sum in double precision was taken for one in its own, at lengths that were new": [
        "v0 = m.stack([m.ones((n, 3)).sum(0) for n in range(2, 9)])",
        "v1 = m.ones((9, 3)).sum(0, dtype=m.float64)",
        "v2 = m.stack([m.ones((n, 3)).prod(0) for n in range(2, 9)])",
        "v3 = m.ones((9, 3)).prod(0, dtype=m.float64)",
    ],
    "a mask of bytes without dimensions was an index": [
        "v0 = m.tensor(data(113, (), 'uint8', 'grid'))",
        "v1 = m.zeros((3,))",
        "v2 = v1[v0]",
        "v1.__setitem__((~v0,), 2)",
    ],
    "a product that is not finite was multiplied by 0": [
        "v0 = m.full((2, 2), float('inf'), requires_grad=True)",
        "v1 = m.addmm(m.eye(2), v0, v0, alpha=0)",
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
    "saved complex numbers are written to through a view": [
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
    "log_softmax near 0 is rounded as 1 is": [
        "v0 = m.tensor(data(910, (3, 2), 'float64', 'normal'), requires_grad=True)",
        "v1 = m.flip(v0, (-1,))",
        "v2 = m.mul(v1, v1)",
        "v2.reciprocal_()",
        "v3 = F.log_softmax(v2, -1)",
        "v4 = m.reciprocal(v3)",
    ],
    "PyTorch's sinh overflows early": [
        "v0 = m.full((9,), 709.9, dtype=m.float64, requires_grad=True)",
        "v1 = m.sinh(v0)",
        "v2 = v1**v1",
    ],
    "PyTorch's negation loses the sign of a zero": [
        "v0 = m.zeros(2, 1, 3, dtype=m.complex128)",
        "v1 = m.neg(v0).log2()",
    ],
    "a number that rounding makes zero is written through a view of it": [
        "v0 = m.tensor(data(923, (2, 1), 'complex128', 'normal'), requires_grad=True)",
        "v1 = m.div(v0, v0)",
        "v2 = m.imag(v1)",
        "v1.div_(v2)",
    ],
    "products with infinite cotangents": [
        "v0 = m.tensor(data(924, (2, 3), 'float64', 'uniform'), requires_grad=True)",
        "v1 = v0.prod(dim=1)",
        "v2 = v1 * v1",
        "v2.div_(0)",
    ],
    "the step of nan is written in place": [
        "v0 = m.tensor(data(1, (2, 2), 'float64')) / 0",
        "v0.heaviside_(v0)",
    ],
    "the sign of a nan": [
        "v0 = m.tensor(data(521, (3, 3), 'float32', 'grid'), requires_grad=True)",
        "v1 = m.asin(m.rsqrt(v0))",
        "v2 = m.copysign(v0, (-v0).ldexp(v1))",
    ],
    "a subnormal complex number": [
        "v0 = m.full((2,), complex(-1e-320, 1e-320), dtype=m.complex128)",
        "v1 = m.log1p(v0)",
    ],
    "a loss that is a zero has another sign": [
        "v0 = m.tensor(data(546, (2, 1), 'float32', 'grid'), requires_grad=True)",
        "v1 = F.cross_entropy(v0, m.tensor([0, 0], dtype=m.int64), reduction='none')",
        "v2 = v1.rsqrt()",
        "v1.reciprocal_()",
    ],
    "the larger one of two zeros has another sign": [
        "v0 = m.tensor(data(714, (2, 1, 3, 1), 'float64', 'grid'))",
        "v0.negative_()",
        "v1 = m.clip(v0, m.sinh(m.argmax(v0, dim=3, keepdim=True)), None)",
        "v2 = m.rsqrt(v1)",
    ],
    "a product overflows before it meets a 0": [
        "v0 = m.tensor(data(574, (36,), 'float32', 'uniform')) * 1e3",
        "v0.__setitem__((30,), 0.0)",
        "v1 = v0.prod()",
    ],
    "PyTorch multiplies a slope that is nan by 0": [
        "v0 = m.tensor(data(715, (2, 3), 'float32', 'grid'), requires_grad=True)",
        "v1 = v0.div(v0)",
        "v2 = m.nan_to_num(v1, neginf=0.0)",
        "v3 = v2.square()",
        "v4 = m.addmm(v3 @ v3.mT, v3, v3.mT, alpha=0)",
    ],
    "PyTorch raises 2 to integers": [
        "v0 = m.tensor(data(1, (4,), 'float64'), requires_grad=True)",
        "v1 = m.tensor([-1, 1, 62, 70])",
        "v2 = m.ldexp(v0, v1)",
    ],
    "complex numbers are divided by 0": [
        "v0 = m.tensor(data(765, (3, 2), 'complex128', 'grid'), requires_grad=True)",
        "v1 = m.zeros(2, 3, dtype=m.float64, requires_grad=True)",
        "v2 = m.div(v0, 0.0)",
        "v3 = F.mse_loss(v1, v1 * 0.5 + 1, reduction='sum')",
    ],
    "the eigenvector of one number": [
        "v0 = m.tensor(data(719, (1, 3), 'float64', 'normal'), requires_grad=True)",
        "v1 = m.linalg.eigh(v0 @ v0.mT, UPLO='U').eigenvectors.abs() ** 2",
        "v2 = m.asin(v1)",
    ],
    "infinite weights meet the padding of an image": [
        "v0 = m.full((1, 3), float('inf'))",
        "v1 = F.conv2d(v0.reshape(1, 1, 1, 3), v0.reshape(1, 1, 1, 3), padding=(0, 1), dilation=2)",
    ],
    "PyTorch does not round integers": [
        "v0 = m.tensor(data(841, (), 'int32', 'normal'))",
        "v1 = v0.round(decimals=0)",
    ],
    "a line of which no gradient is wanted explains none": [
        "v0 = m.tensor(data(623, (1, 3), 'float32', 'grid'), requires_grad=True)",
        "v1 = v0.acosh()",
        "v2 = m.as_tensor([0, 1, 0, 1], dtype=m.complex64)",
        "v2.log2_()",
        "v3 = m.var(v2, dim=0, correction=0)",
    ],
    "bools require grad in PyTorch": [
        "v0 = m.tensor(data(365, (2, 1), 'float64', 'uniform'), requires_grad=True)",
        "v1 = v0.T.logical_not()",
        "v1.__setitem__((v1,), m.logsumexp(v0, (0, 1), keepdim=True))",
    ],
    "a sum of products of one integer": [
        "v0 = m.tensor(data(770, (2, 1), 'int16'))",
        "v1 = m.einsum('ij,jl->', v0.T, v0)",
        "v2 = v1 * 2",
    ],
    "complex products overflow": [
        "v0 = m.tensor(data(23, (200, 200), 'complex64', 'uniform'), requires_grad=True)",
        "v1 = v0.prod(dim=-2)",
    ],
    "a part of what was stretched is written to": [
        "v0 = m.eye(3, dtype=m.complex64)",
        "v1 = v0.expand(2, 3, -1).diagonal(0)",
        "v1.nan_to_num_()",
    ],
    "a base of which no gradient is wanted is 0": [
        "v0 = m.tensor(data(371, (3, 2), 'float32', 'uniform'), requires_grad=True)",
        "v1 = m.eye(3, dtype=m.float64)",
        "v2 = F.mse_loss(v0.log1p(), v0, reduction='mean')",
        "v1.pow_(v2)",
    ],
    "a divisor that is nan stands beside nothing": [
        "v0 = m.tensor(data(425, (0, 3), 'float64', 'uniform'), requires_grad=True)",
        "v1 = m.tensor(data(228, (), 'float64', 'grid'), requires_grad=True)",
        "v2 = m.full((), float('nan'), dtype=m.float64)",
        "v3 = m.addcdiv(v0, v1, v2)",
    ],
    "an exponent that is nan stands beside nothing": [
        "v0 = m.tensor(data(403, (0, 2), 'float64', 'grid'), requires_grad=True)",
        "v1 = m.tensor(data(149, (1,), 'float64', 'grid'), requires_grad=True)",
        "v2 = (-m.abs(v1)).log10()",
        "v3 = m.ldexp(v0, v2)",
    ],
    "a remainder by a subnormal number": [
        "v0 = m.full((3, 3), 5e-324, dtype=m.float64)",
        "v1 = m.tensor(data(47, (3, 3), 'float64', 'uniform'), requires_grad=True)",
        "v2 = v1.remainder(v0)",
    ],
    "numbers are equal but for rounding": [
        "v0 = m.tensor(data(815, (3, 2), 'complex64', 'uniform'), requires_grad=True)",
        "v1 = m.clone(v0)",
        "v1.pow_(v0 == v0)",
        "v2 = m.equal(v0, v1)",
    ],
    "tapegrad saved an operand of an operator's product of batches": [
        "v0 = m.tensor(data(139, (2, 1, 3), 'float64', 'normal'), requires_grad=True)",
        "v1 = m.sign(v0).squeeze(1)",
        "v2 = v1 @ v0.mT",
        "v1.cos_()",
    ],
    "a product of infinite complex matrices": [
        "v0 = m.full((2, 1), complex(float('inf'), 0))",
        "v1 = F.linear(v0, v0[:1])",
    ],
    "PyTorch's derivative of real numbers written to complex ones raises": [
        "v0 = m.tensor(data(75, (2,), 'float64', 'uniform'), requires_grad=True)",
        "v1 = m.ones(2, dtype=m.complex64)",
        "v1.__setitem__((...,), v0)",
    ],
    "a remainder that is a zero has another sign": [
        "v0 = m.tensor(data(298, (3,), 'uint8', 'normal'))",
        "v1 = m.remainder(v0, -1.5)",
        "v1.reciprocal_()",
    ],
    "PyTorch wrote before it raised": [
        "v0 = m.tensor(data(659, (2, 1, 3, 1), 'int32', 'grid'))",
        "v1 = v0.reshape(6)",
        "v1.remainder_(v1)",
    ],
    "integers that are stretched have no nan": [
        "v0 = m.tensor(data(9, (2,), 'uint8', 'normal'))",
        "v1 = v0.expand(2, -1)",
        "v1.nan_to_num_()",
    ],
    "a factor of integers has a fraction": [
        "v0 = m.tensor(data(915, (2,), 'int32', 'grid'))",
        "v1 = v0.addcmul(v0, v0, value=0.001)",
    ],
    "a variance of fewer elements than its correction": [
        "v0 = m.tensor(data(13, (2,), 'float32', 'uniform'), requires_grad=True)",
        "v1 = m.var(v0, dim=None, keepdim=False, correction=2)",
        "v2 = m.var(v0.reshape(2, 1), dim=1, correction=2)",
        "v3 = m.var(v0.cfloat(), dim=0, correction=2)",
    ],
    "PyTorch's derivative negates unsigned numbers": [
        "v0 = m.tensor(data(742, (1,), 'uint8', 'normal'))",
        "v1 = m.tensor(data(511, (2, 3, 2), 'float32', 'uniform'), requires_grad=True)",
        "v2 = m.addcdiv(v1, v0, v1, value=-1)",
    ],
    "PyTorch's derivative by a bool raises": [
        "v0 = m.tensor(data(630, (3,), 'float32', 'uniform'), requires_grad=True)",
        "v1 = v0[::3]",
        "v2 = v1.addcdiv(m.logsumexp(v1, dim=0), v0 >= v1)",
    ],
    "PyTorch checks the phase of eigenvectors": [
        "v0 = m.tensor(data(793, (2, 1), 'float64', 'normal'), requires_grad=True)",
        "v1 = v0 * float('inf') * 0",
        "v2 = m.linalg.eigh(m.eye(2, dtype=m.float64) + m.where(v1 == v1, v1, v0 * v0.mT) + 0j)[0]",
        "v3 = m.log1p(m.atanh(v0.hypot(v2)))",
    ],
    "an infinite slope meets the padding of an image": [
        "v0 = m.tensor(data(540, (3, 3), 'float32', 'uniform'), requires_grad=True)",
        "v1 = F.conv2d(v0.reshape(1, 1, 3, 3), v0.reshape(1, 1, 3, 3), padding='same')",
        "v2 = m.exp(v1 * 100)",
    ],
    "slopes of one number at two places cancel": [
        "v0 = m.tensor(data(319, (40000,), 'float64', 'normal'), requires_grad=True)",
        "v1 = m.true_divide(v0, v0)",
        "v2 = m.zeros((), dtype=m.complex64) * m.ones((), dtype=m.complex64, requires_grad=True)",
        "v3 = m.pow(v2, v1.amax())",
    ],
    "a stale view has an operand in the memory that is written to": [
        "v0 = m.tensor(data(49, (3,), 'float64', 'uniform'), requires_grad=True)",
        "v1 = m.tensor(data(377, (3, 3), 'float64', 'uniform'))",
        "v2 = m.movedim(v1, -1, 1)",
        "v3 = v1.movedim(0, 1)",
        "v2.add_(v0, alpha=2)",
        "v3.__isub__(v2)",
    ],
    "the sign of a complex zero": [
        "v0 = m.tensor(data(1, (3,), 'complex128'), requires_grad=True)",
        "v1 = v0 * 0",
        "v2 = m.sgn(v1)",
    ],
}
