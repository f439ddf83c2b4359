"""A program in the hand: its stages as text, which can be edited, and run.

p = mini.compile(f, x, w)            what a function of tensors becomes, for tensors like these
p = mini.compile(text)               a graph, a schedule or a kernel in the grammar of docs/text.md
print(p.graph, p.schedule, p.kernels, p.source)
q = p.replace(schedule=text)         the same with a stage of one's own; p.replace("contract_*", recipe="...")
q(x, w), q.seconds(x, w)             the results, and how long they take
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.recipe import RecipeError, apply
from mini.config import config
from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.edited import same_interface
from mini.engine.launch import Launchable, interface, interpret
from mini.engine.passes import as_given, passes, run_pass, with_own_names
from mini.engine.program import assumed, machine_of
from mini.engine.realize import Numbered
from mini.ir.graph import buffer
from mini.ir.inline import inlined
from mini.ir.kernel import all_ranges
from mini.ir.uop import UOp, rkind, substitute, toposort
from mini.tensor import Tensor
from mini.tensor.autograd import custom_gradient
from mini.tensor.data import default_device, device_named
from mini.tensor.errors import fail, function
from mini.tensor.transforms import vjp
from mini.text.parser import with_arguments
from mini.text.printer import IDENTIFIER, Memory, graph_program, schedule_program, text
from mini.types import ArgumentError, DType, DTypeError, MiniError, ShapeError


class Traced(Buffer):
  """An argument while a function is traced: memory that is not there."""

  __slots__ = ()

  def __init__(self, device: str, dtype: DType, size: int):
    super().__init__(device, dtype, size, ())

  @property
  def memory(self) -> Any:
    raise ArgumentError(
      "compile: the function asks for a value while it is traced (item, numpy, realize, if, a jitted function): there "
      "is none yet"
    )

  @memory.setter
  def memory(self, handle: Any) -> None:
    pass


class Stage:
  """A program at one of its stages: `str` is its text, `node` what that parses to."""

  def __init__(self, node: UOp):
    self.node = node

  def __repr__(self) -> str:
    return text(self.node, comments=True)


class Compiled:
  """What `compile` makes. Called with tensors or arrays, in the order of `arguments`, it computes at once, on its
  device, and gives new tensors; a gradient passes where its graph is known. Stages: graph (None where it is not known),
  schedule, kernels (with their recipes), source."""

  def __init__(
    self,
    graph: UOp | None,
    schedule: UOp,
    device: str,
    arguments: Sequence[Memory],
    single: bool,
    held: Mapping[str, UOp] = MappingProxyType({}),
    recipes: Sequence[tuple[str, str]] = (),
  ):
    """single: is the result one tensor, and no tuple? held: leaves that are no arguments, by name."""
    self.device, self._graph, self._schedule = device, graph, schedule
    self.arguments, self._single, self._held, self._recipes = [*arguments], single, held, tuple(recipes)
    self._machine = _machine(device)
    tuned = [self._tuned(k) for k in schedule.src]
    if idle := [p for p, _ in recipes if not any(fnmatchcase(k.arg.what, p) for k in schedule.src)]:
      names = ", ".join(k.arg.what for k in schedule.src)
      raise RecipeError(f"no kernel is called {idle[0]}; there are {names}")
    self._program = schedule_program(schedule.arg, tuple(tuned))
    self._launchable: Launchable | None = None

  def _tuned(self, k: UOp) -> UOp:
    """With the recipe of `replace`, else as it was written where that says how it runs, else with the heuristic's."""
    for pattern, recipe in self._recipes:
      if fnmatchcase(k.arg.what, pattern):
        return apply(k, recipe)
    if config.NOOPT or any(rkind(r) != "loop" for r in all_ranges(k)):
      return k
    return write_recipe(k, self._machine)[0]

  @property
  def graph(self) -> Stage | None:
    return None if self._graph is None else Stage(self._graph)

  @property
  def schedule(self) -> Stage:
    return Stage(self._schedule)

  @property
  def kernels(self) -> list[Stage]:
    return [Stage(with_own_names(k)) for k in self._program.src]

  @property
  def source(self) -> Stage:
    return Stage(run_pass(passes(self._machine, _language(self.device))["source"], [self._program])[0])

  def __repr__(self) -> str:
    given = ", ".join(f"{m.name}: {m.dtype.short}{list(m.shape)}" for m in self.arguments)
    return (
      f"<program {self._schedule.arg.name}({given}) of {len(self._schedule.src)} kernels on {self.device}>"
    )

  def replace(
    self, kernel: str = "", *, recipe: str | None = None, schedule: str | Stage | None = None
  ) -> Compiled:
    """The same program with a recipe for the kernels whose name fits the pattern `kernel`, or with another schedule, as
    text. The other schedule takes and gives the same memory; the graph stays, and with it the gradient.

    RecipeError: a step that does not apply, or no such kernel. TextError: text that does not parse or verify.
    ShapeError: another interface."""
    if (recipe is None) == (schedule is None) or bool(kernel) != (recipe is not None):
      raise ArgumentError(
        'replace: either a kernel and its recipe, replace("map_*", recipe="par i"), or a schedule'
      )
    if not isinstance(kernel, str) or not isinstance(recipe, (str, type(None))):
      raise ArgumentError("replace: a pattern of names and a recipe are text")
    if recipe is not None:
      steps = "\n".join(s.strip() for s in recipe.replace(";", "\n").splitlines() if s.strip())
      recipes = ((kernel, steps), *self._recipes)
      return self._other(self._schedule, recipes)
    node, _ = _read(str(schedule))
    if node.op != "schedule":
      raise ArgumentError(f"replace: this is the text of a {node.op}, not of a schedule")
    same_interface(self._schedule, node, "replace")
    return self._other(node)

  def _other(self, schedule: UOp, recipes: Sequence[tuple[str, str]] = ()) -> Compiled:
    return Compiled(self._graph, schedule, self.device, self.arguments, self._single, self._held, recipes)

  def __call__(self, *args: Any) -> Any:
    xs = [x if isinstance(x, Tensor) else Tensor(x) for x in args]
    self._check(xs)
    if self._graph is None:
      return self._run(*xs)
    return custom_gradient(self._slope)(self._run)(*xs)

  def _check(self, xs: Sequence[Tensor]) -> None:
    if len(xs) != len(self.arguments):
      raise ArgumentError(f"{self!r} takes {len(self.arguments)} arguments, not {len(xs)}")
    for m, x in zip(self.arguments, xs):
      if x.shape != m.shape:
        fail(
          ShapeError, f"{m.name} of {self!r}: another shape", f"compile it for {list(x.shape)}", **{m.name: x}
        )
      if x.dtype is not m.dtype:
        fail(DTypeError, f"{m.name} of {self!r}: another type", f'x.cast("{m.dtype.name}")', **{m.name: x})

  def _data(self, xs: Sequence[Tensor]) -> dict[str, np.ndarray]:
    """By the names of the schedule: a graph's input that is called like a temporary has another one there."""
    data = {m.name: x.numpy() for m, x in zip(self.arguments, xs)}
    data.update({name: Tensor(leaf).numpy() for name, leaf in self._held.items()})
    wanted = {m.name: as_given(m.name, data) for m in interface(self._program)}
    return {name: data[given] for name, given in wanted.items() if given in data}

  def _run(self, *xs: Tensor) -> Any:
    if Device[self.device].interprets:
      found = interpret(self._program, self._data(xs) | self._empty())
    else:
      found, _ = self._launched().run(self._data(xs), 0)
    kinds = {m.name: m.dtype for m in interface(self._program)}
    out = tuple(Tensor(found[n], dtype=kinds[n], device=self.device) for n in self._program.arg.returned)
    return out[0] if self._single else out

  def _empty(self) -> dict[str, np.ndarray]:
    return {m.name: np.zeros(m.shape, m.dtype.np) for m in interface(self._program) if m.where == "out"}

  def _launched(self) -> Launchable:
    if self._launchable is None:
      self._launchable = Launchable(self._program, self.device)
    return self._launchable

  def seconds(self, *args: Any) -> float:
    """The time of the fastest of many runs, without what copies arguments and results."""
    xs = [x if isinstance(x, Tensor) else Tensor(x) for x in args]
    self._check(xs)
    if Device[self.device].interprets:
      raise MiniError(f"seconds: {self.device} interprets programs, and is not timed")
    return self._launched().run(self._data(xs), 0.2)[1]

  def _slope(self, g: Any, out: Any, *xs: Tensor) -> Any:
    """The gradients of the graph, whatever the stages after it have become."""
    through = [n for n, x in enumerate(xs) if x.dtype.kind == "f"]
    slopes: list[Tensor | None] = [None] * len(xs)
    results, passed = ((y,) if isinstance(y, Tensor) else tuple(y) for y in (out, g))
    real = [n for n, y in enumerate(results) if y.dtype.kind == "f"]

    def again(*some: Tensor) -> Any:
      values = [*xs]
      for n, x in zip(through, some):
        values[n] = x
      made = self._as_tensors(values)
      return tuple(made[n] for n in real)

    _, pull = vjp(again, *[xs[n] for n in through])
    for n, slope in zip(through, pull(tuple(passed[n] for n in real))):
      slopes[n] = slope
    return tuple(slopes)

  def _as_tensors(self, xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The graph itself, of other inputs."""
    assert self._graph is not None
    known = {**{m.name: x._uop for m, x in zip(self.arguments, xs)}, **self._held}
    table = {u: known[u.arg[0]] for u in toposort(*self._graph.src) if u.op == "buffer"}
    return tuple(Tensor(substitute(o, table)) for o in self._graph.src)


def compile(what: Callable[..., Any] | str, *examples: Any, device: str | None = None) -> Compiled:
  """A program in the hand, whose stages are text that can be edited, and run: of a function of tensors, for arguments
  like the examples (their shapes and types; the function returns a tensor or several), or of the text of a graph, a
  schedule or a kernel, whose arguments are those that its head lists and does not only write. The function has no other
  effects, and asks for no values; tensors that it reaches otherwise stay as they are now, and get no gradient. device:
  where it runs; by default where the first example is, or DEV.

  ArgumentError: the function returns something else, or asks for a value. TextError: the text does not parse, or does
  not verify.

  >>> p = mini.compile(lambda x: x.softmax(1), Tensor.zeros(2, 2))
  >>> p(Tensor([[3.0, 3.0], [1.0, 1.0]])).tolist()
  [[0.5, 0.5], [0.5, 0.5]]
  >>> p.replace("rows_*", recipe="par i")([[0.0, 0.0], [5.0, 5.0]]).tolist()
  [[0.5, 0.5], [0.5, 0.5]]
  """
  if isinstance(what, (str, Stage)):
    return _of_text(str(what), device_named(device or default_device()))
  function("compile", what)
  given = [x if isinstance(x, Tensor) else Tensor(x) for x in examples]
  if wrong := [x for x in given if not isinstance(x.device, str)]:
    fail(ArgumentError, "compile: an example is on several devices", "x.to(x.device[0])", x=wrong[0])
  place = device_named(device or (given[0].device if given else default_device()))
  arguments = [Memory(n, "in", x.dtype, tuple(x.shape)) for n, x in zip(_names(what, len(given)), given)]
  leaves = [buffer(Traced(place, m.dtype, prod(m.shape)), m.shape, m.dtype) for m in arguments]
  result = what(*map(Tensor, leaves))
  several = [result] if isinstance(result, Tensor) else result
  if not isinstance(several, (tuple, list)) or not all(isinstance(t, Tensor) for t in several):
    raise ArgumentError("compile: the function returns a tensor, or a tuple of tensors")
  numbered = Numbered(inlined([t._uop for t in several]), lift=False)
  inner = {u.arg[0]: u for u in toposort(*numbered.roots) if u.op == "buffer"}
  names = {leaf: m.name for leaf, m in zip(leaves, arguments)}
  spare = (name for n in count() if (name := f"held{n}") not in names.values())
  held = {next(spare): leaf for leaf in numbered.leaves if leaf not in names}
  names.update({leaf: name for name, leaf in held.items()})
  table = {
    inner[f"in{n}"]: buffer(names[leaf], inner[f"in{n}"].arg[1], leaf.dtype)
    for n, leaf in enumerate(numbered.leaves)
  }
  called = getattr(what, "__name__", "f")
  roots = tuple(substitute(u, table) for u in numbered.roots)
  graph = graph_program(called if IDENTIFIER.fullmatch(called) else "f", roots)
  return _of_graph(graph, place, arguments, isinstance(result, Tensor), held)


def parse(text: str, device: str | None = None) -> Compiled:
  """`compile` of text.

  >>> mini.parse("graph f(%x: f32[2]) {\\n  %0 = exp2 %x : f32[2]\\n  return %0\\n}")([1.0, 3.0])
  Tensor([2., 8.])
  """
  return compile(str(text), device=device)


def _names(f: Callable[..., Any], count: int) -> list[str]:
  """Those of a function's parameters, where that is what they are."""
  try:
    found = [*inspect.signature(f).parameters]
  except (TypeError, ValueError):
    found = []
  plain = len(found) >= count and all(IDENTIFIER.fullmatch(n) for n in found[:count])
  return found[:count] if plain else [f"x{n}" for n in range(count)]


def _read(source: str) -> tuple[UOp, list[Memory]]:
  """(the program, its arguments in the order of its head)"""
  node, listed = with_arguments(source)
  node = node.src[0] if node.op == "uops" else node
  if node.op == "source":
    raise ArgumentError("compile: a source is what a renderer wrote, and is not read as a program")
  return node, listed


def _of_text(source: str, device: str) -> Compiled:
  node, listed = _read(source)
  arguments = [m for m in listed if m.where != "out"]
  if node.op == "graph":
    return _of_graph(node, device, arguments, len(node.src) == 1)
  if node.op == "kernel":
    node = schedule_program(Launchable.plan_of(node), (node,))
  return Compiled(None, node, device, arguments, len(node.arg.returned) == 1)


def _of_graph(
  graph: UOp,
  device: str,
  arguments: Sequence[Memory],
  single: bool,
  held: Mapping[str, UOp] = MappingProxyType({}),
) -> Compiled:
  table, found = passes(_machine(device), _language(device)), [graph]
  for name in ("schedule",) if config.NOOPT else ("simplify", "schedule"):
    found = run_pass(table[name], found)
  return Compiled(graph, found[0], device, arguments, single, held)


def _machine(device: str) -> Machine:
  return assumed() if Device[device].interprets else machine_of(Device[device].shim.info)


def _language(device: str) -> str:
  """The kind of device whose language a source is in."""
  return "CPU" if Device[device].interprets else device.partition(":")[0]
