"""`walk`: the graph that tensors will be computed by, in public. drawing.py prints it; an evaluator of one's own may
compute it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mini.engine.buffer import leaf_of
from mini.ir import graph
from mini.ir.inline import written_out
from mini.ir.uop import UOp
from mini.tensor.autograd import given_tensors
from mini.tensor.handle import Handle
from mini.text.printer import ATTRIBUTES, KINDS
from mini.types import DType

MARKS = ("tag", "detach", "after")  # whose value is that of their first source


class Node:
  """One node. Two are equal if they are the same node; what is computed twice in a program is one node if it was built
  equally.

  op       the operation: a row of `python -m mini ops`, or the name of a function that `op` decorates
  inputs   nodes
  dtype, shape
  name     the variable that the result of a named operation was bound to, or ""
  attrs    what else decides its value, by name: axes, shape, value, ...
  body     of a named operation, the node that it is computed by; else None
  """

  __slots__ = ("_uop", "body", "inputs")

  def __init__(self, u: UOp, inputs: tuple[Node, ...], body: Node | None):
    self._uop, self.inputs, self.body = u, inputs, body

  @property
  def op(self) -> str:
    return self._uop.memo["named"].op if "named" in self._uop.memo else self._uop.op

  @property
  def name(self) -> str:
    return self._uop.memo["named"].variable if "named" in self._uop.memo else ""

  @property
  def dtype(self) -> DType:
    return self._uop.dtype

  @property
  def shape(self) -> tuple[int, ...]:
    return graph.shape(self._uop)

  @property
  def attrs(self) -> dict[str, Any]:
    """axes, axis, shape, widths, spans, device, place; kind of reduce, scan and scatter; value of const; size of iota;
    function of call."""
    u = self._uop
    if "named" in u.memo or u.op in (*MARKS, "buffer"):
      return {}
    if u.op in KINDS:
      return {"kind": u.arg[0], ATTRIBUTES[u.op]: u.arg[1]}
    if u.op == "call":
      return {"function": u.arg[0].f}
    name = {"const": "value", "iota": "size", **ATTRIBUTES}.get(u.op)
    return {name: u.arg} if name else {}

  def numpy(self) -> np.ndarray:
    """The values of memory: of a node whose op is buffer."""
    leaf = leaf_of(self._uop)
    if leaf is None:
      raise ValueError(f"only memory has values before it is computed; this is {self.op}")
    return Handle._new(leaf).numpy()

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Node) and other._uop is self._uop

  def __hash__(self) -> int:
    return hash(self._uop)

  def __repr__(self) -> str:
    return f"<{self.op} {self.dtype.short}[{', '.join(map(str, self.shape))}]>"


def walk(*tensors: Any, inside: bool = False) -> Iterator[Node]:
  """The nodes that tensors will be computed by, each once, sources before users. Nothing is computed.
  tensors: those in nested lists, tuples and dicts; arrays of mini.numpy are some, too. DTypeError of what holds none.

  Of one tensor, the last node is its own. inside: also what named operations are made of, before them. Marks that
  gradients go by are left out.

  >>> x = Tensor([1.0, 2.0])
  >>> [node.op for node in mini.walk((x * 3).sum())]
  ['buffer', 'const', 'mul', 'reduce', 'reshape']
  """
  made: dict[UOp, Node] = {}
  found = [t for x in tensors for t in given_tensors("walk", x)]
  stack = [shown(t._node) for t in reversed(found)]
  while stack:
    u = stack[-1]
    if u in made:
      stack.pop()
      continue
    about = u.memo.get("named")
    sources = [shown(s) for s in (about.inputs if about else u.src)]
    beneath = [shown(u.src[0])] if about and inside else []
    waiting = [s for s in (*sources, *beneath) if s not in made]
    if waiting:
      stack += reversed(waiting)
      continue
    stack.pop()
    body = made[beneath[0]] if beneath else None
    made[u] = Node(u, tuple(made[s] for s in sources), body)
    yield made[u]


def shown(u: UOp) -> UOp:
  """The node that a walk shows in the place of u: marks go, but those that name an operation."""
  while "named" not in u.memo and (u.op in MARKS or u.op == "invoke"):
    u = written_out(u) if u.op == "invoke" else u.src[0]
  return u
