"""Functions of neural networks, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.tensor import Tensor

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d", "fractional_max_pool3d", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear", "linear_cross_entropy", "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear", "upsample_nearest"]  # fmt: skip

def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Means of signals over windows, as many of one dimension as asked for, which may overlap."""

def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means of images over windows, as many of two dimensions as asked for, which may overlap."""

def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means of volumes over windows, as many of three dimensions as asked for, which may overlap."""

def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
    """Largest elements of windows, as many as asked for, of signals, of one dimension."""

def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
    """Largest elements of windows, as many as asked for, of images, of two dimensions."""

def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
    """Largest elements of windows, as many as asked for, of volumes, of three dimensions."""

def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid of `grid_sample` by which images are moved, turned and scaled."""

def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, out: Any = ...
) -> Tensor:
    """Set elements to the lower limit of `selu` at random, and keep mean 0 and variance 1 by a scale and a shift."""

def avg_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of signals, of one dimension."""

def avg_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of each window of images, of two dimensions."""

def avg_pool3d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of each window of volumes, of three dimensions."""

def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    out: Any = ...,
) -> Tensor:
    """Normalise each channel over all items and places: :math:`(x - m)/\\sqrt{v + \\epsilon}`, with mean and variance."""

def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None, *, out: Any = ...) -> Tensor:
    """Bilinear forms of pairs of vectors."""

def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Cross entropy of probabilities :math:`p` with truth values :math:`y`: :math:`-y \\log p - (1 - y) \\log(1 - p)`."""

def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Cross entropy of the `sigmoid` of scores with truth values, computed so that nothing overflows."""

def celu(input: Any, alpha: float = 1.0, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Return `input` where it is positive, and :math:`\\alpha (e^{x/\\alpha} - 1)` elsewhere."""

def celu_(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute `celu` in place; recorded where a gradient is wanted."""

def channel_shuffle(input: Any, groups: int, *, out: Any = ...) -> Tensor:
    """Put channels, dimension 1, into another order: the first of each group, then the second of each, and so on."""

def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of signals with kernels, which networks call convolution."""

def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of images with kernels, which networks call convolution."""

def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of volumes with kernels, which networks call convolution."""

def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of signals: the adjoint of a convolution, which makes them larger."""

def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of images: the adjoint of a convolution, which makes them larger."""

def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of volumes: the adjoint of a convolution, which makes them larger."""

def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Of vectors that are alike :math:`1 - \\cos`, of those that are not :math:`\\max(0, \\cos - m)`."""

def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Cosine of the angle between vectors along a dimension: :math:`x \\cdot y / (\\lVert x \\rVert \\lVert y \\rVert)`."""

def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Cross entropy between scores and classes, or between scores and probabilities of classes."""

def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Negative log-likelihood of sequences of classes, over all ways to align them with the steps."""

def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Set elements to zero at random, and divide the others by the probability to stay, which keeps the mean."""

def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of signals, (n, channels, length) or (channels, length)."""

def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of images, (n, channels, height, width)."""

def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of volumes, (n, channels, depth, height, width) or without n."""

def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, and :math:`\\alpha (e^x - 1)` elsewhere."""

def elu_(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute `elu` in place; recorded where a gradient is wanted."""

def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
    *,
    out: Any = ...,
) -> Tensor:
    """Rows of a table that indices choose."""

def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Reduce rows of a table that bags of indices choose: to sums, means or largest elements."""

def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, out: Any = ...
) -> Tensor:
    """`alpha_dropout` of whole channels, which are the second dimension."""

def fold(
    input: Any,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
    *,
    out: Any = ...,
) -> Tensor:
    """Images to which columns are added where `unfold` took them."""

def fractional_max_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Tensor:
    """Largest elements of windows at random places, as of `max_pool2d`."""

def fractional_max_pool3d(
    input: Any,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Tensor:
    """Largest elements of windows at random places, as of `max_pool3d`."""

def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Negative log-likelihood of measurements with a normal distribution: :math:`(\\log v + (x - y)^2/v)/2`."""

def gelu(input: Any, approximate: str = "none") -> Tensor:
    """Return `input` times the probability :math:`\\Phi(x)` that a normally distributed number is less."""

def glu(input: Any, dim: int = -1, *, axis: int = ...) -> Tensor:
    """First half of a tensor, times the `sigmoid` of the second half: :math:`y = a\\, \\sigma(b)`."""

def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Interpolate images or volumes at places that a grid says."""

def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """Normalise over groups of channels of each item."""

def gumbel_softmax(
    logits: Any,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    input2: float = ...,
    axis: int = ...,
) -> Tensor:
    """Probabilities near to a category that is drawn: :math:`\\operatorname{softmax}((x + g)/\\tau)`."""

def hardshrink(input: Any, lambd: float = 0.5, *, out: Any = ...) -> Tensor:
    """Replace elements from ``-lambd`` to `lambd` by 0."""

def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """Return :math:`x/6 + 1/2`, limited to the range from 0 to 1: a `sigmoid` of straight lines."""

def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """Return `input` times its `hardsigmoid`."""

def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limit elements to the range from `min_val` to `max_val`."""

def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute `hardtanh` in place; recorded where a gradient is wanted."""

def hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Distances of pairs that are alike, and :math:`\\max(0, m - x)` for distances of pairs that are not."""

def huber_loss(
    input: Any,
    target: Any,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Any = None,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Half the squares of small differences :math:`d`, and :math:`\\delta (|d| - \\delta/2)` of large ones."""

def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    out: Any = ...,
) -> Tensor:
    """Normalise each channel of each item over its places."""

def interpolate(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Interpolate signals, images or volumes to another size."""

def kl_div(
    input: Any,
    target: Any,
    reduction: str = "mean",
    log_target: bool = False,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Kullback-Leibler divergence of a distribution from a target: :math:`y (\\log y - x)` for logarithms :math:`x`."""

def l1_loss(
    input: Any,
    target: Any,
    reduction: str = "mean",
    weight: Any = None,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Absolute values of the differences."""

def layer_norm(
    input: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-05,
    *,
    out: Any = ...,
) -> Tensor:
    """Normalise over the last dimensions: :math:`(x - m)/\\sqrt{v + \\epsilon}`, with mean and variance."""

def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, and `negative_slope` times `input` elsewhere."""

def leaky_relu_(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Compute `leaky_relu` in place; recorded where a gradient is wanted."""

def linear(input: Any, weight: Any, bias: Any = None, *, out: Any = ...) -> Tensor:
    """Multiply by the transpose of a matrix and add a vector: :math:`Y = X W^T + b`."""

def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Cross entropy of scores that a linear layer computes: `linear`, then `cross_entropy`."""

def local_response_norm(input: Any, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide by :math:`(k + \\alpha \\overline{x^2})^\\beta`, with the mean over neighbouring channels."""

def log_softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None, *, axis: int | None = ...
) -> Tensor:
    """Logarithm of `softmax`: `tapegrad.log_softmax`, whose `dim` may be left out here."""

def logsigmoid(input: Any) -> Tensor:
    """Logarithm of the `sigmoid`, computed so that nothing overflows."""

def lp_pool1d(
    input: Any,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Norm of each window of signals: :math:`(\\sum x^p)^{1/p}`."""

def lp_pool2d(
    input: Any,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Norm of each window of images: :math:`(\\sum x^p)^{1/p}`."""

def lp_pool3d(
    input: Any,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Norm of each window of volumes: :math:`(\\sum x^p)^{1/p}`."""

def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Which of two should be larger, by a margin: :math:`\\max(0, m - y (x_1 - x_2))`."""

def max_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of signals, of one dimension."""

def max_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of images, of two dimensions."""

def max_pool3d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of volumes, of three dimensions."""

def max_unpool1d(
    input: Any,
    indices: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """1-dimensional signals with elements put where indices say, as by `scatter`: what `max_pool1d` lost is 0."""

def max_unpool2d(
    input: Any,
    indices: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """2-dimensional signals with elements put where indices say, as by `scatter`: what `max_pool2d` lost is 0."""

def max_unpool3d(
    input: Any,
    indices: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """3-dimensional signals with elements put where indices say, as by `scatter`: what `max_pool3d` lost is 0."""

def mish(input: Any, inplace: bool = False) -> Tensor:
    """Return `input` times the hyperbolic tangent of its `softplus`."""

def mse_loss(
    input: Any,
    target: Any,
    reduction: str = "mean",
    weight: Any = None,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Squares of the differences; by default their mean, :math:`\\frac{1}{n} \\sum_i (x_i - t_i)^2`."""

def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    *,
    out: Any = ...,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads: `scaled_dot_product_attention` of parts of projected queries, keys and values."""

def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Mean over the classes of :math:`\\max(0, m - x_y + x_j)^p`, for all but the class :math:`y` of an item."""

def multilabel_margin_loss(
    input: Any, target: Any, reduction: str = "mean", *, size_average: bool | None = ..., reduce: bool | None = ...
) -> Tensor:
    """Sum of :math:`\\max(0, 1 - x_i + x_j)` over classes i of an item and classes j of others, over their number."""

def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Mean over the classes of `binary_cross_entropy_with_logits`: of items of which each may be of several classes."""

def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Negative log-likelihood of classes: :math:`-x_t` for an item with the class :math:`t`."""

def normalize(
    input: Any,
    p: float = 2.0,
    dim: int | tuple[int, ...] = 1,
    eps: float = 1e-12,
    *,
    axis: int | tuple[int, ...] = ...,
    out: Any = ...,
) -> Tensor:
    """Divide vectors along a dimension by their norms, or by `eps` where a norm is less."""

def one_hot(input: Any, num_classes: int = -1) -> Tensor:
    """Vectors with 1 at the index of a class, and 0 elsewhere, along a new last dimension."""

def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add elements at the ends of dimensions; negative lengths take elements away."""

def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False, *, keepdims: bool = ..., out: Any = ...
) -> Tensor:
    """Distances between vectors, along the last dimension."""

def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Distances between each two rows of a matrix."""

def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Make images of r = `upscale_factor` times the size of channels: (..., c r^2, h, w) to (..., c, h r, w r)."""

def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """Make channels of pixels, the inverse of `pixel_shuffle`: (..., c, h r, w r) to (..., c r^2, h, w)."""

def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-08,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Negative log-likelihood of counts with a Poisson distribution: :math:`e^x - y x` for logarithms of rates."""

def prelu(input: Any, weight: Any, *, out: Any = ...) -> Tensor:
    """Return `input` where it is positive, and `weight` times `input` elsewhere."""

def relu(input: Any, inplace: bool = False) -> Tensor:
    """Return the larger of `input` and 0."""

def relu6(input: Any, inplace: bool = False) -> Tensor:
    """Limit elements to the range from 0 to 6: :math:`\\min(\\max(x, 0), 6)`."""

def relu_(input: Any, inplace: bool = False) -> Tensor:
    """Compute `relu` in place; recorded where a gradient is wanted."""

def rms_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None, *, out: Any = ...
) -> Tensor:
    """Divide by the root of the mean square over the last dimensions: :math:`x/\\sqrt{\\overline{x^2} + \\epsilon}`."""

def rrelu(
    input: Any,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    inplace: bool = False,
    *,
    out: Any = ...,
) -> Tensor:
    """Return `input` where it is positive, and `input` times a slope elsewhere: a random one for each element."""

def rrelu_(
    input: Any, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False
) -> Tensor:
    """Compute `rrelu` in place; recorded where a gradient is wanted."""

def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Means of values, with weights :math:`\\operatorname{softmax}(q k^T/\\sqrt{e})`."""

def selu(input: Any, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Return :math:`s x` where `input` is positive, and :math:`s \\alpha (e^x - 1)` elsewhere."""

def selu_(input: Any, inplace: bool = False) -> Tensor:
    """Compute `selu` in place; recorded where a gradient is wanted."""

def sigmoid(input: Any, *, out: Any = ...) -> Tensor:
    """Logistic function :math:`1/(1 + e^{-x})`."""

def silu(input: Any, inplace: bool = False) -> Tensor:
    """Return `input` times its `sigmoid`, which is also called swish."""

def smooth_l1_loss(
    input: Any,
    target: Any,
    reduction: str = "mean",
    beta: float = 1.0,
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Absolute values of the differences, less :math:`\\beta/2`; parabolas :math:`d^2/(2 \\beta)` where they are small."""

def soft_margin_loss(
    input: Any, target: Any, reduction: str = "mean", *, size_average: bool | None = ..., reduce: bool | None = ...
) -> Tensor:
    """Logistic loss :math:`\\log(1 + e^{-y x})` of scores with the signs that they should have."""

def softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None, *, axis: int | None = ...
) -> Tensor:
    """Exponentials along a dimension, divided by their sum: `tapegrad.softmax`, whose `dim` may be left out here."""

def softmin(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None, *, axis: int | None = ...
) -> Tensor:
    """`softmax` of the negative elements: the least has the largest share."""

def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return :math:`\\log(1 + e^{\\beta x})/\\beta`, a smooth `relu` of real numbers."""

def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Move elements towards 0 by `lambd`, and those nearer than that to 0."""

def softsign(input: Any) -> Tensor:
    """Return :math:`x/(1 + |x|)`."""

def tanh(input: Any, *, out: Any = ...) -> Tensor:
    """Hyperbolic tangent."""

def tanhshrink(input: Any) -> Tensor:
    """Return `input` less its hyperbolic tangent."""

def threshold(input: Any, threshold: float, value: float, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Replace elements that are not above `threshold` by `value`."""

def threshold_(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Compute `threshold` in place; recorded where a gradient is wanted."""

def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: str = "mean",
    *,
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """Loss of anchors that are not nearer to one vector than to another, by a margin: :math:`\\max(0, m + d_+ - d_-)`."""

def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    size_average: bool | None = ...,
    reduce: bool | None = ...,
) -> Tensor:
    """`triplet_margin_loss` with any distance."""

def unfold(
    input: Any,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
    *,
    out: Any = ...,
) -> Tensor:
    """Blocks of images as columns."""

def upsample(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Interpolate signals, images or volumes: a former name of `interpolate`, which has the parameters."""

def upsample_bilinear(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Interpolate images linearly: a former name of `interpolate` with mode "bilinear" and aligned corners."""

def upsample_nearest(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Repeat elements: a former name of `interpolate` with mode "nearest", which has the parameters."""
