"""Recurrent networks: RNN, LSTM, GRU, and their cells, with PyTorch's names, gates and layouts.

The products with the inputs of all steps are one; a step multiplies its state alone. What a step reads and gives stands
apart in memory, so that all steps of a layer are the same few kernels, compiled once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.sizes import Variable
from mini.jitted import jit
from mini.nn.layers import uniform_within
from mini.nn.module import Module, Parameter
from mini.nn.utils.rnn import PackedSequence
from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError

State = tuple[Tensor, ...]  # (h,), or (h, c) of an LSTM


class Kind(NamedTuple):
  """A kind of cell: how many gates it has, and its step: (of the input, of the state, state) -> the new state.

  Both products are T[N, gates * H], with their biases.
  """

  gates: int
  step: Callable[[Tensor, Tensor, State], State]


def _lstm(a: Tensor, b: Tensor, state: State) -> State:
  """https://doi.org/10.1162/neco.1997.9.8.1735"""
  i, f, g, o = (a + b).chunk(4, -1)
  c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
  return o.sigmoid() * c.tanh(), c


def _gru(a: Tensor, b: Tensor, state: State) -> State:
  """https://arxiv.org/abs/1406.1078"""
  (ar, az, an), (br, bz, bn) = a.chunk(3, -1), b.chunk(3, -1)
  z, n = (az + bz).sigmoid(), (an + (ar + br).sigmoid() * bn).tanh()
  return (n + z * (state[0] - n),)


# fmt: off
KINDS = {
  "tanh": Kind(1, lambda a, b, state: ((a + b).tanh(),)),
  "relu": Kind(1, lambda a, b, state: ((a + b).relu(),)),
  "lstm": Kind(4, _lstm),
  "gru":  Kind(3, _gru),
}
# fmt: on


def apart(t: Tensor, value: bool = True) -> Tensor:
  """In memory of its own, and so is its gradient; or only that."""
  u = graph.stage(t._node) if value else t._node
  return t._new(with_gradient(u, lambda g, out, x: (graph.stage(g),), t._node))


def ends(layer: int, directions: int) -> list[str]:
  """Of the names of its weights, one for each direction."""
  return [f"l{layer}", f"l{layer}_reverse"][:directions]


def _kind(name: str, nonlinearity: str) -> Kind:
  if nonlinearity not in ("tanh", "relu"):
    fail(ArgumentError, f'{name}: nonlinearity is "tanh" or "relu", not {nonlinearity!r}')
  return KINDS[nonlinearity]


@dataclass(frozen=True)
class Plan:
  """What layers compute, apart from their weights: all layers, in their directions."""

  kind: Kind
  states: int  # how many tensors a state has
  layers: int
  directions: int
  hidden: int
  projected: int  # the size of h where that is not hidden, or 0
  dropout: float
  batch_first: bool

  def __call__(
    self, x: Tensor, states: State, lengths: Tensor | None, weights: dict[str, Tensor]
  ) -> tuple[Tensor, Any]:
    alone = x.ndim == 2
    if alone:
      x, states = x.unsqueeze(1), tuple(s.unsqueeze(1) for s in states)
    elif self.batch_first:
      x = x.transpose(0, 1)
    steps = x.shape[0]
    if type(steps) is Variable:  # as many steps as there may be, of which so many count
      lengths = Tensor(steps) if lengths is None else lengths
      x = x.pad((0, 0, 0, 0, 0, steps.most - steps))
    # bool[L, N, 1], or bool[L, 1, 1] where all sequences have the same length: which steps count
    alive = None if lengths is None else (Tensor.arange(len(x)).unsqueeze(1) < lengths).unsqueeze(-1)
    last: list[State] = []
    for layer in range(self.layers):
      if layer and self.dropout:
        x = x.dropout(self.dropout, training=True)
      found = []
      for n, end in enumerate(ends(layer, self.directions)):
        at = layer * self.directions + n
        begin = tuple(s[at] for s in states) if states else self.zeros(x)
        out, after = self.run(x, end, begin, alive, weights, backwards=n == 1)
        found.append(out)
        last.append(after)
      x = found[0].cat(*found[1:], dim=-1)
    x = x[:steps] if type(steps) is Variable else x
    final = [h[0].stack(*h[1:]) for h in zip(*last)]
    if alone:
      x, final = x.squeeze(1), [s.squeeze(1) for s in final]
    elif self.batch_first:
      x = x.transpose(0, 1)
    return x, final[0] if self.states == 1 else tuple(final)

  def zeros(self, x: Tensor) -> State:
    sizes = (self.projected or self.hidden, self.hidden)
    return tuple(Tensor.zeros(x.shape[1], n, dtype=x.dtype, device=x.device) for n in sizes[: self.states])

  def run(
    self, x: Tensor, end: str, state: State, alive: Tensor | None, weights: dict[str, Tensor], backwards: bool
  ) -> tuple[Tensor, State]:
    """One layer in one direction.   x: T[L, N, I] -> T[L, N, H]"""
    wi, wh = weights[f"weight_ih_{end}"], weights[f"weight_hh_{end}"]
    bi, bh, wr = (weights.get(f"{n}_{end}") for n in ("bias_ih", "bias_hh", "weight_hr"))
    products = apart(x.linear(wi, bi))
    state, found = tuple(s.contiguous() for s in state), []
    for t in reversed(range(len(x))) if backwards else range(len(x)):
      new = self.kind.step(apart(products[t], value=False), state[0].linear(wh, bh), state)
      if wr is not None:
        new = (new[0].linear(wr), new[1])
      if alive is None:
        state = tuple(map(apart, new))
        found.append(apart(state[0], value=False))
      else:
        lives = alive[t].contiguous()
        state = tuple(apart(lives.where(a, b)) for a, b in zip(new, state))
        found.append(apart(lives.where(state[0], 0), value=False))
    found = found[::-1] if backwards else found
    return found[0].stack(*found[1:]), state


@functools.lru_cache(64)
def captured(plan: Plan) -> Callable[..., Any]:
  """The plan, of which the hundreds of operations of a sequence are one call, and those of its gradient another."""
  return jit(plan, most=64)


# {layers: {plan: (weights, that, captured with these)}}
_with_weights: WeakKeyDictionary[Module, dict[Plan, tuple[list[Tensor], Callable[..., Any]]]] = (
  WeakKeyDictionary()
)


def captured_for(layers: Module, plan: Plan, weights: dict[str, Tensor]) -> Callable[..., Any]:
  """The same with the weights of some layers: they may be parts of an optimizer's buffer, which arguments are not."""
  if not all(t._is_own_tag() for t in weights.values()):
    return functools.partial(captured(plan), weights=weights)
  known, now = _with_weights.setdefault(layers, {}), [*weights.values()]
  if plan not in known or any(a is not b for a, b in zip(known[plan][0], now)):
    known[plan] = now, jit(functools.partial(plan, weights=weights), most=64)
  return known[plan][1]


class _Recurrent(Module):
  """What layers and cells share: parameters by name, uniform within 1 / sqrt(hidden_size) of 0."""

  hidden_size: int

  def _parameters(self, shapes: dict[str, tuple[int, ...]], device: str | None, dtype: Any) -> None:
    for name, s in shapes.items():
      setattr(self, name, Parameter(Tensor.empty(*s, dtype=dtype, device=device)))
    self._held = tuple(shapes)
    self.reset_parameters()

  def reset_parameters(self) -> None:
    """Uniform within 1 / sqrt(hidden_size) of 0."""
    uniform_within(1 / math.sqrt(self.hidden_size), *(getattr(self, name) for name in self._held))


class _Layers(_Recurrent):
  """x: T[L, N, I], with batch_first T[N, L, I], or without a batch T[L, I]."""

  kind: Kind
  states = 1  # how many tensors a state has

  def __init__(
    self,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    bias: bool = True,
    batch_first: bool = False,
    dropout: float = 0.0,
    bidirectional: bool = False,
    proj_size: int = 0,
    device: str | None = None,
    dtype: Any = None,
  ):
    if min(num_layers, hidden_size) < 1:
      message = f"{type(self).__name__}: hidden_size {hidden_size} and num_layers {num_layers} are at least 1"
      fail(ArgumentError, message)
    if proj_size and (self.states < 2 or proj_size >= hidden_size):
      fail(ArgumentError, f"{type(self).__name__}: proj_size is for LSTM, and less than {hidden_size}")
    self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
    self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
    self.proj_size, self.directions = proj_size, 2 if bidirectional else 1
    out, rows = proj_size or hidden_size, self.kind.gates * hidden_size
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(num_layers):
      for end in ends(layer, self.directions):
        shapes[f"weight_ih_{end}"] = (rows, input_size if layer == 0 else out * self.directions)
        shapes[f"weight_hh_{end}"] = (rows, out)
        if bias:
          shapes |= {f"bias_ih_{end}": (rows,), f"bias_hh_{end}": (rows,)}
        if proj_size:
          shapes[f"weight_hr_{end}"] = (proj_size, hidden_size)
    self._parameters(shapes, device, dtype)

  def forward(self, input: Any, hx: Any = None, lengths: Any = None) -> tuple[Any, Any]:
    """(the last layer's h of all steps, the state after the last step): T[L, N, directions * H] in the layout of x, and
    T[layers * directions, N, H], of an LSTM a pair (h, c) of them. `hx` is such a one to begin with, zeros if None.

    lengths: int[N], or one for all: how many steps of each sequence count. The state stays after them, and what is
    given for them is 0.
    L may be a Variable: then as many steps are made as it may have, which is one program for all of its values.
    Of a PackedSequence (nn.utils.rnn) its lengths, and such a one is given; batch_first means nothing then.
    """
    if isinstance(input, PackedSequence):
      out, last = self._all(input.data, hx, input.lengths, batch_first=False)
      return PackedSequence(out, input.lengths), last
    return self._all(input, hx, lengths, self.batch_first)

  def _all(self, x: Tensor, hx: Any, lengths: Any, batch_first: bool) -> tuple[Tensor, Any]:
    if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
      n, order = self.input_size, "N, L" if batch_first else "L, N"
      fail(ShapeError, f"{type(self).__name__}: x is [{order}, {n}], or [L, {n}] without a batch", x=x)
    if lengths is not None:
      lengths = lengths if isinstance(lengths, Tensor) else Tensor(lengths)
      batch = x.shape[0 if batch_first else 1] if x.ndim == 3 else 1
      if lengths.shape not in ((batch,), ()):
        fail(ShapeError, f"lengths: there must be one for each of {batch} sequences", lengths=lengths)
    states = () if hx is None else tuple(hx) if self.states > 1 else (hx,)
    dropout = self.dropout if self.training else 0.0
    sizes = self.num_layers, self.directions, self.hidden_size, self.proj_size
    plan = Plan(self.kind, self.states, *sizes, dropout, batch_first)
    weights = {name: getattr(self, name) for name in self._held}
    several = any(not isinstance(t.device, str) for t in (x, *states, *weights.values()))
    if several or any(type(n) is Variable for n in x.shape):
      return plan(x, states, lengths, weights)
    return captured_for(self, plan, weights)(x, states, lengths)

  def flatten_parameters(self) -> None:
    """Nothing: where parameters lie in memory is the optimizer's to say."""

  def extra_repr(self) -> str:
    said = {"num_layers": 1, "batch_first": False, "dropout": 0.0, "bidirectional": False, "proj_size": 0}
    rest = "".join(f", {k}={getattr(self, k)}" for k, v in said.items() if getattr(self, k) != v)
    return f"{self.input_size}, {self.hidden_size}{rest}"


class RNN(_Layers):
  """h' = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh), or relu instead, over a sequence.

  >>> out, h = RNN(3, 5, num_layers=2)(Tensor.ones(7, 2, 3))
  >>> out.shape, h.shape
  ((7, 2, 5), (2, 2, 5))
  """

  def __init__(
    self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", **options: Any
  ):
    self.nonlinearity = nonlinearity
    self.kind = _kind("RNN", nonlinearity)
    super().__init__(input_size, hidden_size, num_layers, **options)


class LSTM(_Layers):
  """Long short-term memory, whose state is a pair (h, c). https://doi.org/10.1162/neco.1997.9.8.1735

  >>> out, (h, c) = LSTM(3, 5, bidirectional=True, batch_first=True)(Tensor.ones(2, 7, 3), lengths=[7, 4])
  >>> out.shape, c.shape
  ((2, 7, 10), (2, 2, 5))
  """

  kind, states = KINDS["lstm"], 2


class GRU(_Layers):
  """Gated recurrent units. https://arxiv.org/abs/1406.1078

  >>> GRU(3, 5)(Tensor.ones(7, 2, 3))[0].shape
  (7, 2, 5)
  """

  kind = KINDS["gru"]


class _Cell(_Recurrent):
  """One step.   x: T[N, I], or T[I]"""

  kind: Kind
  states = 1

  def __init__(
    self, input_size: int, hidden_size: int, bias: bool = True, device: str | None = None, dtype: Any = None
  ):
    self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
    rows = self.kind.gates * hidden_size
    shapes: dict[str, tuple[int, ...]] = {
      "weight_ih": (rows, input_size),
      "weight_hh": (rows, hidden_size),
    }
    self._parameters(shapes | ({"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}), device, dtype)

  def forward(self, input: Tensor, hx: Any = None) -> Any:
    """The state after a step, from the state `hx`, zeros if None."""
    s = (*input.shape[:-1], self.hidden_size)
    if input.ndim not in (1, 2):
      fail(ShapeError, f"{type(self).__name__}: input is T[N, I], or T[I]", input=input)
    given: Sequence[Tensor] = hx if self.states > 1 else (hx,)
    if hx is None:
      given = [Tensor.zeros(*s, dtype=input.dtype, device=input.device) for _ in range(self.states)]
    if any(h.shape != s for h in given):
      fail(ShapeError, f"{type(self).__name__}: the state is T[N, H], or T[H]", input=input, hx=given[0])
    w: dict[str, Any] = {name: getattr(self, name) for name in self._held}
    a, b = input.linear(w["weight_ih"], w.get("bias_ih")), given[0].linear(w["weight_hh"], w.get("bias_hh"))
    new = self.kind.step(a, b, tuple(given))
    return new if self.states > 1 else new[0]

  def extra_repr(self) -> str:
    return f"{self.input_size}, {self.hidden_size}"


class RNNCell(_Cell):
  """A step of `RNN`.   x: T[N, I]   h: T[N, H]   ->   T[N, H]"""

  def __init__(
    self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", **options: Any
  ):
    self.nonlinearity = nonlinearity
    self.kind = _kind("RNNCell", nonlinearity)
    super().__init__(input_size, hidden_size, bias, **options)


class LSTMCell(_Cell):
  """A step of `LSTM`.   x: T[N, I]   (h, c): T[N, H]   ->   (h, c)

  >>> h, c = LSTMCell(3, 5)(Tensor.ones(2, 3))
  >>> h.shape
  (2, 5)
  """

  kind, states = KINDS["lstm"], 2


class GRUCell(_Cell):
  """A step of `GRU`.   x: T[N, I]   h: T[N, H]   ->   T[N, H]"""

  kind = KINDS["gru"]


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]
