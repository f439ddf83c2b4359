"""torch.nn.functional's names: `import mini.nn.functional as F`.

Nearly all of them are methods of tensors: `F.relu(x)` is `x.relu()`. They are found by name when they are first asked
for, and take their first tensor by PyTorch's name, too. What no method is stands here.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mini.tensor import Tensor
from mini.tensor.argument_check import gate, guard_functions
from mini.tensor.autograd import custom_gradient, no_grad
from mini.tensor.errors import fail
from mini.types import ArgumentError, DTypeError, ShapeError, prod


def _method(*args: Any, **options: Any) -> Tensor:
  """Stands for the method of this name, or of the name without its underscore, until it is first asked for."""
  raise NotImplementedError


_several: Any = _method  # may give more than one tensor
# fmt: off
adaptive_avg_pool1d = adaptive_avg_pool2d = adaptive_avg_pool3d = affine_grid = avg_pool1d = avg_pool2d = \
  avg_pool3d = batch_norm = bilinear = binary_cross_entropy = binary_cross_entropy_with_logits = celu = \
  channel_shuffle = conv1d = conv2d = conv3d = conv_transpose1d = conv_transpose2d = conv_transpose3d = \
  cosine_embedding_loss = cosine_similarity = cross_entropy = ctc_loss = dropout = elu = fold = gaussian_nll_loss \
  = gelu = glu = grid_sample = group_norm = gumbel_softmax = hardshrink = hardsigmoid = hardswish = hardtanh = \
  hinge_embedding_loss = huber_loss = instance_norm = interpolate = kl_div = l1_loss = layer_norm = leaky_relu = \
  linear = local_response_norm = log_softmax = logsigmoid = lp_pool1d = lp_pool2d = lp_pool3d = \
  margin_ranking_loss = max_unpool1d = max_unpool2d = max_unpool3d = mish = mse_loss = multi_margin_loss = \
  multilabel_margin_loss = multilabel_soft_margin_loss = nll_loss = normalize = one_hot = pad = pairwise_distance \
  = pdist = pixel_shuffle = pixel_unshuffle = poisson_nll_loss = prelu = relu = relu6 = rms_norm = rrelu = \
  scaled_dot_product_attention = selu = sigmoid = silu = smooth_l1_loss = soft_margin_loss = softmax = softmin = \
  softplus = softshrink = softsign = tanh = tanhshrink = threshold = triplet_margin_loss = \
  triplet_margin_with_distance_loss = unfold = celu_ = elu_ = hardtanh_ = leaky_relu_ = relu_ = rrelu_ = selu_ = \
  threshold_ = _method
adaptive_max_pool1d = adaptive_max_pool2d = adaptive_max_pool3d = max_pool1d = max_pool2d = max_pool3d = _several
# fmt: on
METHODS = [name for name, f in globals().items() if f is _method and name[0] != "_"]
for _name in [*METHODS, "_method", "_several"]:
  del globals()[_name]
NAMED_OTHERWISE = {"unfold": "im2col"}  # Tensor.unfold is along one axis, as torch.Tensor's
# Those that take inplace=True; under a name with an underscore some do so without it.
IN_PLACE = (
  "celu dropout elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 rrelu selu silu threshold"
)
# what the first tensor is called where it is not "input"
FIRST = {
  "affine_grid": "theta", "bilinear": "input1", "cosine_embedding_loss": "input1", "cosine_similarity": "x1",
  "ctc_loss": "log_probs", "gumbel_softmax": "logits", "margin_ranking_loss": "input1", "pairwise_distance": "x1",
  "scaled_dot_product_attention": "query", "triplet_margin_loss": "anchor",
  "triplet_margin_with_distance_loss": "anchor",
}  # fmt: skip


def parameters(name: str) -> list[inspect.Parameter]:
  """The parameters of a method, the first by its name here, `axis` as PyTorch's `dim`."""
  method = getattr(Tensor, NAMED_OTHERWISE.get(name, name))
  first, *rest = inspect.signature(method).parameters.values()
  twice = any(p.name == "axis" for p in rest)
  rest = [p.replace(name="dim") if p.name == "axis" else p for p in rest if not (twice and p.name == "dim")]
  return [first.replace(name=FIRST.get(name, "input"), annotation="Tensor"), *rest]


def _function(name: str) -> Callable[..., Any]:
  """A method as a function."""
  own = NAMED_OTHERWISE.get(name, name)
  method, taken = getattr(Tensor, own), parameters(name)
  first = taken[0].name

  def function(*args: Any, **options: Any) -> Any:
    args = (options.pop(first), *args) if first in options else args
    return getattr(type(args[0]) if args else Tensor, own, method)(
      *args, **options
    )  # of a complex one, its own

  return _called(function, name, inspect.Signature(taken), method)


def _changing(name: str, inplace: bool) -> Callable[..., Any]:
  """As `_function`, of a method whose result takes the tensor's place if inplace=True."""
  method, taken = getattr(Tensor, name), parameters(name)
  last = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=inplace)
  taken = [p.replace(default=name == "dropout") if p.name == "training" else p for p in taken]
  signature = inspect.Signature([*taken, last])

  def function(*args: Any, **options: Any) -> Any:
    bound = signature.bind(*args, **options)
    bound.apply_defaults()
    changes = bound.arguments.pop("inplace")
    x, *rest = bound.arguments.values()
    out = getattr(type(x), name, method)(x, *rest)
    return x._update(out, f"F.{name}(a, inplace=True)") if changes else out

  return _called(function, name, signature, method)


def _called(f: Any, name: str, signature: inspect.Signature, method: Any) -> Callable[..., Any]:
  f.__name__ = f.__qualname__ = name
  f.__signature__, f.__doc__ = signature, f"`Tensor.{method.__name__}`, as a function."
  return gate(name, f)


# ---------------------------------------------------------------- what no method is


def channel_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
  """Whole channels, axis 1, are zeros with probability p, all else is over 1 - p; only while training.   T[N, C, ..]"""
  kept = Tensor.ones(*input.shape[:2], *(1,) * (input.ndim - 2), dtype=input.dtype, device=input.device)
  out = input * kept.dropout(p, training=training)
  return input._update(out, "F.dropout(a, inplace=True)") if inplace else out


dropout1d = dropout2d = dropout3d = channel_dropout


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
  """Dropout that keeps mean 0 and variance 1 after `selu`. https://arxiv.org/abs/1706.02515"""
  return _selu_dropout(input, input.shape, p, training, inplace)


def feature_alpha_dropout(
  input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
  """`alpha_dropout` of whole channels, axis 1.   T[N, C, ..]"""
  return _selu_dropout(input, (*input.shape[:2], *(1,) * (input.ndim - 2)), p, training, inplace)


def _selu_dropout(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
  """One decision for each element of a shape that repeats to the input's."""
  if not 0 <= p <= 1:
    fail(ArgumentError, f"alpha_dropout: a probability is between 0 and 1, and p is {p}", x=input)
  if not training or p == 0:
    return input
  low, q = -1.7580993408473766, 1 - p  # what selu gives of -inf
  scale = (q + low * low * q * p) ** -0.5 if q else 0.0
  kept = Tensor.rand(*shape, device=input.device) >= p
  out = (kept.where(input, low) * scale - low * p * scale).cast(input.dtype)
  return input._update(out, "F.alpha_dropout(a, inplace=True)") if inplace else out


def embedding(
  input: Tensor,
  weight: Tensor,
  padding_idx: int | None = None,
  max_norm: float | None = None,
  norm_type: float = 2.0,
  scale_grad_by_freq: bool = False,
  sparse: bool = False,
) -> Tensor:
  """Rows of a table.   input: int[..]   weight: T[n, d]   ->   T[.., d]

  padding_idx: a row that gets no gradient. max_norm: the looked-up rows of the table whose norm_type-norm is larger are
  first scaled to it, in place. scale_grad_by_freq: the gradient of a row is over how often it is looked up. sparse has
  no effect: gradients are dense.

  >>> nn.functional.embedding(Tensor([1, 1]), Tensor([[1.0, 2.0], [3.0, 4.0]]), max_norm=1.0).numpy().round(2)
  array([[0.6, 0.8],
         [0.6, 0.8]], dtype=float32)
  """
  if weight.ndim != 2:
    fail(ShapeError, "embedding: the table is a matrix, a row for each index", weight=weight)
  if max_norm is not None:
    _bounded(weight, input, max_norm, norm_type)
  rows = weight.embedding(input)
  if scale_grad_by_freq:
    rows = _over_counts(rows, _counts(weight, input)[input].unsqueeze(-1))
  if padding_idx is None:
    return rows
  return (input != padding_idx % weight.shape[0]).unsqueeze(-1).where(rows, rows.detach())


def _counts(weight: Tensor, index: Tensor) -> Tensor:
  """How often each row is looked up.   -> T[n]"""
  ones = Tensor.ones(index.numel(), dtype=weight.dtype, device=weight.device)
  nothing = Tensor.zeros(weight.shape[0], dtype=weight.dtype, device=weight.device)
  return nothing.scatter_add(0, index.reshape(-1).long(), ones)


def _bounded(weight: Tensor, index: Tensor, most: float, p: float) -> None:
  with no_grad():
    norms = weight.norm(p, -1, True)
    larger = (norms > most) & (_counts(weight, index) > 0).unsqueeze(-1)
    weight.assign(larger.where(weight * (most / (norms + 1e-7)), weight))


@custom_gradient(lambda g, out, rows, counts: (g / counts, None))
def _over_counts(rows: Tensor, counts: Tensor) -> Tensor:
  """The rows, whose gradients are over counts."""
  return rows


def embedding_bag(
  input: Tensor,
  weight: Tensor,
  offsets: Tensor | None = None,
  max_norm: float | None = None,
  norm_type: float = 2.0,
  scale_grad_by_freq: bool = False,
  mode: str = "mean",
  sparse: bool = False,
  per_sample_weights: Tensor | None = None,
  include_last_offset: bool = False,
  padding_idx: int | None = None,
) -> Tensor:
  """The sum, mean or maximum of the rows of each bag; 0 of a bag that is empty.   weight: T[n, d]   ->   T[B, d]

  input: int[B, k], a bag in each row; or int[N] with offsets, int[B]: where each bag begins, the first at 0; if
  include_last_offset, with N behind them. per_sample_weights: T, in input's shape, for sums. padding_idx: a row that no
  bag has. The others: see `embedding`.

  >>> nn.functional.embedding_bag(Tensor([1, 1, 0]), Tensor([[1.0], [3.0]]), Tensor([0, 2]), mode="sum")
  Tensor([[6.],
          [1.]])
  """
  _expect_bags(input, offsets, per_sample_weights, mode)
  rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
  there = input.full_like(True, dtype="bool").unsqueeze(-1)  # which indices count: bool[.., 1]
  if padding_idx is not None:
    there = (input != padding_idx % weight.shape[0]).unsqueeze(-1)
  if per_sample_weights is not None:
    rows = rows * per_sample_weights.unsqueeze(-1)
  rows = there.where(rows, -math.inf if mode == "max" else 0)
  if offsets is None:
    found, count = rows.amax(1) if mode == "max" else rows.sum(1), there.sum(1)
  else:
    found, count = _bags(rows, there, offsets[:-1] if include_last_offset else offsets, mode)
  if mode == "max":
    return (count > 0).where(found, 0)
  return found / count.maximum(1).to(found.dtype) if mode == "mean" else found


def _bags(rows: Tensor, there: Tensor, starts: Tensor, mode: str) -> tuple[Tensor, Tensor]:
  """(the sum or maximum of the rows, the number of those that count) of each bag."""
  n, (bags,) = rows.shape[0], starts.shape
  at = starts.searchsorted(Tensor.arange(n, dtype=starts.dtype, device=rows.device), right=True) - 1
  to = at.unsqueeze(-1).expand(rows.shape)
  begin = rows.new_full((bags, rows.shape[1]), -math.inf if mode == "max" else 0)
  found = begin.scatter_reduce(0, to, rows, "amax" if mode == "max" else "sum")
  count = Tensor.zeros(bags, 1, dtype="int64", device=rows.device)
  return found, count.scatter_add(0, at.unsqueeze(-1), there.long())


def _expect_bags(index: Tensor, offsets: Tensor | None, weights: Tensor | None, mode: str) -> None:
  """ShapeError, DTypeError or ValueError for what does not go together."""
  if mode not in ("sum", "mean", "max"):
    fail(ArgumentError, f'embedding_bag: mode is "sum", "mean" or "max", not {mode!r}')
  if index.ndim != (2 if offsets is None else 1):
    fail(ShapeError, "embedding_bag: index has two axes, or one and offsets", index=index, offsets=offsets)
  if offsets is not None and (offsets.ndim != 1 or offsets.dtype.kind not in "iu"):
    fail(DTypeError, "embedding_bag: offsets are a vector of integers", offsets=offsets)
  if weights is not None and mode != "sum":
    fail(ArgumentError, f"embedding_bag: per_sample_weights are for sums, and mode is {mode!r}")
  if weights is not None and weights.shape != index.shape:
    fail(ShapeError, "embedding_bag: there is one weight for each index", index=index, weights=weights)


def _fractional(n: int) -> Callable[..., Any]:
  def pool(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
  ) -> Any:
    size, kernel = input.shape[-n:], _each_of(kernel_size, n)
    if (output_size is None) == (output_ratio is None):
      fail(ArgumentError, f"fractional_max_pool{n}d: give output_size or output_ratio")
    sizes = _each_of(output_size, n) if output_ratio is None else None
    sizes = sizes or [int(s * r) for s, r in zip(size, _each_of(output_ratio, n))]
    if any(o < 1 or o + k - 1 > s for o, k, s in zip(sizes, kernel, size)):
      fail(ShapeError, f"fractional_max_pool{n}d: no {sizes} windows of {kernel}", x=input)
    x = input if input.ndim == n + 2 else input.unsqueeze(0)
    u = (
      Tensor.rand(*x.shape[:2], n, device=input.device)
      if _random_samples is None
      else _random_samples[: len(x)]
    )
    index: Any = 0  # of each window's elements, in a channel that is flattened
    for a, (o, k, s) in enumerate(zip(sizes, kernel, size)):
      step = (s - k) / (o - 1) if o > 1 else 0.0
      draw = u[..., 1 - a if n == 2 else a].unsqueeze(-1)  # which is PyTorch's
      starts = ((draw + Tensor.arange(o, device=input.device)) * step).long() - (draw * step).long()
      last = Tensor.arange(o, device=input.device) == o - 1
      starts = last.where(s - k, starts).unsqueeze(-1) + Tensor.arange(k, device=input.device)
      places = starts.reshape(
        *starts.shape[:2], *(m for b in range(n) for m in ((o, k) if b == a else (1, 1)))
      )
      index = index * s + places
    shape = [m for pair in zip(sizes, kernel) for m in pair]
    index = index.expand(*x.shape[:2], *shape).permute(0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2))
    index = index.reshape(*x.shape[:2], prod(sizes), prod(kernel))
    found = x.flatten(2).gather(2, index.flatten(2)).reshape(index.shape)
    best = found.argmax(-1, True)
    out = [t.gather(-1, best).reshape(*x.shape[:2], *sizes) for t in (found, index)]
    out = out if input.ndim == n + 2 else [t.squeeze(0) for t in out]
    return (out[0], out[1]) if return_indices else out[0]

  pool.__name__ = pool.__qualname__ = f"fractional_max_pool{n}d"
  pool.__doc__ = f"""The largest element of windows at places that are drawn for each channel, over the last {n} axes.

  kernel_size: of the windows; output_size, or output_ratio to the input's: how many there are. return_indices: also
  where the largest is, counted in the channel. B. Graham, Fractional max-pooling, 2014."""
  return pool


def _each_of(x: Any, n: int) -> list[Any]:
  return [*x] if isinstance(x, (tuple, list)) else [x] * n


fractional_max_pool2d, fractional_max_pool3d = _fractional(2), _fractional(3)


def upsample(
  input: Tensor,
  size: Any = None,
  scale_factor: Any = None,
  mode: str = "nearest",
  align_corners: bool | None = None,
) -> Tensor:
  """`interpolate`, by its older name."""
  return input.interpolate(
    size, scale_factor, mode, **({} if align_corners is None else {"align_corners": align_corners})
  )


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
  """`interpolate(mode="nearest")`."""
  return upsample(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
  """`interpolate(mode="bilinear", align_corners=True)`."""
  return upsample(input, size, scale_factor, "bilinear", True)


# ---------------------------------------------------------------- by name


if not TYPE_CHECKING:  # which sees the table

  def __getattr__(name: str) -> Any:
    """What is made when it is first asked for."""
    if name not in METHODS:
      raise AttributeError(f"mini.nn.functional has no {name!r}", name=name, obj=sys.modules[__name__])
    changes = name.endswith("_") or name in IN_PLACE.split()
    found = _changing(name.removesuffix("_"), name.endswith("_")) if changes else _function(name)
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
  return [*__all__]


OWN = """
alpha_dropout dropout1d dropout2d dropout3d embedding embedding_bag feature_alpha_dropout fractional_max_pool2d
fractional_max_pool3d upsample upsample_bilinear upsample_nearest
"""
__all__ = sorted([*METHODS, *OWN.split()])
guard_functions(OWN.split(), globals())
