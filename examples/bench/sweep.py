"""Many forms, at sizes that are drawn, each beside PyTorch: what single rows do not show.

  python examples/bench/sweep.py                        every form at 2 sizes, and its gradients (4 minutes)
  python examples/bench/sweep.py --only conv --count 9  some, at more sizes
  python examples/bench/sweep.py --seed 3               other sizes
  CACHE=0 python examples/bench/sweep.py --report docs/sweep.md   the table there, with what compilers take

The names are the same in both libraries, so a form is one function of `F` and tensors. Results are compared with
PyTorch's in float64 before they are timed. At the end: our part of PyTorch's time, in geometric mean, and the rows that
take longest beside it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import limits
import numpy as np
from common import Case, arguments, chosen, peer, run

from mini import Tensor, grad, jit
from mini.nn import functional

torch = peer("torch")

Draw = Callable[[int, int], int]  # a size between two, small ones as often as large ones
Shapes = list[tuple[int, ...]]
MOST_BYTES, MOST_GFLOP = 96 << 20, 8.0
WORST = 1.3  # times PyTorch's time: what is listed at the end
SLOPE = "slope "  # begins the name of a gradient, in the input of this number


class Form(NamedTuple):
  name: str
  shapes: Callable[[Draw], Shapes]
  f: Callable[..., Any]  # of F, which is torch.nn.functional or ours, and of tensors
  gradients: bool = True
  gflop: Callable[..., float] = lambda *shapes: 0.0  # about, of shapes: how large it may be


def matrix(d: Draw) -> Shapes:
  return [(d(64, 4096), d(16, 4096))]


def cube(d: Draw) -> Shapes:
  return [(d(2, 32), d(16, 512), d(16, 512))]


def image(d: Draw) -> Shapes:
  return [(d(1, 16), d(8, 256), *[d(7, 112)] * 2)]


def layer(d: Draw) -> Shapes:
  n, k, m = d(16, 4096), d(16, 2048), d(16, 2048)
  return [(n, k), (m, k), (m,)]


def filtered(size: int, groups: bool = False, turned: bool = False) -> Callable[[Draw], Shapes]:
  """An image and the weight of a convolution."""

  def shapes(d: Draw) -> Shapes:
    (x,) = image(d)
    c, o = x[1], x[1] if groups else d(8, 256)
    return [x, (c, o, size, size) if turned else (o, 1 if groups else c, size, size)]

  return shapes


def convolved(x: tuple[int, ...], w: tuple[int, ...]) -> float:
  return 2e-9 * x[0] * x[2] * x[3] * float(np.prod(w))


def heads(d: Draw) -> Shapes:
  return [(d(1, 8), d(1, 12), d(32, 512), d(16, 128))] * 3


def attended(q: tuple[int, ...], *_: tuple[int, ...]) -> float:
  return 14e-9 * float(np.prod(q)) * q[2]


def multiplied(x: tuple[int, ...], w: tuple[int, ...], *_: tuple[int, ...]) -> float:
  return 6e-9 * float(np.prod(x)) * max(w)


# fmt: off
FORMS = [
  Form("gelu",               matrix, lambda F, x: F.gelu(x, approximate="tanh")),
  Form("leaky_relu",         matrix, lambda F, x: F.leaky_relu(x)),
  Form("a chain",            matrix, lambda F, x: (x * x + x).sigmoid() * x),
  Form("add a row",          lambda d: [s := matrix(d)[0], s[1:]],      lambda F, x, r: x + r),
  Form("add a column",       lambda d: [s := matrix(d)[0], (s[0], 1)],  lambda F, x, c: x * c),
  Form("transposed",         matrix, lambda F, x: x.T.contiguous() * 1.5),
  Form("permuted",           cube,   lambda F, x: x.permute(1, 0, 2) * 1.5),
  Form("a part",             matrix, lambda F, x: x[..., 1:] * 1.5),
  Form("flip",               matrix, lambda F, x: x.flip(1)),
  Form("roll",               matrix, lambda F, x: x.roll(3, 1)),
  Form("pad",                image,  lambda F, x: F.pad(x, (1, 2, 2, 1))),
  Form("sum",                matrix, lambda F, x: x.sum()),
  Form("sum over 0",         matrix, lambda F, x: x.sum(0)),
  Form("sum over 1",         matrix, lambda F, x: x.sum(1)),
  Form("sum over the middle", cube,  lambda F, x: x.sum(1)),
  Form("sum of images",      image,  lambda F, x: x.sum((0, 2, 3))),
  Form("largest",            matrix, lambda F, x: x.amax(1)),
  Form("place of the largest",  matrix, lambda F, x: x.argmax(1), False),
  Form("cumsum over 1",      matrix, lambda F, x: x.cumsum(1)),
  Form("cumsum over 0",      matrix, lambda F, x: x.cumsum(0)),
  Form("variance",           matrix, lambda F, x: x.var(1)),
  Form("norm",               matrix, lambda F, x: F.normalize(x, dim=1)),
  Form("softmax",            matrix, lambda F, x: x.softmax(1)),
  Form("softmax over 1 of 3", cube,  lambda F, x: x.softmax(1)),
  Form("log_softmax",        matrix, lambda F, x: x.log_softmax(1)),
  Form("layer_norm",         matrix, lambda F, x: F.layer_norm(x, x.shape[1:])),
  Form("batch_norm",         image,  lambda F, x: F.batch_norm(x, None, None, training=True)),
  Form("group_norm",         lambda d: [(d(1, 16), 8 * d(1, 32), *[d(7, 112)] * 2)], lambda F, x: F.group_norm(x, 8)),
  Form("max_pool2d 2",       image,  lambda F, x: F.max_pool2d(x, 2)),
  Form("max_pool2d 3 by 2",  image,  lambda F, x: F.max_pool2d(x, 3, 2, 1)),
  Form("avg_pool2d 3 by 1",  image,  lambda F, x: F.avg_pool2d(x, 3, 1, 1)),
  Form("upsampled",          image,  lambda F, x: F.interpolate(x, scale_factor=2)),
  Form("linear",             layer,  lambda F, x, w, b: F.linear(x, w, b), True, multiplied),
  Form("linear, relu",       layer,  lambda F, x, w, b: F.relu(F.linear(x, w, b)), True, multiplied),
  Form("product",            lambda d: [(d(16, 2048), k := d(16, 2048)), (k, d(16, 2048))], lambda F, x, w: x @ w, True, multiplied),
  Form("products",           lambda d: [(b := d(2, 32), d(16, 512), k := d(16, 512)), (b, k, d(16, 512))], lambda F, x, w: x @ w, True, multiplied),
  Form("vector by matrix",   lambda d: [(1, k := d(256, 4096)), (k, d(256, 4096))], lambda F, x, w: x @ w),
  Form("attention",          heads,  lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v), True, attended),
  Form("attention, causal",  heads,  lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), True, attended),
  Form("conv2d 1",           filtered(1), lambda F, x, w: F.conv2d(x, w), True, convolved),
  Form("conv2d 3",           filtered(3), lambda F, x, w: F.conv2d(x, w, padding=1), True, convolved),
  Form("conv2d 3, inside",   filtered(3), lambda F, x, w: F.conv2d(x, w), True, convolved),
  Form("conv2d 3 by 2",      filtered(3), lambda F, x, w: F.conv2d(x, w, stride=2, padding=1), True, convolved),
  Form("conv2d 5",           filtered(5), lambda F, x, w: F.conv2d(x, w, padding=2), True, convolved),
  Form("conv2d 7 by 4",      filtered(7), lambda F, x, w: F.conv2d(x, w, stride=4, padding=3), True, convolved),
  Form("conv2d 3 by channel", filtered(3, groups=True), lambda F, x, w: F.conv2d(x, w, padding=1, groups=w.shape[0]), True, convolved),
  Form("conv2d 7 by channel", filtered(7, groups=True), lambda F, x, w: F.conv2d(x, w, padding=3, groups=w.shape[0]), True, convolved),
  Form("conv_transpose2d 2 by 2", filtered(2, turned=True), lambda F, x, w: F.conv_transpose2d(x, w, stride=2), True, convolved),
  Form("conv_transpose2d 4 by 2", filtered(4, turned=True), lambda F, x, w: F.conv_transpose2d(x, w, stride=2, padding=1), True, convolved),
  Form("conv1d 3",           lambda d: [(d(1, 16), c := d(8, 256), d(64, 4096)), (d(8, 256), c, 3)], lambda F, x, w: F.conv1d(x, w, padding=1), True,
       lambda x, w: 2e-9 * x[0] * x[2] * float(np.prod(w))),
]
# fmt: on


def through(images: tuple[int, ...], *weights: tuple[int, ...]) -> float:
  """Of layers that keep the places of an image."""
  return sum(convolved(images, w) for w in weights if len(w) > 1)


def small(d: Draw, channels: int = 64) -> tuple[int, ...]:
  """Images of models that run in a moment."""
  return (d(1, 16), d(1, channels), *[d(7, 56)] * 2)


def narrowing(d: Draw) -> Shapes:
  """Images, an expansion of 1x1, a depthwise filter and a projection of 1x1: MobileNet's block."""
  x, size = small(d), (3, 5)[d(1, 2) - 1]
  c = 4 * x[1]
  return [x, (c, x[1], 1, 1), (c,), (c, 1, size, size), (x[1], c, 1, 1)]


def bottleneck(F: Any, x: Any, a: Any, b: Any, w: Any, p: Any) -> Any:
  x = F.hardswish(F.conv2d(x, a, b))
  return F.conv2d(F.hardswish(F.conv2d(x, w, None, 1, w.shape[-1] // 2, 1, w.shape[0])), p)


def squeezed(F: Any, x: Any, a: Any, b: Any) -> Any:
  return x * F.sigmoid(F.conv2d(F.relu(F.conv2d(x.mean((2, 3), keepdim=True), a)), b))


def normalized(F: Any, x: Any) -> Any:
  return F.batch_norm(x, None, None, training=True)


def residual(F: Any, x: Any, a: Any, b: Any, s: Any) -> Any:
  """ResNet's first block of a stage, with its shortcut."""
  y = F.relu(normalized(F, F.conv2d(x, a, padding=1, stride=2)))
  return F.relu(normalized(F, F.conv2d(y, b, padding=1)) + F.conv2d(x, s, stride=2))


def cell(F: Any, x: Any, h: Any, c: Any, w: Any, u: Any) -> Any:
  i, f, g, o = (F.linear(x, w) + F.linear(h, u)).chunk(4, 1)
  return F.sigmoid(o) * (F.sigmoid(f) * c + F.sigmoid(i) * g.tanh()).tanh()


def highway(F: Any, x: Any, a: Any, b: Any) -> Any:
  t = F.sigmoid(F.linear(x, a))
  return t * F.relu(F.linear(x, b)) + (1 - t) * x


def joined(x: Any, y: Any) -> Any:
  return (Tensor if isinstance(x, Tensor) else torch).cat([x, y], 1)


def batch(d: Draw) -> tuple[int, int, int]:
  """Rows, features, hidden features."""
  return d(4, 1024), d(16, 1024), d(16, 1024)


# fmt: off
FORMS += [
  Form("block of MobileNet", narrowing, bottleneck, True, through),
  Form("batch_norm, relu, max_pool2d", image, lambda F, x: F.max_pool2d(F.relu(normalized(F, x)), 3, 2, 1)),
  Form("batch_norm, hardswish, by channel", filtered(5, groups=True), lambda F, x, w: F.conv2d(F.hardswish(normalized(F, x)), w, padding=2, groups=w.shape[0])),
  Form("squeeze and excite", lambda d: [x := image(d)[0], (x[1] // 4, x[1], 1, 1), (x[1], x[1] // 4, 1, 1)], squeezed),
  Form("residual block",     lambda d: [x := small(d), (o := d(4, 128), x[1], 3, 3), (o, o, 3, 3), (o, x[1], 1, 1)], residual, True, through),
  Form("shortcut",           lambda d: [x := small(d), (o := d(4, 128), x[1], 3, 3), (o, x[1], 1, 1)], lambda F, x, w, s: F.relu(F.conv2d(x, w, padding=1) + F.conv2d(x, s)), True, through),
  Form("conv, relu, pool, conv", lambda d: [x := small(d), (o := d(4, 64), x[1], 3, 3), (o,), (d(4, 64), o, 3, 3)],
       lambda F, x, w, b, v: F.conv2d(F.max_pool2d(F.relu(F.conv2d(x, w, b, padding=1)), 2), v, padding=1), True, through),
  Form("conv, conv to few",  lambda d: [x := small(d), (o := d(4, 64), x[1], 3, 3), (d(1, 4), o, 3, 3)], lambda F, x, w, v: F.conv2d(F.relu(F.conv2d(x, w, padding=1)), v, padding=1), True, through),
  Form("conv, group_norm, silu, conv", lambda d: [(d(1, 8), c := 8 * d(1, 8), *[d(7, 32)] * 2), (c, c, 3, 3), (c, c, 3, 3)],
       lambda F, x, w, v: F.conv2d(F.silu(F.group_norm(F.conv2d(x, w, padding=1), 8)), v, padding=1), True, through),
  Form("generator",          lambda d: [(d(1, 16), c := d(8, 64), *[d(4, 16)] * 2), (c, o := d(8, 64), 4, 4), (o, d(1, 4), 4, 4)],
       lambda F, x, w, v: F.conv_transpose2d(F.relu(F.conv_transpose2d(x, w, stride=2, padding=1)), v, stride=2, padding=1).tanh(), True, through),
  Form("upsampled, concatenated, conv", lambda d: [x := small(d, 32), (x[0], x[1], 2 * x[2], 2 * x[3]), (d(4, 32), 2 * x[1], 3, 3)],
       lambda F, x, y, w: F.relu(F.conv2d(joined(F.interpolate(x, scale_factor=2), y), w, padding=1)), True,
       lambda x, y, w: convolved(y, w)),
  Form("in groups, bias, relu", lambda d: [(d(1, 16), c := 4 * d(1, 32), *[d(7, 56)] * 2), (c, c // 4, 3, 3), (c,)], lambda F, x, w, b: F.relu(F.conv2d(x, w, b, padding=1, groups=4)), True, through),
  Form("conv, pixel_shuffle", lambda d: [x := small(d), (4 * d(1, 16), x[1], 3, 3)], lambda F, x, w: F.pixel_shuffle(F.conv2d(x, w, padding=1), 2), True, through),
  Form("reflected, conv",    lambda d: [x := small(d), (d(4, 64), x[1], 3, 3)], lambda F, x, w: F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), w), True, through),
  Form("conv3d, relu, pool", lambda d: [(d(1, 4), c := d(1, 16), *[d(4, 16)] * 3), (d(4, 32), c, 3, 3, 3)], lambda F, x, w: F.max_pool3d(F.relu(F.conv3d(x, w, padding=1)), 2), True,
       lambda x, w: 2e-9 * float(np.prod(x)) / x[1] * float(np.prod(w))),
  Form("conv1d by channel, 1", lambda d: [x := (d(1, 16), d(8, 128), d(64, 1024)), (x[1], 1, 5), (d(8, 128), x[1], 1)], lambda F, x, w, v: F.conv1d(F.relu(F.conv1d(x, w, padding=2, groups=w.shape[0])), v)),
  Form("MLP, gelu",          lambda d: [(s := batch(d))[:2], (s[2], s[1]), (s[1], s[2])], lambda F, x, w, v: F.linear(F.gelu(F.linear(x, w)), v), True, multiplied),
  Form("MLP, three layers",  lambda d: [(s := batch(d))[:2], (s[2], s[1]), (s[2],), (s[2], s[2]), (s[2],), (d(1, 16), s[2])],
       lambda F, x, w, b, v, c, u: F.linear(F.relu(F.linear(F.relu(F.linear(x, w, b)), v, c)), u), True, multiplied),
  Form("SwiGLU",             lambda d: [(s := batch(d))[:2], *[(s[2], s[1])] * 2, (s[1], s[2])], lambda F, x, a, b, c: F.linear(F.silu(F.linear(x, a)) * F.linear(x, b), c), True, multiplied),
  Form("two products",       lambda d: [(s := batch(d))[:2], s[1:], (s[0], k := d(16, 1024)), (k, s[2])], lambda F, a, b, c, d: a @ b + c @ d, True, multiplied),
  Form("gram",               lambda d: [(n := d(16, 512),) * 2, (n, d(16, 512))], lambda F, g, x: g @ x + g.T @ x, True, multiplied),
  Form("low rank beside",    lambda d: [(s := batch(d))[:2], (s[2], s[1]), (8, s[1]), (s[2], 8)], lambda F, x, w, a, b: F.linear(x, w) + F.linear(F.linear(x, a), b), True, multiplied),
  Form("highway",            lambda d: [(d(4, 1024), k := d(16, 512)), (k, k), (k, k)], highway, True, multiplied),
  Form("cell of an LSTM",    lambda d: [(s := batch(d))[:2], *[(s[0], h := d(16, 256))] * 2, (4 * h, s[1]), (4 * h, h)], cell, True, multiplied),
  Form("RMSNorm, linear",    lambda d: [(s := batch(d))[:2], (s[2], s[1])], lambda F, x, w: F.linear(x / (x.square().mean(1, keepdim=True) + 1e-5).sqrt(), w), True, multiplied),
  Form("layer_norm, linear, relu", lambda d: [(s := batch(d))[:2], (s[2], s[1])], lambda F, x, w: F.relu(F.linear(F.layer_norm(x, x.shape[1:]), w)), True, multiplied),
  Form("linear, log_softmax", lambda d: [(s := batch(d))[:2], (d(4, 64), s[1])], lambda F, x, w: F.log_softmax(F.linear(x, w), 1), True, multiplied),
  Form("bilinear",           lambda d: [(n := d(4, 64), i := d(4, 64)), (d(4, 32), i, j := d(4, 64)), (n, j)], lambda F, x, w, y: F.bilinear(x, y, w)),
  Form("softmax of columns", matrix, lambda F, x: x.T.softmax(1)),
  Form("centred columns",    matrix, lambda F, x: x.T - x.T.mean(1, keepdim=True)),
  Form("covariance",         lambda d: [(d(64, 2048), d(8, 128))], lambda F, x: (y := x - x.mean(0)).T @ y),
  Form("pairwise distances", lambda d: [(d(16, 256), k := d(2, 64)), (d(16, 256), k)], lambda F, x, y: (x[:, None] - y[None]).square().sum(2).sqrt()),
  Form("positions, linear",  lambda d: [(d(64, 4096), 3), (f := d(4, 16),), (d(16, 128), 3 * f)], lambda F, x, f, w: F.relu(F.linear((x[:, :, None] * f).sin().flatten(1), w))),
  Form("attention of rows",  lambda d: [(d(1, 8), d(16, 256), k := 16 * d(1, 16)), *[(k, k)] * 4],
       lambda F, x, q, k, v, o: F.linear(F.scaled_dot_product_attention(*(F.linear(x, w).unflatten(2, (4, -1)).transpose(1, 2) for w in (q, k, v))).transpose(1, 2).flatten(2), o), True,
       lambda x, *w: 12e-9 * float(np.prod(x)) * (x[2] + x[1])),
]
# fmt: on


def drawn(form: Form, rng: np.random.Generator) -> Shapes:
  """Sizes that are not too large; one in two is a multiple of 16, where it may be."""

  def draw(least: int, most: int) -> int:
    n = round(float(np.exp(rng.uniform(np.log(least), np.log(most)))))
    return max(least, n // 16 * 16) if n >= 16 and rng.random() < 0.5 else n

  while True:
    shapes = form.shapes(draw)
    if 4 * sum(map(np.prod, shapes)) < MOST_BYTES and form.gflop(*shapes) < MOST_GFLOP:
      return shapes


def scaled(x: np.ndarray, i: int) -> np.ndarray:
  """What follows the first input is a weight: as large as a layer begins with."""
  return x * np.float32(np.prod(x.shape[1:]) ** -0.5) if i else x


def cases(form: Form, seed: int, count: int) -> Iterator[Case]:
  """A form at some sizes, and its gradients there, one by one: a compiler leaves out what another's takes."""
  for n in range(count):
    rng = np.random.default_rng([seed, n, *form.name.encode()])
    arrays = [scaled(rng.standard_normal(s, np.float32), i) for i, s in enumerate(drawn(form, rng))]
    yield case(form, arrays)
    for i in range(len(arrays)) if form.gradients else ():
      yield slope(form, arrays, i, rng)


def case(form: Form, arrays: list[np.ndarray]) -> Case:
  theirs = torch.nn.functional
  ours, tensors = [Tensor(a) for a in arrays], [torch.from_numpy(a) for a in arrays]
  made = jit(lambda *xs: form.f(functional, *xs))
  calls = {"mini": lambda: made(*ours), "torch": lambda: form.f(theirs, *tensors)}
  exact = lambda: form.f(theirs, *[x.double() for x in tensors]).numpy()
  return Case(f"{form.name} {sizes(arrays)}", calls, exact, gigabytes(arrays), "GB")


def slope(form: Form, arrays: list[np.ndarray], i: int, rng: np.random.Generator) -> Case:
  """The gradient of the sum of a form's results, each times a number of its own, in the array i."""
  theirs = torch.nn.functional
  tensors = [torch.from_numpy(a) for a in arrays]
  weights = rng.standard_normal(tuple(form.f(theirs, *tensors).shape), np.float32)
  ours, given = [Tensor(a) for a in (*arrays, weights)], torch.from_numpy(weights)

  @jit
  def made(*xs):
    *xs, d = xs
    return grad(lambda x: (form.f(functional, *xs[:i], x, *xs[i + 1 :]) * d).sum())(xs[i])

  def peers(xs, d):
    x = xs[i].detach().requires_grad_()
    return torch.autograd.grad(form.f(theirs, *xs[:i], x, *xs[i + 1 :]), x, d)[0]

  calls = {"mini": lambda: made(*ours), "torch": lambda: peers(tensors, given)}
  exact = lambda: peers([x.double() for x in tensors], given.double()).numpy()
  return Case(f"{SLOPE}{i} {form.name} {sizes(arrays)}", calls, exact, gigabytes(arrays), "GB")


def sizes(arrays: list[np.ndarray]) -> str:
  return ", ".join("x".join(map(str, a.shape)) for a in arrays)


def gigabytes(arrays: list[np.ndarray]) -> float:
  return sum(a.nbytes for a in arrays) * 1e-9


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
  times = {row["case"]: row["mini"]["ms_median"] / row["torch"]["ms_median"] for row in rows}
  told: dict[str, Any] = {}
  for what, of in (("forward", False), ("gradients", True)):
    some = [t for name, t in times.items() if name.startswith(SLOPE) == of]
    if some:
      told[f"{what}: of PyTorch's time"] = round(statistics.geometric_mean(some), 3)
  slow = sorted((name for name in times if times[name] > WORST), key=lambda name: -times[name])
  return {**told, **{name: round(times[name], 2) for name in slow}}


def report(rows: list[dict[str, Any]]) -> str:
  """A table: forms at a size, forward, and the gradient of each array in it."""
  forward = {row["case"]: row for row in rows if not row["case"].startswith(SLOPE)}
  slopes: dict[str, list[dict[str, Any]]] = {name: [] for name in forward}
  for row in rows:
    if row["case"].startswith(SLOPE):
      slopes[row["case"].removeprefix(SLOPE).partition(" ")[2]].append(row)
  ratio = lambda row: row["mini"]["ms_median"] / row["torch"]["ms_median"]
  lines = [
    "# Forms beside PyTorch",
    "",
    f"Written by `CACHE=0 python examples/bench/sweep.py --report docs/sweep.md` on {limits.machine()}.",
    "ms: the median of a jitted call; ratio: of PyTorch's time; gradients: the largest ratio of those by each array;",
    "first: seconds of the first calls, forward and gradients, most of which compilers take.",
    "",
    *(f"- {name}: {value}" for name, value in summary(rows).items() if "PyTorch" in name),
    "",
    "| form | mini, ms | PyTorch, ms | ratio | gradients | first, s |",
    "|---|---|---|---|---|---|",
  ]
  for name, row in sorted(forward.items(), key=lambda item: -ratio(item[1])):
    mine, theirs = row["mini"]["ms_median"], row["torch"]["ms_median"]
    of_slopes = f"{max(map(ratio, slopes[name])):.2f}" if slopes[name] else ""
    first = sum(r["mini"]["first_s"] for r in (row, *slopes[name]))
    lines.append(f"| {name} | {mine:.3f} | {theirs:.3f} | {mine / theirs:.2f} | {of_slopes} | {first:.2f} |")
  lines += [
    "",
    "Kernels that take over a twentieth of a program's time, at under a tenth of what the machine can do at most:",
    "",
  ]
  lines += [f"- {row['case']}: {kernel}" for row in rows for kernel in row["below"]] or ["none"]
  return "\n".join(lines) + "\n"


def told(rows: list[dict[str, Any]]) -> dict[str, Any]:
  if args.report:
    Path(args.report).write_text(report(rows))
  return summary(rows)


if __name__ == "__main__":
  args = arguments(
    __doc__,
    ("--count", {"type": int, "default": 2, "help": "sizes of each form"}),
    ("--seed", {"type": int, "default": 0, "help": "of the sizes"}),
    ("--report", {"default": "", "metavar": "FILE", "help": "write the table there"}),
  )
  if not torch:
    sys.exit("sweep.py compares with PyTorch: pip install torch")
  args.seconds, args.rounds, args.below = (
    min(args.seconds, 0.15),
    min(args.rounds, 5),
    args.below or bool(args.report),
  )
  wanted = [form for form in FORMS if chosen(form.name, args)]
  run((c for form in wanted for c in cases(form, args.seed, args.count)), args, told)
