"""What models become: which values get memory and why, the recipe of each kernel and what it is estimated to take, how
often each value is computed. Of each kernel three digests, too: of its recipe, of all that was estimated on the way to it,
and of its source.

  python test/test_decisions.py            compares          python test/test_decisions.py --accept    writes what came out
  python test/test_decisions.py --print    all of it, with the recipes of every machine, to compare two states of the tree

The machines are described ones, so the text is the same on every machine: of the first all is recorded, of the others
the digests. `test/decisions.txt` is a record, not a goal:
who changes a decision accepts the new text, and the diff says which models the change reaches.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path
from random import Random
from unittest.mock import patch
from zlib import crc32

import pytest

from mini import Tensor, nn
from mini.codegen import contraction as product
from mini.codegen import convolution as window
from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.linearize import lanes, places
from mini.codegen.search import estimate, neighbours
from mini.engine.plan import scheduled, sharing
from mini.engine.realize import Numbered
from mini.ir.graph import shape
from mini.ir.rules import simplify
from mini.ir.uop import closed, rsize, toposort
from mini.render import render_for
from mini.text.printer import graph_program

RECORD = Path(__file__).parent / "decisions.txt"
MACHINES = {
  "AVX2": Machine(threads=2),
  "AVX-512": Machine(threads=4, lanes=16, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, issue=8),
  "CUDA": Machine(
    lanes=4,
    kind="gpu",
    group=1024,
    shared_bytes=48 << 10,
    units=16,
    matrices=frozenset({"m16n8k16 f16", "m16n8k16 bf16", "m16n8k8 tf32"}),
    fast=True,
  ),
  "OpenCL": Machine(lanes=4, kind="gpu", group=256, shared_bytes=32 << 10, units=16),
  "Metal": Machine(
    lanes=4,
    kind="gpu",
    group=1024,
    shared_bytes=32 << 10,
    units=4,
    matrices=frozenset({"8x8 f32", "8x8 f16"}),
  ),
}
PRINTED = {"AVX2": "CPU", "AVX-512": "CPU", "CUDA": "CUDA"}  # of which the source is recorded: the language
COUNTED = ("exp", "log", "sin", "tanh", "erf", "rsqrt", "sqrt", "div", "pow", "threefry")

# ---------------------------------------------------------------- the models: tensors whose values are asked for


def data(*size):
  return Tensor.zeros(*size).contiguous().realize()


def leaf(*size):
  return data(*size).requires_grad_()


def step(loss, *leaves):
  """A loss and its gradients."""
  return [loss, *loss.gradient(*leaves)]


def perceptron():
  x, w, b, v = data(128, 784), leaf(512, 784), leaf(512), leaf(10, 512)
  return step((x.linear(w, b).relu() @ v.T).cross_entropy(Tensor([3] * 128)), w, b, v)


def gelu_and_norm():
  x, w, g = leaf(256, 384), leaf(1536, 384), leaf(384)
  return step((x.layer_norm((384,), g) @ w.T).gelu().square().mean(), x, w, g)


def attention():
  q, k, v = (leaf(2, 6, 256, 64) for _ in "qkv")
  return step(q.scaled_dot_product_attention(k, v, is_causal=True).square().sum(), q, k, v)


def convolution():
  x, w, g, b = data(4, 16, 32, 32), leaf(32, 16, 3, 3), leaf(32), leaf(32)
  y = x.conv2d(w, padding=1).batch_norm(None, None, g, b, training=True).relu().max_pool2d(2)
  return step(y.mean(), w, g, b)


def depthwise():
  x, w, d = data(1, 32, 28, 28), data(64, 32, 1, 1), data(64, 1, 3, 3)
  return [x.conv2d(w).silu().conv2d(d, padding=1, groups=64).hardswish()]


def lstm():
  cell = nn.LSTMCell(64, 128)
  for p in cell.parameters():
    p.assign(data(*p.shape))
  h, c = cell(data(32, 64), (data(32, 128), data(32, 128)))
  return [h, c, *h.sum().gradient(*cell.parameters())]


def adamw():
  p, g, m, v = (data(512, 512) for _ in range(4))
  m, v = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
  return [p * 0.999 - m / (v.sqrt() + 1e-8) * 0.001, m, v]


def language_model():
  table, tokens = leaf(1000, 64), Tensor([1, 5, 7, 9] * 8).realize()
  return step((table[tokens] @ table.T).cross_entropy(tokens), table)


def statistics():
  x = data(4096, 1024)
  return [x.softmax(1), x.var(1), x.sum(), x.sum(0), x.cumsum(1), x.argmax(1), x.logsumexp(0)]


def two_products():
  a, b, c, d = (data(256, 256) for _ in "abcd")
  return [a @ b + c @ d, (a @ b).tanh() @ c]


def strided_convolution():
  x, w = leaf(4, 32, 28, 28), leaf(64, 32, 3, 3)
  return step(x.conv2d(w, stride=2, padding=1).relu().sum(), x, w)


def small_images():
  """Of ResNets' last layers: gradients by the input of strided convolutions, few places and many channels."""
  x, w, v = leaf(2, 64, 12, 12), leaf(128, 64, 3, 3), leaf(128, 64, 1, 1)
  y, u = leaf(1, 256, 7, 7), leaf(256, 256, 3, 3)
  return [
    *step(x.conv2d(w, stride=2, padding=1).square().sum() + x.conv2d(v, stride=2).sum(), x, w, v),
    *step(y.conv2d(u, padding=1).square().sum(), y, u),
  ]


def other_convolutions():
  x, s = leaf(2, 24, 20, 27), leaf(2, 8, 100)
  grouped, stem, up, line = leaf(48, 6, 3, 3), leaf(16, 24, 7, 7), leaf(24, 12, 4, 4), leaf(16, 8, 5)
  found = [
    x.conv2d(grouped, padding=2, dilation=2, groups=4),
    x.conv2d(stem, stride=2, padding=3),
    x.conv_transpose2d(up, stride=2, padding=1),
    s.conv1d(line, stride=3),
  ]
  return step(sum(y.square().sum() for y in found), x, s, grouped, stem, up, line)


def image_of_one_channel():
  x, w, v = leaf(8, 1, 28, 28), leaf(6, 1, 5, 5), leaf(16, 6, 5, 5)
  y = x.conv2d(w, padding=2).relu().avg_pool2d(2).conv2d(v).relu().max_pool2d(2)
  return step(y.square().sum(), x, w, v)


def depthwise_gradients():
  x, w = leaf(2, 32, 14, 14), leaf(32, 1, 5, 5)
  return step(x.conv2d(w, padding=2, groups=32).square().sum(), x, w)


def windows():
  x, w, v = data(4, 8, 33, 33), data(16, 8, 7), data(4, 8, 3, 3, 3)
  sums = [x.avg_pool2d(3, 1, 1), x.max_pool2d(3, 2), x.unfold(3, 5, 3).amax(-1)]
  return [*sums, x.flatten(2).conv1d(w, dilation=2), x.reshape(4, 8, 3, 11, 33).conv3d(v)]


def sixteen_bits():
  x, w, v = data(32, 512).bfloat16(), data(512, 512).bfloat16(), data(512, 512).half()
  return [x @ w.T, (x[:1] @ w).relu(), x.half() @ v, v.float().sum(0)]


def eight_bits():
  x, w = Tensor([[1]] * 64, dtype="int8").expand(64, 256).contiguous(), Tensor([1] * 256, dtype="int8")
  return [(x.int() @ x.T.int()) * 2, x.int() @ w.int(), (x.float() - 3.0).square().mean(0)]


def batches():
  x, w, v = data(8, 65, 48), data(8, 48, 130), data(8, 130)
  return [x @ w, (x @ w + v.unsqueeze(1)).softmax(2), x.mT @ x, w.sum(2), (w * v.unsqueeze(1)).sum(2)]


def products_of_all_forms():
  rows = [data(n, 300) for n in (1, 2, 7, 16, 33)]
  w, v, thin, long = data(300, 500), data(300, 17), data(2000, 3), data(8, 20000)
  found = [r @ w for r in rows] + [r @ v for r in rows]
  return [
    *found,
    thin @ thin.T,
    thin.T @ thin,
    long @ long.T,
    (rows[4] @ w + 1).tanh().T @ rows[4],
    w.T[:64] @ w,
    Tensor.einsum("bik,bjk->ij", data(2, 8, 3600), data(2, 5, 3600)),
  ]


def half_products():
  """What matrix instructions take, where a machine has them."""
  x, y = (data(256, 128).half().contiguous().realize() for _ in "xy")
  b = data(128, 128).bfloat16().contiguous().realize()
  several = data(4, 128, 64)
  return [x @ y.T, b @ b, data(512, 64) @ data(64, 512), several @ several.mT, data(48, 40) @ data(40, 24)]


def blocks():
  """What no matrix instruction takes: as many blocks as there are units, one fewer, one more."""
  found = []
  for batch, m, n in ((8, 128, 64), (4, 128, 128), (16, 64, 64), (3, 192, 96), (1, 256, 256)):
    a, b = (data(batch, *s).double().contiguous().realize() for s in ((m, 40), (40, n)))
    found.append(a @ b)
  return found


def narrow_products():
  """Few columns, sums and results, beside what is packed or kept for each."""
  a = data(512, 96)
  found = [a.T @ data(512, n) for n in (8, 15, 16, 17, 32, 33, 64)]
  found += [data(n, 512) @ a for n in (3, 4, 5)]
  strided = data(512, 300)
  found += [strided[:, ::3] @ data(100, 34), strided[:, ::3].T @ a, (a[:, :64] @ data(64, 64)) @ data(64, 10)]
  return found


def rows_of_all_widths():
  found = []
  for n in (2, 3, 8, 9, 16, 24, 32, 64, 100, 128, 256):
    x = data(50, n)
    found += [x.softmax(1), (x * 2).sum(1), x.T.square().sum(0), data(n, 50).amax(0), x.T.softmax(1)]
  return found + [
    data(64, n)[:, :3].sum(1) for n in (512, 513)
  ]  # as far apart as what lanes take together, and farther


def at_the_limits_of_chains():
  """What is read again for each row: as much as a cache holds, and more; rows of as much as the stack holds, and more."""
  found = []
  for rows, inner, middle in (
    (4096, 256, 512),
    (4096, 256, 513),
    (64, 256, 16384),
    (64, 256, 20000),
    (1 << 14, 64, 2048),
  ):
    x, w, v = data(rows, inner), data(middle, inner), data(inner, middle)
    found.append((x @ w.T).relu() @ v.T)
  return found


def images_padded_on_one_side():
  x, w, v = leaf(2, 16, 15, 18), leaf(32, 16, 3, 3), leaf(16, 8, 2, 2)
  found = [x.conv2d(w, padding=p) for p in ((0, 1), (1, 0))]
  found += [
    x.conv_transpose2d(v, stride=2),
    x.conv2d(w, stride=(1, 2)),
    x.pixel_shuffle(2),
    x.permute(0, 2, 3, 1).mean(3),
  ]
  return step(sum(y.square().sum() for y in found), x, w, v)


def chains():
  """Two products of which the first may be made on the stack of the second, by what it is read again for."""
  x, w, v = data(64, 256), data(1024, 256), data(256, 1024)
  wide, deep = data(16, 4096), data(4096, 4096)
  return [
    (x @ w.T).relu() @ v.T,
    (wide @ deep).gelu() @ deep[:64].T,
    (data(2048, 16) @ data(16, 512)).exp() @ v.T[:512],
  ]


def long_sums():
  x = data(1 << 22)
  return [
    x.sum(),
    (x * x).mean(),
    x.reshape(4, -1).amax(1),
    x.reshape(-1, 4).sum(0),
    x.cumsum(0),
    x[:77].var(),
  ]


def updates():
  x, n = data(1000, 30), Tensor.arange(30).realize()
  masked = ((n > 3) & (n < 20)).where(x * 2, 0)
  shifted = x.pad(((1, 0), (0, 2)))
  return [
    masked.sum(1),
    shifted,
    x.flip(0).T.contiguous(),
    x[:, 1:9:2] + x[:, 9:17:2],
    x[n].mean(0),
    x.reshape(30, 1000),
  ]


def causal():
  q, k, v, mask = (leaf(1, 2, 128, 32) for _ in "qkvm")
  scores = (q @ k.mT / 6).masked_fill(Tensor.ones(128, 128, dtype="bool").triu(1), -1e9)
  return step((scores.softmax(-1) @ v * mask).sum(), q, k, v)


def drawn_convolutions():
  r, found = Random(1), []
  for _ in range(14):
    size, k = [r.choice((7, 9, 8, 14, 19, 28, 33, 56)) for _ in "hw"], r.choice((1, 2, 3, 3, 5, 7))
    c, o, groups = r.choice((1, 3, 8, 16, 20, 48, 64, 96)), r.choice((1, 4, 8, 24, 32, 40, 64, 128)), 1
    if r.random() < 0.2:
      o = groups = c
    x, w = leaf(r.choice((1, 2, 8)), c, *size), leaf(o, c // groups, k, k)
    y = x.conv2d(
      w,
      stride=r.choice((1, 1, 2, 3)),
      padding=r.choice((0, k // 2)),
      dilation=r.choice((1, 1, 1, 2)) if k < 4 else 1,
      groups=groups,
    )
    found += r.choice(([y.relu()], step(y.square().sum(), x), step(y.square().sum(), w)))
  return found


def drawn_products():
  r, found = Random(2), []
  for _ in range(30):
    sizes = [
      r.choice((1, 2, 3, 5, 8, 15, 17, 32, 48, 64, 100, 129, 256, 500, 768, 1024, 3000)) for _ in range(3)
    ]
    n, k, m = sizes if r.random() < 0.5 else sorted(sizes)
    kind, batch = (
      r.choice(("float32",) * 4 + ("float64", "bfloat16", "int8")),
      r.choice(((), (), (3,), (16,))),
    )
    a, b = (
      (data(*batch, *s).mT if r.random() < 0.4 else data(*batch, *reversed(s))).cast(kind)
      for s in ((k, n), (m, k))
    )
    a, b = (t.contiguous().realize() if kind != "float32" else t for t in (a, b))
    y = (a.int() @ b.int()) if kind == "int8" else a @ b
    found.append(r.choice((y, y, y.relu(), y.exp() + 1 if kind != "int8" else y + 1)))
  return found


def drawn_attention():
  r, found = Random(3), []
  for _ in range(6):
    batch, heads, t, s, d = (
      r.choice((1, 4)),
      r.choice((1, 5, 12)),
      r.choice((9, 27, 54, 100, 300)),
      r.choice((16, 60, 128, 333)),
      r.choice((8, 24, 32, 40, 64, 80, 128)),
    )
    causal = r.random() < 0.5
    q, k, v = (
      leaf(batch, heads, t, d),
      leaf(batch, heads, t if causal else s, d),
      leaf(batch, heads, t if causal else s, d),
    )
    y = q.scaled_dot_product_attention(k, v, is_causal=causal)
    found += step(y.square().sum(), q, k, v) if r.random() < 0.4 else [y]
  q, k = data(1, 2, 9, 40), data(1, 2, 64, 40)  # one row more than a tile has
  return [*found, q.scaled_dot_product_attention(k, k)]


def drawn_sums():
  r, found = Random(4), []
  for _ in range(30):
    sizes = [r.choice((1, 2, 3, 7, 8, 16, 30, 64, 100, 257, 1024, 4000)) for _ in range(3)]
    if prod(sizes) > 1 << 22:
      continue
    x = data(*sizes)
    x = x.permute(*r.sample(range(3), 3)) if r.random() < 0.5 else x
    axes = r.sample(range(3), r.choice((1, 1, 2)))
    x = r.choice((x, x * 2 + 1, x.exp(), x.half(), x * x[:1]))
    found.append(r.choice((x.sum, x.amax, x.var, x.mean, x.logsumexp))(tuple(axes)))
    found.append(x.softmax(axes[0]) if r.random() < 0.3 else x.cumsum(axes[0]))
  return found


DRAWN = (
  drawn_convolutions,
  drawn_products,
  drawn_attention,
  drawn_sums,
)  # of these there are digests alone, for CPUs
MODELS = (
  *DRAWN,
  perceptron,
  gelu_and_norm,
  attention,
  convolution,
  depthwise,
  lstm,
  adamw,
  language_model,
  statistics,
  two_products,
  strided_convolution,
  small_images,
  other_convolutions,
  image_of_one_channel,
  depthwise_gradients,
  windows,
  sixteen_bits,
  eight_bits,
  batches,
  products_of_all_forms,
  half_products,
  blocks,
  narrow_products,
  rows_of_all_widths,
  at_the_limits_of_chains,
  images_padded_on_one_side,
  chains,
  long_sums,
  updates,
  causal,
)

# ---------------------------------------------------------------- their text


def computed(nodes, times):
  """{operation: how often it is computed}."""
  found = dict.fromkeys(COUNTED, 0)
  for u in nodes:
    if u.op in found:
      found[u.op] += times(u)
  return found


def text_of(model):
  roots = simplify(list(Numbered([t.uop for t in model()]).roots))
  machines = {name: m for name, m in MACHINES.items() if m.kind == "cpu" or model not in DRAWN}
  return "\n".join(
    x.rstrip() for name, m in machines.items() for x in decided(model.__name__, roots, name, m)
  )


def digest(text):
  return f"{crc32(text.encode()) & 0xFFFF:04x}"


@contextmanager
def estimates() -> Iterator[list[str]]:
  """All that is estimated of tiles while recipes are written: a line for each plan that was proposed."""
  lines: list[str] = []

  def watched(propose):
    def proposed(*args):
      for plan in propose(*args):
        lines.append(
          " ".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in plan if not isinstance(x, tuple))
        )
        yield plan

    return proposed

  makers = (product, "plans"), (window, "plans"), (window, "channel_plans")
  with ExitStack() as stack:
    for module, maker in makers:
      stack.enter_context(patch.object(module, maker, watched(getattr(module, maker))))
    yield lines


def written(kernel, name, machine):
  """(the kernel with its recipe, the recipe, the digests of what became of it)"""
  with estimates() as lines:
    tuned, recipe = write_recipe(kernel, machine)
  source = render_for(PRINTED[name], {"KERNEL": tuned}, machine.lanes) if name in PRINTED else ""
  return tuned, recipe, "-".join(map(digest, (recipe, "\n".join(lines), source)))


def decided(model, roots, name, machine):
  is_first = name == next(iter(MACHINES)) and model not in {m.__name__ for m in DRAWN}
  found = scheduled(graph_program("g", tuple(roots)), machine.kind == "gpu")
  kernels, same, why = found.kernels, sharing(found.results), found.why
  made = [(k, *written(k, name, machine)) for k in kernels]
  cycles = [f"{estimate(k, machine):.6g}" if machine.kind == "cpu" else "" for _, k, *_ in made]
  head = f"model {model} on {name}: {len(kernels)} kernels, outputs {same}"
  if not is_first and "--print" not in sys.argv:
    digests = [found for *_, found in made]
    yield "; ".join([head, *map(" ".join, (filter(None, pair) for pair in zip(digests, cycles)))])
    return
  yield head
  for memory, reasons in sorted(why.items(), key=lambda pair: (len(pair[0]), pair[0])):
    yield from (f"  {memory}: {reason}" for reason in reasons)
  asked = computed(toposort(*roots), lambda u: prod(shape(u)))
  done = dict.fromkeys(COUNTED, 0)
  for n, (k, tuned, recipe, found) in enumerate(made):
    place = places(tuned)
    for op, times in computed(place, lambda u, place=place: prod(map(rsize, (*place[u], *lanes(u))))).items():
      done[op] += times
    size = "x".join(str(rsize(r)) for r in closed(k))
    yield f"  kernel {k.arg.what} {size} ({cycles[n]} cycles) {found}: {'; '.join(recipe.splitlines())}"
    if n == 0:
      tried = [f"{c.cost:.4g}" for c in neighbours(k, recipe, machine)]
      yield f"    {len(tried)} recipes beside it ({digest(' '.join(tried))}), the first of {' '.join(tried[:8])} cycles"
  for op, n in done.items():
    if n or asked[op]:
      yield f"  {op}: {asked[op]:,} in the graph, {n:,} computed"


def record():
  return "\n\n".join(map(text_of, MODELS)) + "\n"


@pytest.mark.sample(15)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_decisions_are_as_recorded(model):
  recorded = {text.split(":")[0].split()[1]: text for text in RECORD.read_text().strip().split("\n\n")}
  assert text_of(model) == recorded[model.__name__], "a decision: python test/test_decisions.py --accept"


if __name__ == "__main__":
  if "--print" in sys.argv:
    print(record(), end="")
  elif "--accept" in sys.argv:
    RECORD.write_text(record())
  else:
    print(
      "as recorded" if RECORD.read_text() == record() else "differs: python test/test_decisions.py --accept"
    )
