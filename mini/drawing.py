"""The graph of tensors as a picture (`visualize`) and as a list (`inspect`): every node that they are made of, once.
mini/extend/walk.py finds the nodes."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import prod
from typing import Any

from mini.extend.walk import Node, walk
from mini.ir.ops import OPS
from mini.tensor.autograd import tensors_of

WIDTH, HEIGHT, GAP = 132, 40, 28  # of a box, and between boxes, in pixels
COLORS = {"leaf": "#dbeafe", "view": "#f1f5f9", "data": "#fef3c7", "result": "#dcfce7"}


def _about(u: Node) -> str:
  """f32[3,4]"""
  return f"{u.dtype.short}[{','.join(map(str, u.shape))}]"


def _layers(nodes: list[Node]) -> list[list[Node]]:
  """Nodes by their longest way from a leaf; in a layer, each below the middle of its sources."""
  depth: dict[Node, int] = {}
  for u in nodes:
    depth[u] = 1 + max((depth[s] for s in u.inputs), default=-1)
  layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
  for u in nodes:
    layers[depth[u]].append(u)
  place: dict[Node, float] = {}
  for layer in layers:
    layer.sort(key=lambda u: sum(place[s] for s in u.inputs) / max(len(u.inputs), 1))
    place.update({u: n - (len(layer) - 1) / 2 for n, u in enumerate(layer)})
  return layers


def visualize(*tensors: Any) -> str:
  """The graph that tensors will be computed by, as SVG: a box for each node, sources above users. Nothing is computed.

  >>> x = Tensor([1.0, 2.0])
  >>> picture = mini.visualize((x * x).sum())
  >>> picture.startswith("<svg"), picture.count("<rect")
  (True, 4)
  """
  layers = _layers(list(walk(*tensors)))
  widest = max(map(len, layers), default=0)
  width, height = widest * (WIDTH + GAP) + GAP, len(layers) * (HEIGHT + GAP) + GAP
  results = {node for x in tensors for t in tensors_of(x) for *_, node in [walk(t)]}
  at = {u: (width / 2 + (n - len(layer) / 2) * (WIDTH + GAP) + GAP / 2, GAP + row * (HEIGHT + GAP))
        for row, layer in enumerate(layers) for n, u in enumerate(layer)}  # fmt: skip
  lines, boxes = [], []
  for u, (x, y) in at.items():
    for k, s in enumerate(u.inputs):
      end = x + WIDTH * (k + 1) / (len(u.inputs) + 1)
      lines.append(
        f'<line x1="{at[s][0] + WIDTH / 2:g}" y1="{at[s][1] + HEIGHT:g}" x2="{end:g}" y2="{y:g}" stroke="#64748b"/>'
      )
    kind = "result" if u in results else "leaf" if not u.inputs else "view" if _is_view(u) else "data"
    boxes.append(
      f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{COLORS[kind]}" stroke="#334155"/>'
      f'<text x="{x + WIDTH / 2:g}" y="{y + 17:g}" text-anchor="middle">{escape(_titled(u))}</text>'
      f'<text x="{x + WIDTH / 2:g}" y="{y + 33:g}" text-anchor="middle" fill="#64748b">{escape(_about(u))}</text>'
    )
  xmlns = "http://www.w3.org/2000/svg"
  head = f'<svg xmlns="{xmlns}" width="{width:g}" height="{height:g}" font-family="monospace" font-size="11">'
  return "\n".join([head, *lines, *boxes, "</svg>"])


def _is_view(u: Node) -> bool:
  return u.op in OPS and OPS[u.op].family == "view"


def _called(u: Node) -> str:
  """The operation, of a constant its value, of a reduction what it does."""
  if u.op == "const":
    return f"{u.attrs['value']}"
  return f"{u.op} {u.attrs['kind']}" if u.op in ("reduce", "scan") else u.op


def _titled(u: Node) -> str:
  """The same, with the variable that a result was bound to."""
  return f"{u.name} = {_called(u)}" if u.name else _called(u)


def inspect(*tensors: Any) -> str:
  """The same graph as lines: a node's number, operation, sources, type, bytes and operations. Nothing is computed.

  >>> x = Tensor([1.0, 2.0])
  >>> print(mini.inspect((x * x).sum()))
  %0 = buffer          : f32[2]  8 bytes
  %1 = mul %0, %0      : f32[2]  8 bytes, 2 operations
  %2 = reduce add %1   : f32[1]  4 bytes, 2 operations
  %3 = reshape %2      : f32[]   4 bytes
  """
  nodes = list(walk(*tensors))
  times = Counter(u.name for u in nodes)
  number = {u: f"%{u.name}" if u.name and times[u.name] == 1 else f"%{n}" for n, u in enumerate(nodes)}
  rows = []
  for u in nodes:
    size = prod(u.shape)
    operations = prod(u.inputs[0].shape) if u.op in ("reduce", "scan") else size
    work = f", {operations} operations" if u.inputs and not _is_view(u) else ""
    made = f"{number[u]} = {_called(u)} {', '.join(number[s] for s in u.inputs)}".rstrip()
    rows.append((made, _about(u), f"{size * u.dtype.itemsize} bytes{work}"))
  first, second = (max((len(r[n]) for r in rows), default=0) for n in (0, 1))
  return "\n".join(f"{a.ljust(first + 2)} : {b.ljust(second)}  {c}" for a, b, c in rows)
