"""Methods of many operations, whose graphs are built once for each kind of arguments.

Python takes 10 to 20 us for an operation with all that it asks of its operands, and a cross entropy is 27 of them. What
a method makes is one node, `invoke` (mini/ir/inline.py), of a `Function`; where something is traced, the nodes of the
function are copied, those that the method itself would make. Gradients are functions, too: of the graph as it was
built, with the rules that stand in it, and so are gradients of gradients.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from mini.changes import During
from mini.config import settings_here
from mini.engine.device_of import place
from mini.grad import gradients
from mini.gradient_rules import Gradients, gradient_inputs, needs, over, with_gradient
from mini.ir import graph
from mini.ir.inline import Output, anew, invoke
from mini.ir.sizes import Variable, varies
from mini.ir.uop import UOp
from mini.tensor.handle import Handle, tagged
from mini.tensor.realize_group import DEAR, LARGE
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
MOST = 256  # kinds of arguments of a method that are remembered: a loop over sizes has many
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


class Function:
  """A graph over stand-ins, of which copies are made: by nodes `invoke`, which are its outputs, or at once."""

  def __init__(self, name: str, tracer: Pure, inputs: Sequence[UOp], outputs: Sequence[UOp | None]):
    self.name, self.tracer = name, tracer
    number = {u: n for n, u in enumerate(inputs)}
    self.steps: list[tuple] = []
    used: set[int] = set()
    count = len(inputs)
    seen, stack = {*number}, [u for u in outputs if u is not None]
    made: list[UOp] = []
    while stack:
      u = stack.pop()
      if u not in seen:
        seen.add(u)
        made.append(u)
        stack += u.src
    for u in sorted(made, key=attrgetter("serial")):  # in the order in which the method made them
      if is_given(u):  # it is the whole that has a gradient of its own
        number[u] = number[u.src[0]]
        continue
      if u.op in ("tag", "buffer"):
        raise Impure
      memo = {"shape": graph.shape(u), "place": place(u)}
      number[u] = count + len(self.steps)
      src = tuple(number[s] for s in u.src)
      used.update(src)
      self.steps.append((u.op, u.dtype, src, u.arg, memo))
    at = [None if u is None else number[u] for u in outputs]
    used.update(n for n in at if n is not None)
    if any(map(is_given, made)):  # whose rules may pass gradients to others than what they are made of
      used.update(n for n, u in enumerate(inputs) if needs(u))
    # an input that is not used would be held in vain
    self.taken = sorted(used & {*range(count)})
    self.inputs = [inputs[n] for n in self.taken]
    moved = {n: k for k, n in enumerate(self.taken)}
    moved.update((count + n, len(self.taken) + n) for n in range(len(self.steps)))
    self.steps = [(op, dtype, tuple(moved[n] for n in src), *rest) for op, dtype, src, *rest in self.steps]
    self.at = [None if n is None else moved[n] for n in at]
    self.work = sum(LARGE if op in DEAR else 1 for op, *_ in self.steps)
    self.slopes: dict[tuple[int, Any], tuple[Function, Sequence[int]]] = {}
    for out in outputs:
      if out is not None:
        graph.shape(out), place(out)
    own = {u: k for k, u in enumerate(self.inputs)}
    self.results = [None if u is None else Output(self, n, u, reached(u, own)) for n, u in enumerate(outputs)]

  def __repr__(self) -> str:
    return self.name

  def written_out(self, src: Sequence[UOp]) -> list[UOp | None]:
    """The outputs, of these inputs."""
    found = [*src]
    for op, dtype, numbers, arg, memo in self.steps:
      u = anew(op, dtype, tuple([found[n] for n in numbers]), arg)
      if "place" not in u.memo:
        u.memo.update(memo)
      found.append(u)
    return [None if n is None else found[n] for n in self.at]

  def slope(self, n: int, where: Any) -> tuple[Function, Sequence[int]]:
    """(from inputs, the gradient of the n-th output, and this output to the gradients of some inputs, which inputs).
    where: the gradient's place, which may be none; then that of what is made of it alone is none."""
    found = self.slopes.get((n, where))
    if found is None:
      of = self.results[n]
      assert of is not None
      out, passed = of.like, of.passed
      seed, value = graph.tag(like(out, where)), graph.tag(like(out, place(out)))
      seed.memo["place"] = where  # a leaf of none would have its home on a device
      with (
        During(local, "current", self.tracer), During(local, "gradients", True), During(local, "low", None),
        During(local, "once", False),
      ):  # fmt: skip
        outputs = gradients([out], [seed], [self.inputs[k] for k in passed])
      instead = {out: value}  # it is not computed again
      while is_given(out):
        out = out.src[0]
        instead[out] = value
      over([u for u in outputs if u is not None], instead)
      outputs = [u and instead[u] for u in outputs]
      found = Function(f"slope {self.name}", self.tracer, [*self.inputs, seed, value], outputs), passed
      self.slopes[n, where] = found
    return found

  def pulled_back(
    self,
    n: int,
    g: UOp,
    out: UOp,
    src: Sequence[UOp],
    wanted: Container[UOp] | None = None,
    lazily: bool = True,
  ) -> Gradients:
    """The gradients of the inputs, None for those that get none. g: of the n-th output, out. wanted: the inputs whose
    gradients will be looked at."""
    slope, passed = self.slope(n, place(g))
    given = (*src, g, out)
    looked_at = None if wanted is None else [src[k] in wanted for k in passed]
    found: list[UOp | None] = [None] * len(src)
    for k, u in zip(passed, slope.of([given[k] for k in slope.taken], lazily, looked_at, local.once)):
      found[k] = u
    return tuple(found)

  def of(
    self, src: Sequence[UOp], lazily: bool, wanted: Sequence[bool] | None = None, once: bool = False
  ) -> list[UOp | None]:
    """The outputs as nodes with gradients: `invoke`, which are written out when their program is new, or all of that
    at once. wanted: which of them will be looked at; any node stands for another. once: without gradients."""
    if lazily:
      inputs = tuple(src)
      return [
        None if of is None else invoke(of, inputs) if wanted is None or wanted[n] else of.like
        for n, of in enumerate(self.results)
      ]
    values = self.written_out(src)
    if once:
      return values
    return [None if u is None else self.with_slope(n, u, src) for n, u in enumerate(values)]

  def with_slope(self, n: int, u: UOp, src: Sequence[UOp]) -> UOp:
    """u, which is the n-th output."""
    of = self.results[n]
    passed = [] if of is None else [k for k in of.passed if needs(src[k])]
    if not passed:
      return u

    def rule(g: UOp, out: UOp, *new: UOp) -> Gradients:
      values = [*src]
      for k, s in zip(passed, new):
        values[k] = s
      found = self.pulled_back(n, g, out, values, lazily=False)
      return tuple(found[k] for k in passed)

    return with_gradient(u, rule, *(src[k] for k in passed), exact=True)


def reached(u: UOp, inputs: Mapping[UOp, int]) -> list[int]:
  """Those of the inputs that a gradient of u passes to."""
  stack = [u] if needs(u) else []
  seen = {*stack}
  while stack:
    n = stack.pop()
    if n not in inputs:
      new = [s for s in gradient_inputs(n) if needs(s) and s not in seen]
      stack += new
      seen.update(new)
  return [k for s, k in inputs.items() if s in seen]


def is_given(u: UOp) -> bool:
  return u.op == "tag" and "given" in u.memo


class Template:
  """What a method makes of arguments of one kind."""

  @staticmethod
  def of(call: Callable[[Sequence[Handle]], Any], name: str, likes: Sequence[Handle]) -> Template | None:
    """None where the method does more, or fails: then it says so when it is called."""
    try:
      return Template(call, name, likes)
    except Exception:  # noqa: BLE001 (raised again)
      return None

  def __init__(self, call: Callable[[Sequence[Handle]], Any], name: str, likes: Sequence[Handle]):
    """call: the method, given the tensors among its arguments, which are like these."""
    self.settings, tracer = settings_here(), Pure()
    with During(local, "current", tracer):
      standing = [*map(stand_in, likes)]
      tracer.arguments = {*standing}
      result = call(standing)
      if type(result) is not Handle._final or result._base is not None or result in tracer.arguments:
        raise Impure
    inputs = [t._uop for t in standing]
    self.function = Function(name, tracer, inputs, [result._uop])
    # what is nowhere in particular is computed where it is used; what is rounded is not looked into
    self.is_lazy = local.low is None and place(result._uop) == place(inputs[0])

  def copy(self, inputs: Sequence[UOp]) -> UOp:
    """The node of the result."""
    src = [inputs[n] for n in self.function.taken]
    # of what is made again the values within a method are told apart, too
    lazily = self.is_lazy and local.current is None and not local.again
    (value,) = self.function.of(src, lazily) if lazily else self.function.written_out(src)
    assert value is not None
    return value if lazily else self.function.with_slope(0, value, src)


def like(u: UOp, where: Any) -> UOp:
  """Memory like that of u, at a place, which is none."""
  from mini.tensor.batching import Memory  # with more than `import mini` needs

  return graph.buffer(Memory(where, u.dtype, graph.numel(u)), graph.shape(u), u.dtype)


def stand_in(x: Handle) -> Handle:
  """A tensor like x, which is nobody's."""
  u = x._uop
  t = Handle._at(like(u, place(u)), x._where)
  if needs(u):
    t._uop = tagged(t, t._uop)
    t._uop.memo["place"] = place(u)
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
        u = x._node
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
      template = Template.of(call, method.__name__, likes)
      with _lock:
        known[kind] = template
        if len(known) > MOST:
          known.pop(next(iter(known)))
    return final._new(template.copy([*inputs])) if template else method(*args, **options)

  return functools.update_wrapper(gated, method)


def templates(family: type) -> None:
  """Have the methods of a class that are on the list copied."""
  for name, method in list(vars(family).items()):
    if name in COPIED.split() and inspect.isfunction(method):
      setattr(family, name, copied(method))
