"""Many forms, at sizes that are drawn, each beside PyTorch: what single rows do not show.

  python examples/bench/sweep.py                        every form at 2 sizes, and its gradients (4 minutes)
  python examples/bench/sweep.py --only conv --count 9  some, at more sizes
  python examples/bench/sweep.py --seed 3               other sizes

The names are the same in both libraries, so a form is one function of `F` and tensors. Results are compared with
PyTorch's in float64 before they are timed. At the end: our part of PyTorch's time, in geometric mean, and the rows that
take longest beside it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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


def drawn(form: Form, rng: np.random.Generator) -> Shapes:
  """Sizes that are not too large; one in two is a multiple of 16, where it may be."""

  def draw(least: int, most: int) -> int:
    n = round(float(np.exp(rng.uniform(np.log(least), np.log(most)))))
    return max(least, n // 16 * 16) if n >= 16 and rng.random() < 0.5 else n

  while True:
    shapes = form.shapes(draw)
    if 4 * sum(map(np.prod, shapes)) < MOST_BYTES and form.gflop(*shapes) < MOST_GFLOP:
      return shapes


def cases(form: Form, seed: int, count: int) -> Iterator[Case]:
  """A form at some sizes, and its gradients there, one by one: a compiler leaves out what another's takes."""
  for n in range(count):
    rng = np.random.default_rng([seed, n, *form.name.encode()])
    arrays = [rng.standard_normal(s, np.float32) for s in drawn(form, rng)]
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


if __name__ == "__main__":
  args = arguments(
    __doc__,
    ("--count", {"type": int, "default": 2, "help": "sizes of each form"}),
    ("--seed", {"type": int, "default": 0, "help": "of the sizes"}),
  )
  if not torch:
    sys.exit("sweep.py compares with PyTorch: pip install torch")
  args.seconds, args.rounds = min(args.seconds, 0.15), min(args.rounds, 5)
  wanted = [form for form in FORMS if chosen(form.name, args)]
  run((c for form in wanted for c in cases(form, args.seed, args.count)), args, summary)
