"""`python -m mini docs` and `python -m mini ops --coverage`: what is to be said of every public method of Tensor.

The families, and the order in which methods stand in them, are those of mini/tensor/.
An example is the one in the docstring.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import mini
from mini.ir.composites import expand
from mini.ir.inline import inlined
from mini.ir.ops import OPS
from mini.ir.uop import UOp, toposort
from mini.tensor import Tensor
from mini.tensor.handle import Handle

# What is said of tensors beside their methods: the functions and classes of mini that these modules have, and classes
# that users see, but do not make by name.
BESIDE: dict[str, tuple[str, ...]] = {
  "mini.tensor.einsum": (),
  "mini.lazy_shapes": (),
  "mini.named_axes": ("Named",),
  "mini.fft": (),
  "mini.quantization": ("Quantized",),
  "mini.float8": (),
  "mini.tensor.autocast": (),
  "mini.extend.named": (),
  "mini.extend.kernel": (),
  "mini.extend.host": (),
  "mini.extend.walk": ("Node",),
  "mini.extend.rules": (),
}


def families() -> dict[type, list[str]]:
  """The classes that Tensor is made of, each with the public methods and properties that it defines, in order."""
  found: dict[type, list[str]] = {}
  seen: set[str] = set()
  for c in Tensor.__mro__:
    own = [n for n, v in vars(c).items() if not n.startswith("_") and n not in seen and _documented(v)]
    seen.update(own)
    if own and c.__module__.startswith("mini."):
      found[c] = own
  return dict(reversed(found.items()))


def _documented(value: Any) -> bool:
  return isinstance(value, (property, staticmethod, classmethod)) or inspect.isfunction(value)


def _function(value: Any) -> Any:
  return value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def signature(name: str, value: Any) -> str:
  """How it is called: without the types, which the docstring tells."""
  if isinstance(value, property):
    return f"x.{name}"
  static = isinstance(value, staticmethod)
  return f"{'Tensor' if static else 'x'}.{name}{_untyped(_function(value), not static)}"


def _untyped(function: Any, skip: int = 0) -> inspect.Signature:
  parameters = list(inspect.signature(function).parameters.values())
  return inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters[skip:]])


def document() -> str:
  """Every public method by family, from the docstrings."""
  lines = [
    "# The methods of Tensor",
    "",
    "Written by `python -m mini docs` from the docstrings; the examples are run by the tests.",
  ]
  for c, names in families().items():
    lines += _section(c.__name__, inspect.getmodule(c))
    for name in names:
      lines += _entry(signature(name, vars(c)[name]), _function(vars(c)[name]))
  for name, classes in BESIDE.items():
    module = import_module(name)
    lines += _section(name, module)
    own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", "") == name}
    public, room = (module.__all__, name) if hasattr(module, "__all__") else (mini.__all__, "mini")
    for n, value in own.items():
      if n in public:
        lines += _entry(f"{room}.{n}{_untyped(value)}", value)
      elif n in classes:
        methods = [(m, v) for m, v in vars(value).items() if not m.startswith("_") and _documented(v)]
        lines += [
          *_entry(n, value),
          *(line for m, v in methods for line in _entry(signature(m, v), _function(v))),
        ]
  return "\n".join(lines) + "\n"


def _section(title: str, module: Any) -> list[str]:
  return ["", f"## {title}", "", inspect.cleandoc((module and module.__doc__) or "").split("\n\n")[0]]


def _entry(title: str, value: Any) -> list[str]:
  words, example, rest = inspect.cleandoc(value.__doc__ or "").partition(">>> ")
  code = ["", "```python", example + rest, "```"] if example else []
  said = ["", words.strip()] if words.strip() else []
  return ["", f"### `{title}`", *said, *code]


# ---------------------------------------------------------------- which operations a method is made of


def operations(run: Callable[[], Any]) -> set[str]:
  """The primitives of all nodes that are made while `run` runs, of which a tensor was made."""
  found: set[UOp] = set()
  settle = Handle._settle

  def seen(self: Handle, node: UOp, where: tuple[str, int]) -> None:
    settle(self, node, where)
    found.add(node)

  Handle._settle = seen  # type: ignore[method-assign]
  try:
    run()
  finally:
    Handle._settle = settle  # type: ignore[method-assign]
  primitive = {name for name, op in OPS.items() if op.family not in ("leaf", "mark", "composite")}
  made = {*toposort(*inlined([*found]))}
  return {
    n.op for u in made for n in (toposort(expand(u)) if OPS[u.op].family == "composite" else [u])
  } & primitive


def example(c: type, name: str) -> Callable[[], None] | None:
  """What runs the example of a method's docstring; None without one."""
  function = _function(vars(c)[name])
  module = sys.modules[c.__module__]
  names = {n: getattr(mini, n) for n in mini.__all__}
  known = {"mini": mini, **names, **vars(module)}
  tests = doctest.DocTestFinder(recurse=False).find(function, name, module=module, extraglobs=known)
  if not any(t.examples for t in tests):
    return None

  def run() -> None:
    with contextlib.redirect_stdout(io.StringIO()):
      for t in tests:
        doctest.DocTestRunner(verbose=False).run(t)

  return run


def tested() -> dict[str, tuple[str, str, Callable[[], Any]]]:
  """{method: (an expression of test/methods/, its reference, what runs it)}: of a checkout; elsewhere nothing."""
  folder = Path(mini.__file__).parent.parent / "test"
  if not (folder / "methods").is_dir():
    return {}
  sys.path.insert(0, str(folder))
  methods = import_module("methods")
  found: dict[str, tuple[str, str, Callable[[], Any]]] = {}
  for row in sorted(methods.rows(), key=lambda row: len(row.ours)):  # the simplest one
    for name in methods.called(row.ours):
      reference = "NumPy" if row.by_numpy else "PyTorch"
      found.setdefault(name, (row.ours, reference, partial(methods.ours, row, row.types[0])))
  return found


def coverage() -> list[tuple[str, str, str, str]]:
  """(method, what it is compared with, the primitives of an expression, that expression) of every public method."""
  rows, table = [], tested()
  for c, names in families().items():
    for name in names:
      expression, reference, run = table.get(name, ("its example", "-", example(c, name)))
      made = operations(run) if run else set()
      rows.append((name, reference, " ".join(n for n in OPS if n in made) or "-", expression if run else "-"))
  return rows
