"""What ten models become: which values get memory and why, the recipe of each kernel, how often each value is computed.

  python test/test_decisions.py            compares          python test/test_decisions.py --accept    writes what came out

The machine is a described one, so the text is the same on every machine. `test/decisions.txt` is a record, not a goal:
who changes a decision accepts the new text, and the diff says which models the change reaches.
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

import pytest

from mini import Tensor, nn
from mini.codegen.heuristic import Machine, write_recipe
from mini.codegen.linearize import lanes, places
from mini.engine.program import scheduled
from mini.engine.realize import Numbered
from mini.ir.graph import shape
from mini.ir.rules import simplify
from mini.ir.text import graph_program
from mini.ir.uop import closed, rsize, toposort

RECORD = Path(__file__).parent / "decisions.txt"
MACHINE = Machine(threads=2)
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


MODELS = (
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
  why = {}
  kernels, same, _ = scheduled(graph_program("g", tuple(roots)), {}, why=why)
  asked = computed(toposort(*roots), lambda u: prod(shape(u)))
  done = dict.fromkeys(COUNTED, 0)
  lines = [f"model {model.__name__}: {len(kernels)} kernels, outputs {same}"]
  for memory, reasons in sorted(why.items(), key=lambda pair: (len(pair[0]), pair[0])):
    lines += [f"  {memory}: {reason}" for reason in reasons]
  for k in kernels:
    tuned, recipe = write_recipe(k, MACHINE)
    place = places(tuned)
    for op, n in computed(place, lambda u, place=place: prod(map(rsize, (*place[u], *lanes(u))))).items():
      done[op] += n
    lines.append(
      f"  kernel {k.arg.what} {'x'.join(str(rsize(r)) for r in closed(k))}: {'; '.join(recipe.splitlines())}"
    )
  lines += [f"  {op}: {asked[op]:,} in the graph, {n:,} computed" for op, n in done.items() if n or asked[op]]
  return "\n".join(lines)


def record():
  return "\n\n".join(map(text_of, MODELS)) + "\n"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_decisions_are_as_recorded(model):
  recorded = {text.split(":")[0].split()[1]: text for text in RECORD.read_text().strip().split("\n\n")}
  assert text_of(model) == recorded[model.__name__], "a decision: python test/test_decisions.py --accept"


if __name__ == "__main__":
  if "--accept" in sys.argv:
    RECORD.write_text(record())
  else:
    print(
      "as recorded" if RECORD.read_text() == record() else "differs: python test/test_decisions.py --accept"
    )
