"""Each layer side by side with torch: how it is shown, its state, its result and gradients from the same weights."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

from tests.nn_side_by_side import as_ours, both, compare, copy_state  # noqa: E402  it needs torch


def draw(*shape: int, low: float = -2.0, high: float = 2.0, grad: bool = True) -> Any:
    rng = np.random.default_rng(sum(shape) + 17)
    return torch.tensor(rng.uniform(low, high, shape), requires_grad=grad)


def ints(high: int, *shape: int) -> Any:
    return torch.tensor(np.random.default_rng(3).integers(0, high, shape))


SIGNAL, IMAGE, VOLUME = draw(2, 4, 9), draw(2, 4, 6, 7), draw(1, 2, 4, 4, 5)
X = draw(3, 4)
ACTIVATIONS = [
    "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "ELU", "CELU",
    "SELU", "GLU", "GELU", "Hardshrink", "Softshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softsign", "Tanhshrink",
    "PReLU",
]  # fmt: skip
LAYERS: list[tuple[Any, tuple[Any, ...]]] = [
    *((lambda nn, name=name: getattr(nn, name)(), (X,)) for name in ACTIVATIONS if name != "RReLU"),
    (lambda nn: nn.RReLU(0.1, 0.2).eval(), (X,)),
    (lambda nn: nn.Threshold(0.1, 20), (X,)),
    (lambda nn: nn.Hardtanh(-0.5, 0.75), (X,)),
    (lambda nn: nn.ELU(alpha=0.5), (X,)),
    (lambda nn: nn.GELU("tanh"), (X,)),
    (lambda nn: nn.GELU(approximate="tanh"), (X,)),
    (lambda nn: nn.LeakyReLU(0.2), (X,)),
    (lambda nn: nn.PReLU(4), (X,)),
    (lambda nn: nn.Softplus(2, 3), (X,)),
    (lambda nn: nn.Softmax(dim=1), (X,)),
    (lambda nn: nn.LogSoftmax(-1), (X,)),
    (lambda nn: nn.Softmin(dim=0), (X,)),
    (lambda nn: nn.Softmax2d(), (IMAGE,)),
    (lambda nn: nn.Identity(54, unused=False), (X,)),
    (lambda nn: nn.Linear(4, 5), (X,)),
    (lambda nn: nn.Linear(4, 5, bias=False), (draw(2, 3, 4),)),
    (lambda nn: nn.Bilinear(4, 3, 2), (X, draw(3, 3))),
    (lambda nn: nn.Flatten(), (IMAGE,)),
    (lambda nn: nn.Flatten(0, 1), (IMAGE,)),
    (lambda nn: nn.Unflatten(1, (2, 2)), (IMAGE,)),
    (lambda nn: nn.PixelShuffle(2), (IMAGE,)),
    (lambda nn: nn.PixelUnshuffle(3), (draw(1, 2, 6, 9),)),
    (lambda nn: nn.ChannelShuffle(2), (IMAGE,)),
    (lambda nn: nn.Unfold((2, 3), padding=1), (IMAGE,)),
    (lambda nn: nn.Fold((4, 5), 2), (draw(2, 8, 12),)),
    (lambda nn: nn.Upsample(scale_factor=2), (IMAGE,)),
    (lambda nn: nn.Upsample(size=(4, 5), mode="bilinear", align_corners=True), (IMAGE,)),
    (lambda nn: nn.UpsamplingNearest2d(scale_factor=2), (IMAGE,)),
    (lambda nn: nn.UpsamplingBilinear2d((3, 3)), (IMAGE,)),
    (lambda nn: nn.CosineSimilarity(dim=1), (X, draw(3, 4, low=0.0))),
    (lambda nn: nn.PairwiseDistance(p=3), (X, draw(3, 4, low=0.0))),
    (lambda nn: nn.LocalResponseNorm(2), (IMAGE,)),
    # convolutions
    (lambda nn: nn.Conv1d(4, 6, 3), (SIGNAL,)),
    (lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False), (SIGNAL,)),
    (lambda nn: nn.Conv2d(4, 6, (3, 2), padding=(1, 0)), (IMAGE,)),
    (lambda nn: nn.Conv2d(4, 8, 3, padding="same", groups=4), (IMAGE,)),
    (lambda nn: nn.Conv2d(4, 2, 3, padding="valid"), (IMAGE,)),
    *((lambda nn, mode=mode: nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode=mode), (IMAGE,))
      for mode in ("reflect", "replicate", "circular")),
    (lambda nn: nn.Conv1d(4, 2, 4, padding="same", padding_mode="circular"), (SIGNAL,)),
    (lambda nn: nn.Conv3d(2, 3, 2), (VOLUME,)),
    (lambda nn: nn.ConvTranspose1d(4, 6, 3, stride=2), (SIGNAL,)),
    (lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), (IMAGE,)),
    (lambda nn: nn.ConvTranspose3d(2, 3, 2, bias=False), (VOLUME,)),
    # pools
    (lambda nn: nn.MaxPool1d(3), (SIGNAL,)),
    (lambda nn: nn.MaxPool2d(2), (IMAGE,)),
    (lambda nn: nn.MaxPool2d((2, 3), stride=1, padding=1, return_indices=True), (IMAGE,)),
    (lambda nn: nn.MaxPool3d(2), (VOLUME,)),
    (lambda nn: nn.AvgPool1d(2), (SIGNAL,)),
    (lambda nn: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), (IMAGE,)),
    (lambda nn: nn.AvgPool3d(2), (VOLUME,)),
    (lambda nn: nn.LPPool1d(2, 3), (draw(2, 4, 9, low=0.1),)),
    (lambda nn: nn.LPPool2d(2, 3, stride=1), (draw(2, 4, 6, 7, low=0.1),)),
    (lambda nn: nn.AdaptiveAvgPool1d(4), (SIGNAL,)),
    (lambda nn: nn.AdaptiveAvgPool2d((1, None)), (IMAGE,)),
    (lambda nn: nn.AdaptiveAvgPool3d(2), (VOLUME,)),
    (lambda nn: nn.AdaptiveMaxPool1d(4), (SIGNAL,)),
    (lambda nn: nn.AdaptiveMaxPool2d((2, 3)), (IMAGE,)),
    (lambda nn: nn.AdaptiveMaxPool3d(2), (VOLUME,)),
    (lambda nn: nn.MaxUnpool2d(2), (draw(1, 1, 2, 2), torch.tensor([[[[0, 3], [8, 10]]]]))),
    # padding
    (lambda nn: nn.ZeroPad1d(2), (SIGNAL,)),
    (lambda nn: nn.ZeroPad2d((1, 2, 0, 1)), (IMAGE,)),
    (lambda nn: nn.ZeroPad3d(1), (VOLUME,)),
    (lambda nn: nn.ConstantPad1d(1, 3.5), (SIGNAL,)),
    (lambda nn: nn.ConstantPad2d((1, 2, 0, 1), 3.5), (IMAGE,)),
    (lambda nn: nn.ConstantPad3d(1, -1.0), (VOLUME,)),
    *((lambda nn, kind=kind, n=n: getattr(nn, f"{kind}Pad{n}d")(1), ((SIGNAL, IMAGE, VOLUME)[n - 1],))
      for kind in ("Reflection", "Replication", "Circular") for n in (1, 2, 3)),
    # norms
    (lambda nn: nn.LayerNorm(4), (X,)),
    (lambda nn: nn.LayerNorm((6, 7), eps=0.1, bias=False), (IMAGE,)),
    (lambda nn: nn.LayerNorm([7], elementwise_affine=False), (IMAGE,)),
    (lambda nn: nn.RMSNorm(4), (X,)),
    (lambda nn: nn.RMSNorm((6, 7), eps=0.1), (IMAGE,)),
    (lambda nn: nn.GroupNorm(2, 4), (IMAGE,)),
    (lambda nn: nn.GroupNorm(4, 4, affine=False), (IMAGE,)),
    (lambda nn: nn.BatchNorm1d(4), (X,)),
    (lambda nn: nn.BatchNorm1d(4, momentum=None), (SIGNAL,)),
    (lambda nn: nn.BatchNorm1d(4, bias=False), (SIGNAL,)),
    (lambda nn: nn.BatchNorm2d(4), (IMAGE,)),
    (lambda nn: nn.BatchNorm2d(4).eval(), (IMAGE,)),
    (lambda nn: nn.BatchNorm2d(4, affine=False, track_running_stats=False), (IMAGE,)),
    (lambda nn: nn.BatchNorm3d(2), (VOLUME,)),
    (lambda nn: nn.InstanceNorm1d(4), (SIGNAL,)),
    (lambda nn: nn.InstanceNorm2d(4, affine=True), (IMAGE,)),
    (lambda nn: nn.InstanceNorm2d(4, track_running_stats=True), (IMAGE,)),
    (lambda nn: nn.InstanceNorm3d(2), (VOLUME,)),
    (lambda nn: nn.Dropout(0.3).eval(), (X,)),
    (lambda nn: nn.Dropout(p=1.0), (X,)),
    (lambda nn: nn.Dropout(0.0, inplace=True), (X,)),
    (lambda nn: nn.Dropout2d().eval(), (IMAGE,)),
    (lambda nn: nn.AlphaDropout(0.2).eval(), (X,)),
    (lambda nn: nn.FeatureAlphaDropout(0.2).eval(), (X,)),
    # tables
    (lambda nn: nn.Embedding(7, 3), (ints(7, 4, 2),)),
    (lambda nn: nn.Embedding(7, 3, padding_idx=-1, scale_grad_by_freq=True), (ints(7, 4, 5),)),
    (lambda nn: nn.Embedding(7, 3, max_norm=0.5, norm_type=1.0), (ints(7, 4),)),
    (lambda nn: nn.EmbeddingBag(7, 3), (ints(7, 4, 5),)),
    (lambda nn: nn.EmbeddingBag(7, 3, mode="sum", padding_idx=1), (ints(7, 8), torch.tensor([0, 3, 3]))),
    (lambda nn: nn.EmbeddingBag(7, 3, mode="max"), (ints(7, 4, 5),)),
    # containers
    (lambda nn: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Sequential(nn.Linear(3, 2), nn.ReLU())), (X,)),
]  # fmt: skip
TARGET, LABELS = draw(3, 4, grad=False), torch.tensor([1, 0, 3])
SIGNS = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 1.5], dtype=torch.float64)
SHARES, SCORES = draw(3, 4, low=0.1, high=0.9), draw(3, 4)
LOSSES: list[tuple[Any, tuple[Any, ...]]] = [
    *((lambda nn, name=name, reduction=reduction: getattr(nn, name)(reduction=reduction), args)
      for reduction in ("mean", "sum", "none") for name, args in {
          "L1Loss": (X, TARGET), "MSELoss": (X, TARGET), "SmoothL1Loss": (X, TARGET), "HuberLoss": (X, TARGET),
          "KLDivLoss": (SCORES, TARGET.abs()), "SoftMarginLoss": (X, TARGET.sign()),
          "MultiLabelMarginLoss": (X, torch.tensor([[1, 0, -1, 2], [3, -1, 1, 1], [0, 1, 2, 3]])),
          "NLLLoss": (SCORES, LABELS), "CrossEntropyLoss": (SCORES, LABELS), "BCELoss": (SHARES, (TARGET > 0).double()),
          "BCEWithLogitsLoss": (SCORES, (TARGET > 0).double()), "PoissonNLLLoss": (SCORES, TARGET.abs()),
          "MultiLabelSoftMarginLoss": (SCORES, (TARGET > 0).double()), "GaussianNLLLoss": (X, TARGET, SHARES),
          "HingeEmbeddingLoss": (X, TARGET.sign()), "CosineEmbeddingLoss": (X, SHARES, SIGNS),
          "MarginRankingLoss": (draw(3), draw(3, low=0.0), SIGNS), "MultiMarginLoss": (SCORES, LABELS),
          "TripletMarginLoss": (X, SHARES, TARGET), "TripletMarginWithDistanceLoss": (X, SHARES, TARGET),
      }.items() if not (name == "KLDivLoss" and reduction == "mean")),
    (lambda nn: nn.KLDivLoss(reduction="batchmean", log_target=True), (SCORES, TARGET)),
    (lambda nn: nn.CrossEntropyLoss(ignore_index=1, label_smoothing=0.1), (SCORES, LABELS)),
    (lambda nn: nn.CrossEntropyLoss(), (SCORES, TARGET.softmax(1))),
    (lambda nn: nn.SmoothL1Loss(beta=0.5), (X, TARGET)),
    (lambda nn: nn.HuberLoss("sum", 0.5), (X, TARGET)),
    (lambda nn: nn.TripletMarginLoss(2.0, p=1, swap=True), (X, SHARES, TARGET)),
]  # fmt: skip


def name_of(case: Any) -> str:
    return repr(case[0](torch.nn)).split("\n")[0]


@pytest.mark.parametrize("case", LAYERS, ids=name_of)
def test_layers(case: Any) -> None:
    make, args = case
    ours, theirs = both(make)
    assert ours.training == theirs.training
    rtol = 1e-7 if "Hardsigmoid" in repr(ours) else 1e-10  # PyTorch's sixth is that of single precision
    compare(ours, theirs, *args, rtol=rtol)
    compare(ours, theirs, *args, rtol=rtol)  # running means and the like go on


@pytest.mark.parametrize("case", LOSSES, ids=name_of)
def test_losses(case: Any) -> None:
    make, args = case
    ours, theirs = both(make)
    compare(ours, theirs, *args)


@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"])
def test_weights_of_losses_are_buffers(name: str) -> None:
    ours = getattr(tg.nn, name)(weight=tg.tensor(WEIGHT.numpy()))
    theirs = getattr(torch.nn, name)(weight=WEIGHT)
    assert list(ours.state_dict()) == list(theirs.state_dict()) == ["weight"]
    compare(ours, theirs, SCORES, LABELS)


def test_weights_of_losses_of_truth_values() -> None:
    truth = (TARGET > 0).double()
    ours = tg.nn.BCEWithLogitsLoss(tg.tensor(WEIGHT.numpy()), pos_weight=tg.tensor([2.0, 3.0, 1.0, 0.5]))
    theirs = torch.nn.BCEWithLogitsLoss(WEIGHT, pos_weight=torch.tensor([2.0, 3.0, 1.0, 0.5]).double())
    assert list(ours.state_dict()) == list(theirs.state_dict()) == ["weight", "pos_weight"]
    compare(ours, theirs, SCORES, truth)


def test_ctc_loss() -> None:
    """Through `log_softmax`: PyTorch's gradient of the loss alone is not that of its argument."""
    scores, targets, lengths = draw(6, 2, 4), ints(3, 2, 3), (torch.tensor([6, 5]), torch.tensor([3, 2]))
    ours = tg.tensor(scores.detach().numpy(), requires_grad=True)
    a = tg.nn.CTCLoss(blank=3)(ours.log_softmax(2), *(tg.tensor(own.numpy()) for own in (targets, *lengths)))
    b = torch.nn.CTCLoss(blank=3)(scores.log_softmax(2), targets, *lengths)
    a.backward()
    scores.grad = None
    b.backward()
    np.testing.assert_allclose(a.item(), b.item(), rtol=1e-12)
    np.testing.assert_allclose(ours.grad.numpy(), scores.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("steps", "n", "classes", "longest"), [(30, 4, 5, 9), (3, 2, 3, 0), (7, 3, 3, 6), (4, 1, 3, 600)]
)
def test_ctc_loss_of_sequences_of_other_lengths(steps: int, n: int, classes: int, longest: int) -> None:
    """Also of those that are too short for their classes, of none, and with more states than the kernel takes."""
    rng = np.random.default_rng(0)
    scores, targets = rng.normal(size=(steps, n, classes)), rng.integers(1, classes, (n, max(longest, 1)))
    lengths = [rng.integers(steps // 2, steps + 1, n).tolist(), rng.integers(0, longest + 1, n).tolist()]

    def gradient(m: Any) -> tuple[Any, Any]:
        x = m.tensor(scores, requires_grad=True)
        loss = m.nn.functional.ctc_loss(
            x.log_softmax(-1), m.tensor(targets), *map(tuple, lengths), reduction="sum", zero_infinity=True
        )
        loss.backward()
        return loss.item(), x.grad.numpy()

    (a, ours), (b, theirs) = gradient(tg), gradient(torch)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("shape", "last", "words"), [
    ((0, 1, 3), 1, "log_probs tensor must not be empty"), ((4, 1, 3), 3, "targets must be classes from 0 to 2"),
    ((4, 1, 3), -1, "targets must be classes from 0 to 2"),
    ((1, 1, 3), 1, "Expected input_lengths to have value at most"),
])  # fmt: skip
def test_errors_of_ctc_loss(shape: tuple[int, ...], last: int, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        tg.nn.functional.ctc_loss(tg.zeros(shape), tg.tensor([[1, last]]), (min(2 * shape[0], 4),), (2,))


@pytest.mark.parametrize("older", [{"size_average": False}, {"reduce": False}, {"size_average": True}])
def test_older_arguments_of_losses(older: dict[str, bool]) -> None:
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        ours = tg.nn.MSELoss(**older)
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        theirs = torch.nn.MSELoss(**older)
    assert ours.reduction == theirs.reduction
    compare(ours, theirs, X, TARGET)


@pytest.mark.parametrize("older", [
    {"size_average": False}, {"reduce": False}, {"size_average": True}, {"size_average": False, "reduce": True},
    {"size_average": True, "reduce": False},
])  # fmt: skip
@pytest.mark.parametrize(
    "name", ["mse_loss", "binary_cross_entropy", "nll_loss", "cross_entropy", "triplet_margin_loss"]
)
def test_older_arguments_of_functions(name: str, older: dict[str, bool]) -> None:
    rng = np.random.default_rng(0)
    operands = [rng.uniform(0.1, 0.9, (4, 3)) for _ in range(3 if name.startswith("triplet") else 2)]
    if name in ("nll_loss", "cross_entropy"):
        operands[1] = np.array([0, 2, 1, 1])
    found = []
    for module in (tg, torch):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated") as noted:
            value = getattr(module.nn.functional, name)(*map(module.tensor, operands), **older)
        found.append((np.asarray(value), str(noted[0].message)))
        assert module is torch or noted[0].filename == __file__
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("name", sorted(set(dir(torch.nn)) & set(dir(tg.nn))))
def test_same_names_of_parameters(name: str) -> None:
    import inspect

    ours, theirs = getattr(tg.nn, name), getattr(torch.nn, name)
    if not (isinstance(theirs, type) and issubclass(theirs, torch.nn.Module)) or name in ("LSTM", "GRU", "RNN"):
        return
    if name.startswith("Lazy"):  # they take those of the layer without the first
        return
    fields = getattr(ours, "_fields", None) if "__init__" not in vars(ours) else None
    names = list(fields) if fields else list(inspect.signature(ours.__init__).parameters)[1:]
    assert [one for one in names if one not in ("args", "kwargs")] == [
        one for one in list(inspect.signature(theirs.__init__).parameters)[1:]
        if one not in ("args", "kwargs") and (name, one) not in {("Hardtanh", "min_value"), ("Hardtanh", "max_value")}
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(dir(tg.nn)))
def test_defaults_are_those_of_the_functions(name: str) -> None:
    """Options that are as by default are not passed on."""
    import inspect

    layer = getattr(tg.nn, name)
    if not isinstance(layer, type) or not hasattr(layer, "_function") or not hasattr(layer, "_fields"):
        return
    taken = inspect.signature(getattr(tg.nn.functional, layer._function)).parameters
    empty = inspect.Parameter.empty
    differing = [
        field
        for field, default in layer._fields.items()
        if field in taken and default is not empty and taken[field].default not in (default, empty)
    ]
    assert differing == []


def test_arguments_of_layers() -> None:
    with pytest.raises(TypeError, match=r"Dropout.__init__\(\) got an unexpected keyword argument 'q'"):
        tg.nn.Dropout(q=1)
    with pytest.raises(TypeError, match=r"MaxPool2d.__init__\(\) missing a required argument: 'kernel_size'"):
        tg.nn.MaxPool2d()
    with pytest.raises(TypeError, match=r"Dropout.__init__\(\) too many positional arguments"):
        tg.nn.Dropout(1, 2, 3)
    with pytest.raises(TypeError, match=r"Dropout.__init__\(\) multiple values for argument 'p'"):
        tg.nn.Dropout(1, p=3)


@pytest.mark.parametrize("name", ["Embedding", "EmbeddingBag"])
def test_tables_that_are_there_already(name: str) -> None:
    table = np.arange(12.0).reshape(4, 3)
    ours = getattr(tg.nn, name).from_pretrained(tg.tensor(table), padding_idx=1)
    theirs = getattr(torch.nn, name).from_pretrained(torch.tensor(table), padding_idx=1)
    assert repr(ours) == repr(theirs)
    assert ours.weight.requires_grad == theirs.weight.requires_grad is False
    compare(ours, theirs, torch.tensor([[1, 2], [3, 3]]))
    assert getattr(tg.nn, name).from_pretrained(tg.tensor(table), freeze=False).weight.requires_grad


def test_subclasses_of_layers() -> None:
    class Scaled(tg.nn.MSELoss):
        scale: float

        def __init__(self, scale: float) -> None:
            super().__init__(reduction="sum")
            self.scale = scale

        def forward(self, a: tg.Tensor, b: tg.Tensor) -> tg.Tensor:
            return self.scale * super().forward(a, b)

    assert Scaled(2.0)(tg.ones(3), tg.zeros(3)).item() == 6.0
    assert repr(Scaled(2.0)) == "Scaled()"


LAZY: list[tuple[Any, Any]] = [
    (lambda nn: nn.LazyLinear(5), X),
    (lambda nn: nn.LazyLinear(5, bias=False), draw(2, 3, 4)),
    (lambda nn: nn.LazyConv1d(6, 3), SIGNAL),
    (lambda nn: nn.LazyConv2d(6, kernel_size=3, padding=1), IMAGE),
    (lambda nn: nn.LazyConv3d(2, 2), VOLUME),
    (lambda nn: nn.LazyConvTranspose1d(6, 3), SIGNAL),
    (lambda nn: nn.LazyConvTranspose2d(6, 3, stride=2), IMAGE),
    (lambda nn: nn.LazyConvTranspose3d(2, 2), VOLUME),
    (lambda nn: nn.LazyBatchNorm1d(), X),
    (lambda nn: nn.LazyBatchNorm2d(momentum=0.5), IMAGE),
    (lambda nn: nn.LazyBatchNorm3d(), VOLUME),
    (lambda nn: nn.LazyInstanceNorm1d(affine=True), SIGNAL),
    (lambda nn: nn.LazyInstanceNorm2d(), IMAGE),
    (lambda nn: nn.LazyInstanceNorm3d(), VOLUME),
]


@pytest.mark.parametrize("case", LAZY, ids=name_of)
def test_lazy_layers(case: Any) -> None:
    make, x = case
    ours, theirs = make(tg.nn), make(torch.nn).double()
    assert repr(ours) == repr(theirs)
    params = list(ours.parameters())
    for _ in range(2):
        ours(as_ours(x))
        theirs(x)
    assert repr(ours) == repr(theirs)
    assert type(ours).__name__ == type(theirs).__name__
    assert all(a is b for a, b in zip(ours.parameters(), params, strict=True))
    copy_state(theirs, ours)
    compare(ours, theirs, x)


def test_lazy_layers_keep_mode_dtype_and_hooks() -> None:
    layer, seen = tg.nn.LazyBatchNorm1d().eval().float(), []
    layer.register_forward_hook(lambda *_: seen.append(1))
    layer(tg.ones(2, 3, dtype=tg.float32))
    assert (layer.training, layer.weight.dtype, seen) == (False, tg.float32, [1])
    assert {buffer.dtype.name for buffer in layer.buffers()} == {"float32", "int64"}
    assert layer.weight.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 2), (2, 3, 2, 2)])
def test_dimensions_that_are_not_given(name, shape):
    results = []
    for library in (tg, torch):
        x = library.arange(math.prod(shape), dtype=library.float64).reshape(shape)
        with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated"):
            result = getattr(library.nn.functional, name)(x)
        results.append(result.numpy())
        if name != "softmin":
            for call in (getattr(library, name), getattr(x, name), getattr(library.special, name)):
                with pytest.raises(TypeError, match="missing 1 required positional argument"):
                    call() if call == getattr(x, name) else call(x)
    np.testing.assert_allclose(*results, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("one", [tg, torch], ids=["tapegrad", "torch"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_probabilities_outside_of_0_to_1(one: Any, reduction: str) -> None:
    loss = one.nn.BCELoss(reduction=reduction)
    for values in ([1.5, 0.5], [0.25, -0.5]):
        with pytest.raises(RuntimeError, match=r"^all elements of input should be between 0 and 1"):
            loss(one.tensor(values, requires_grad=True), one.tensor([1.0, 0.0]))
    assert one.isfinite(loss(one.tensor([0.0, 1.0]), one.tensor([1.0, 0.0]))).all()


@pytest.mark.parametrize("one", [tg, torch], ids=["tapegrad", "torch"])
def test_own_losses(one: Any) -> None:
    base = importlib.import_module(f"{one.__name__}.nn.modules.loss")

    class Quartic(base._Loss):
        def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
            super().__init__(size_average, reduce, reduction)

        def forward(self, x: Any) -> Any:
            return (x**4).sum() if self.reduction == "sum" else (x**4).mean()

    x = one.tensor([1.0, 2.0])
    assert (Quartic()(x).item(), Quartic(reduction="sum")(x).item(), repr(Quartic())) == (8.5, 17.0, "Quartic()")
    assert base._WeightedLoss(x).state_dict()["weight"].tolist() == [1.0, 2.0]
