"""Loops that nobody jitted, beside NumPy or PyTorch: sizes that grow and shrink, elements that are written one by one,
small arrays, training steps. Of the first run, with nothing kept, also its seconds and the runs of a compiler.

  python examples/bench/loops.py --only table,keys
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import arguments, chosen, in_turns, peer

import mini
from mini import Context, Tensor, nn, stats
from mini import numpy as mnp

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
  return RNG.standard_normal(shape).astype(np.float32)


# ---------------------------------------------------------------- written for NumPy


def diagonals(np: Any) -> float:
  """As an edit distance goes, along anti-diagonals that grow."""
  line = np.arange(1)
  for k in range(1, 200):
    far = np.asarray([k])
    line = np.minimum(np.concatenate([line + 1, far]), np.concatenate([far, line + 1]))
  return float(line.sum())


def masks(np: Any) -> float:
  """Points of the Mandelbrot set, of which fewer and fewer are left."""
  c = np.asarray(POINTS)
  z, steps = c * 0, 0.0
  for _ in range(50):
    z = z * z + c
    left = np.abs(z) < 2
    z, c = z[left], c[left]
    steps += len(c)
  return steps


def orthogonal(np: Any) -> float:
  """Gram-Schmidt: each vector less what it has of those before."""
  rows = np.asarray(VECTORS)
  found = rows[:1] / np.linalg.norm(rows[0])
  for v in rows[1:]:
    v = v - found.T @ (found @ v)
    found = np.concatenate([found, (v / np.linalg.norm(v))[None]])
  return float(np.abs(found @ found.T).sum())


def table(np: Any) -> float:
  """Dynamic programming: each cell from two before."""
  cells = np.zeros((20, 20))
  for i in range(1, 20):
    for j in range(1, 20):
      cells[i, j] = max(float(cells[i - 1, j]), float(cells[i, j - 1])) + WEIGHTS[i][j]
  return float(cells[-1, -1])


def walk(np: Any) -> float:
  """A particle in a field, with NumPy's scalars and vectors of three numbers."""
  x, v = np.zeros(3), np.asarray([1.0, 0.5, 0.2])
  for _ in range(200):
    a = -x / (1 + (x * x).sum()) - 0.1 * v
    v = v + 0.01 * a
    x = x + 0.01 * v
  return float(np.linalg.norm(x))


POINTS = (np.linspace(-2, 1, 150)[:, None] + 1j * np.linspace(-1.3, 1.3, 150)).ravel()
VECTORS = RNG.standard_normal((40, 60))
WEIGHTS = RNG.random((20, 20)).tolist()


# ---------------------------------------------------------------- written for PyTorch


def keys(lib: Any) -> Callable[[], float]:
  """Attention over keys and values that grow by one, 60 times."""
  q, ks = lib.tensor(floats(1, 4, 1, 32)), lib.tensor(floats(60, 1, 4, 1, 32))

  def run() -> float:
    k = ks[0]
    for n in range(1, 60):
      k = lib.cat([k, ks[n]], 2)
      out = (q @ k.transpose(-1, -2) / 6).softmax(-1) @ k
      out = out.realize() if isinstance(out, Tensor) else out
    return out.sum().item()

  return run


def elements(lib: Any) -> Callable[[], float]:
  """x[i] = v of a large tensor, each time elsewhere."""
  x = lib.tensor(np.zeros(1_000_000, np.float32))

  def run() -> float:
    for i in range(100):
      x[1000 * i] = float(i)
      x.realize() if isinstance(x, Tensor) else None
    return x[:1000].sum().item()

  return run


def numbers(lib: Any) -> Callable[[], float]:
  """Numbers of a large tensor, and what is made of them, each time elsewhere."""
  x = lib.tensor(RNG.random(1_000_000).astype(np.float32))

  def run() -> float:
    return sum(x[1000 * i].item() + (x[1000 * i + 1] * 2).item() for i in range(100))

  return run


def recurrence(lib: Any) -> Callable[[], float]:
  """x[i] = f(x[i - 1])."""
  x = lib.tensor(np.zeros(1_000_000, np.float32))

  def run() -> float:
    for i in range(1, 101):
      x[i] = x[i - 1] * 0.5 + 1
      x.realize() if isinstance(x, Tensor) else None
    return x[100].item()

  return run


def of_sizes(model: Callable[[Any], Any], shape: Callable[[int], tuple[int, ...]]) -> Callable[[Any], Any]:
  """What a model makes of inputs of 38 sizes."""

  def of(lib: Any) -> Callable[[], float]:
    lib.manual_seed(0)
    call, inputs = model(lib), [lib.tensor(floats(*shape(n))) for n in range(2, 40)]
    return lambda: sum(call(x).sum().item() for x in inputs)

  return of


def convolutions(lib: Any) -> Any:
  nn = lib.nn
  return nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))


def attention(lib: Any) -> Any:
  return lambda x: lib.nn.functional.scaled_dot_product_attention(x, x, x)


def stepper(make: Callable[[Any], tuple[Any, Callable[[], Any]]]) -> Callable[[Any], Callable[[], float]]:
  """A training step: of the parameters and the loss that `make` gives."""

  def of(lib: Any) -> Callable[[], float]:
    lib.manual_seed(0)
    parameters, loss_of = make(lib)
    optimizer = lib.optim.Adam(parameters, lr=1e-3)

    def run() -> float:
      optimizer.zero_grad()
      loss = loss_of()
      loss.backward()
      optimizer.step()
      return loss.item()

    return run

  return of


def mlp(lib: Any, low: bool = False) -> Any:
  net = lib.nn.Sequential(lib.nn.Linear(256, 512), lib.nn.ReLU(), lib.nn.Linear(512, 10))
  x, y = lib.tensor(floats(64, 256)), lib.tensor(RNG.integers(0, 10, 64))

  def loss() -> Any:
    with lib.low() if low else contextlib.nullcontext():
      return lib.nn.functional.cross_entropy(net(x), y)

  return [*net.parameters()], loss


def lstm(lib: Any) -> Any:
  layer, head = lib.nn.LSTM(32, 64, batch_first=True), lib.nn.Linear(64, 10)
  x, y = lib.tensor(floats(16, 20, 32)), lib.tensor(RNG.integers(0, 10, 16))
  loss = lambda: lib.nn.functional.cross_entropy(head(layer(x)[0][:, -1]), y)
  return [*layer.parameters(), *head.parameters()], loss


def vae(lib: Any) -> Any:
  layers = [lib.nn.Linear(a, b) for a, b in ((784, 400), (400, 20), (400, 20), (20, 400), (400, 784))]
  x = lib.tensor(RNG.random((64, 784)).astype(np.float32))

  def loss() -> Any:
    h = layers[0](x).relu()
    mean, spread = layers[1](h), layers[2](h)
    z = mean + lib.randn_like(mean) * (spread * 0.5).exp()
    out = layers[4](layers[3](z).relu()).sigmoid()
    kl = -0.5 * (1 + spread - mean * mean - spread.exp()).sum()
    return lib.nn.functional.binary_cross_entropy(out, x, reduction="sum") + kl

  return [p for layer in layers for p in layer.parameters()], loss


def pinn(lib: Any) -> Any:
  """Burgers' equation: gradients of gradients."""
  nn = lib.nn
  net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
  places, times = floats(200, 1), floats(200, 1)

  def loss() -> Any:
    x, t = lib.tensor(places, requires_grad=True), lib.tensor(times, requires_grad=True)
    u = net(lib.cat([x, t], 1))
    by_x, by_t = lib.grad(u.sum(), (x, t))
    (twice,) = lib.grad(by_x.sum(), (x,))
    return ((by_t + u * by_x - 0.01 * twice) ** 2).mean() + (u**2).mean()

  return [*net.parameters()], loss


class Ours:
  """mini under PyTorch's names."""

  tensor, cat, nn, optim = Tensor, Tensor.cat, nn, nn.optim
  manual_seed = staticmethod(Tensor.manual_seed)
  randn_like = staticmethod(lambda x: x.randn_like())
  grad = staticmethod(lambda y, xs: mini.autograd.grad(y, xs, create_graph=True))
  low = staticmethod(lambda: mini.autocast("bfloat16"))


def theirs() -> Any:
  """PyTorch, and what is called otherwise there; None where it is not installed."""
  torch = peer("torch")
  return torch and SimpleNamespace(
    **{name: getattr(torch, name) for name in ("tensor", "cat", "nn", "optim", "manual_seed", "randn_like")},
    grad=lambda y, xs: torch.autograd.grad(y, xs, create_graph=True),
    low=lambda: torch.autocast("cpu", torch.bfloat16),
  )


NUMPYS = {
  "diagonals that grow": diagonals,
  "masks that shrink": masks,
  "Gram-Schmidt": orthogonal,
  "a table": table,
  "vectors of 3": walk,
}
TORCHS = {
  "keys and values": keys,
  "x[i] = v": elements,
  "numbers read": numbers,
  "each from the last": recurrence,
  "images of 38 sizes": of_sizes(convolutions, lambda n: (1, 8, n, n)),
  "batches of 38 sizes": of_sizes(convolutions, lambda n: (n, 8, 12, 12)),
  "prompts of 38 lengths": of_sizes(attention, lambda n: (4, 8, 4 * n, 64)),
  "MLP step": stepper(mlp),
  "AMP step": stepper(lambda lib: mlp(lib, True)),
  "VAE step": stepper(vae),
  "PINN step": stepper(pinn),
  "LSTM step": stepper(lstm),
}


def main() -> None:
  args = arguments(__doc__)
  torch, rows = theirs(), []
  for name in filter(lambda n: chosen(n, args), [*NUMPYS, *TORCHS]):
    if name in NUMPYS:
      calls = {"mini": lambda f=NUMPYS[name]: f(mnp), "peer": lambda f=NUMPYS[name]: f(np)}
    elif torch is not None:
      calls = {"mini": TORCHS[name](Ours), "peer": TORCHS[name](torch)}
    else:
      continue
    with Context(CACHE="0"):
      before, begun = stats["compiles"], time.perf_counter()
      calls["mini"]()
      first, compiles = time.perf_counter() - begun, stats["compiles"] - before
      assert name not in NUMPYS or np.isclose(calls["mini"](), calls["peer"]()), name
      found = in_turns(calls, args.seconds, args.rounds)
    ours, other = found["mini"].median * 1e3, found["peer"].median * 1e3
    rows.append({"case": name, "mini_ms": ours, "peer_ms": other, "first_s": first, "compiles": compiles})
    if not args.json:
      if len(rows) == 1:
        print(f"{'':22}{'mini ms':>10}{'peer ms':>10}{'ratio':>8}{'first s':>10}{'compiles':>10}")
      line = f"{name:22}{ours:10.2f}{other:10.2f}{ours / other:8.2f}{first:10.2f}{compiles:10}"
      print(line, flush=True)
  if args.json:
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
  main()
