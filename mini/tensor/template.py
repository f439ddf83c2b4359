"""Methods of many operations, whose graphs are built once for each kind of arguments, and copied from then on.

Python takes 10 to 20 us for an operation with all that it asks of its operands, and a cross entropy is 27 of them; a
copy takes 3 us for a node. The nodes are those that the method itself would make. Its gradient is copied likewise
where nobody differentiates it again; where somebody does, the method builds what it builds.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any

from mini.changes import During
from mini.config import settings_here
from mini.engine.place import held, place
from mini.given import Gradients, needs, with_gradient
from mini.grad import gradients
from mini.ir import graph
from mini.ir.sizes import Variable, varies
from mini.ir.uop import UOp, uop
from mini.tensor.handle import Handle, tagged
from mini.tensor.trace import local
from mini.tensor.views import strides_of
from mini.types import DType, dtypes

COPIED = """
adaptive_avg_pool2d addmm argmax argmin avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm binary_cross_entropy
binary_cross_entropy_with_logits bmm cdist celu clamp clip conv1d conv2d conv3d conv_transpose1d conv_transpose2d
conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy elu gaussian_nll_loss gelu glu group_norm
hardsigmoid hardswish hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu
lerp linear log_softmax logaddexp logsigmoid logsumexp margin_ranking_loss masked_fill matmul max_pool1d max_pool2d
max_pool3d mean mish mse_loss nll_loss norm normalize outer pixel_shuffle pixel_unshuffle poisson_nll_loss relu6
rms_norm scaled_dot_product_attention selu sigmoid silu smooth_l1_loss softmax softmin softplus std tanh
triplet_margin_loss var where
"""
MOST = (
  256  # kinds of arguments of a method that are remembered, as many as programs: a loop over sizes has many
)
PLAIN = frozenset((bool, int, str, type(None), DType))
NOT_YET: Any = object()
_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Impure(Exception):
  """The method does more than to build a graph of its arguments."""


class Pure:
  """What methods report to while their graph is built: they may read their arguments, and what they make of them."""

  goes_on = False

  def __init__(self) -> None:
    self.arguments: set[Handle] = set()

  def read(self, t: Handle) -> None:
    if t._trace is not self and t not in self.arguments:
      raise Impure

  def refuse(self, *given: Any, **named: Any) -> Any:
    raise Impure

  def has_changed(self, handles: Any) -> bool:
    return False

  rebind = realize = gradient = differentiates = relies = value = escaped = refuse


class Copier:
  """Nodes as a list of what makes each of them of those before."""

  def __init__(self, number: dict[UOp, int], outputs: Sequence[UOp | None]):
    """number: of the nodes that are there first; gets that of all others."""
    self.steps: list[tuple] = []
    self.has_rules = False  # do some of the nodes have gradients of their own, which the copies have not?
    first = max(number.values()) + 1
    seen, stack = {*number}, [u for u in outputs if u is not None]
    made: list[UOp] = []
    while stack:
      u = stack.pop()
      if u not in seen:
        seen.add(u)
        made.append(u)
        stack += u.src
    for u in sorted(made, key=attrgetter("serial")):  # in the order in which the method made them
      if u.op == "tag" and "given" in u.memo:  # it is the whole that has a gradient of its own
        number[u], self.has_rules = number[u.src[0]], True
        continue
      if u.op in ("tag", "buffer"):
        raise Impure
      memo = {"shape": graph.shape(u), "place": place(u)}
      number[u] = first + len(self.steps)
      self.steps.append((u.op, u.dtype, tuple(number[s] for s in u.src), u.arg, memo))
    self.outputs = [None if u is None else number[u] for u in outputs]

  def run(self, found: list[UOp]) -> list[UOp | None]:
    """The outputs. found: the nodes that are there first; gets all others."""
    for op, dtype, src, arg, memo in self.steps:
      u = uop(op, dtype, tuple([found[n] for n in src]), arg)
      if "place" not in u.memo:
        u.memo.update(memo)
      found.append(u)
    return [None if n is None else found[n] for n in self.outputs]


class Template:
  """What a method makes of arguments of one kind."""

  @staticmethod
  def of(call: Callable[[Sequence[Handle]], Any], likes: Sequence[Handle]) -> Template | None:
    """None where the method does more, or fails: then it says so when it is called."""
    try:
      return Template(call, likes)
    except Exception:  # noqa: BLE001 (raised again)
      return None

  def __init__(self, call: Callable[[Sequence[Handle]], Any], likes: Sequence[Handle]):
    """call: the method, given the tensors among its arguments, which are like these."""
    self.settings, self.tracer = settings_here(), Pure()
    with During(local, "current", self.tracer):
      standing = [*map(stand_in, likes)]
      self.tracer.arguments = {*standing}
      result = call(standing)
      if type(result) is not Handle._final or result._base is not None or result in self.tracer.arguments:
        raise Impure
    self.inputs, self.result = [t._uop for t in standing], result._uop
    self.number = {u: n for n, u in enumerate(self.inputs)}
    self.forward = Copier(self.number, [self.result])
    self.passed = [n for n, u in enumerate(self.inputs) if needs(u)] if needs(self.result) else []

  @functools.cached_property
  def backward(self) -> Copier:
    """From the nodes of `forward` and the gradient of the result to those of the inputs."""
    seed = like(self.result)
    with During(local, "current", self.tracer), During(local, "gradients", True), During(local, "low", None):
      found = gradients([self.result], [seed], [self.inputs[n] for n in self.passed])
    return Copier({**self.number, seed: max(self.number.values()) + 1}, found)

  def copy(self, inputs: list[UOp], call: Callable[[Sequence[Handle]], Any]) -> UOp:
    """The node of the result."""
    made = [*inputs]
    (value,) = self.forward.run(made)
    assert value is not None
    if not self.passed:
      return value
    low = local.low

    def rule(g: UOp, out: UOp, *src: UOp) -> Gradients:
      new = [*inputs]
      if local.once or not (self.forward.has_rules or self.backward.has_rules):
        values = made
        if any(inputs[n] is not u for n, u in zip(self.passed, src)):  # made again, in a checkpoint
          for n, u in zip(self.passed, src):
            new[n] = u
          self.forward.run(new)
          values = new
        return tuple(self.backward.run([*values, g]))
      # in a checkpoint it is made of what is read a second time
      first = {u: g if place(g) == place(u) else u for u in src if "region" in out.memo and held(u)}
      later = [graph.after(u, first[u]) if u in first else u for u in src]
      tags = [*map(graph.tag, later)]
      for n, u in zip(self.passed, tags):
        new[n] = u
      with During(local, "gradients", True), During(local, "low", low):
        again = call([*map(Handle._new, new)])
      return tuple(gradients([again._uop], [g], tags))

    return with_gradient(value, rule, *(inputs[n] for n in self.passed))


def like(u: UOp) -> UOp:
  """Memory like that of u, which is none."""
  from mini.batch import Memory  # with more than `import mini` needs

  return graph.buffer(Memory(place(u), u.dtype, graph.numel(u)), graph.shape(u), u.dtype)


def stand_in(x: Handle) -> Handle:
  """A tensor like x, which is nobody's."""
  u = x._uop
  t = Handle._at(like(u), x._where)
  if needs(u):
    t._uop = tagged(t, t._uop)
  if x._base is not None or x._strides is not None:
    t._strides = strides_of(x)  # type: ignore[arg-type]
  return t


def copied(method: Callable[..., Any]) -> Callable[..., Any]:
  """The method, of which graphs are copied."""
  known: dict[tuple, Template | None] = {}

  def gated(*args: Any, **options: Any) -> Any:  # a name that errors look beneath
    if type(local.current) is Pure or local.samples is not None:
      return method(*args, **options)
    final = Handle._final
    given = (*args, *options.values()) if options else args
    inputs: dict[UOp, int] = {}
    key: list[Hashable] = [*options, local.gradients, local.low, dtypes.default_float, dtypes.default_int]
    key.append(final.training)
    likes: list[Handle] = []  # each tensor once
    at: list[int | None] = []  # which of them an argument is
    for x in given:
      if type(x) is final:
        u = x.uop
        s, where = u.memo.get("shape"), u.memo.get("place")
        if s is None or type(where) is not str or (Variable.used and varies(s)):
          return method(*args, **options)
        strides = None if x._base is None and x._strides is None else strides_of(x)
        n = inputs.setdefault(u, len(inputs))
        at.append(n)
        key.append((n, s, u.dtype, where, strides, needs(u)))
        if n == len(likes):
          likes.append(x)
      elif type(x) in PLAIN or (type(x) is tuple and all(type(n) is int for n in x)):
        at.append(None)
        key.append((type(x), x))
      elif type(x) is float:
        at.append(None)
        key.append(repr(x))  # which tells -0.0 from 0.0
      else:
        return method(*args, **options)
    # no tensor: what is copied holds none
    values, count, names = [x if n is None else None for n, x in zip(at, given)], len(args), [*options]

    def call(tensors: Sequence[Handle]) -> Any:
      found = [x if n is None else tensors[n] for n, x in zip(at, values)]
      return method(*found[:count], **dict(zip(names, found[count:])))

    kind = tuple(key)
    template = known.get(kind, NOT_YET)
    if template is NOT_YET or (template and template.settings is not settings_here()):
      template = Template.of(call, likes)
      with _lock:
        known[kind] = template
        if len(known) > MOST:
          known.pop(next(iter(known)))
    return final._new(template.copy([*inputs], call)) if template else method(*args, **options)

  return functools.update_wrapper(gated, method)


def templates(family: type) -> None:
  """Have the methods of a class that are on the list copied."""
  for name, method in list(vars(family).items()):
    if name in COPIED.split() and inspect.isfunction(method):
      setattr(family, name, copied(method))
