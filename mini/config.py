"""Settings: one table. Each is read from the environment once, when mini is imported, as MINI_NAME or as NAME.

  config.DEBUG              the value that holds here and now
  with Context(DEBUG=2):    other values for a block, in this thread (and async task) only

The prefixed name wins. A MINI_ name that is not in the table, or a value that does not fit, is an error that suggests
the nearest. Where a plain name is another program's, who has a DEBUG too, the prefixed one hides it: MINI_DEBUG=0.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from mini.types import MiniError


class ConfigError(MiniError, ValueError):
  """A setting that does not exist, or a value that does not fit it."""


class Setting(NamedTuple):
  """A row of the table. `parse` makes a value from text and raises ValueError saying what would fit."""

  name: str
  default: str
  parse: Callable[[str], Any]
  meaning: str


# ---------------------------------------------------------------- what a value may be


DEVICES = ["CPU", "CL", "CUDA", "METAL", "INTERP"]  # kinds; `Device.register` adds to them
ELSEWHERE = {
  "GPU": "CUDA, METAL or CL",
  "MPS": "METAL",
  "OPENCL": "CL",
  "NUMPY": "INTERP",
}  # other libraries' names


def device(text: str) -> str:
  kind, colon, index = text.upper().partition(":")
  if text and kind not in DEVICES:
    raise ValueError(suggestion(kind, DEVICES))
  if colon and not index.isdigit():
    raise ValueError(f"{kind}, or {kind}:1, {kind}:2, ... for more of them")
  return f"{kind}:{int(index)}" if index and int(index) else kind


def some_of(*names: str) -> Callable[[str], tuple[str, ...]]:
  def parse(text: str) -> tuple[str, ...]:
    parts = [p.strip().lower() for p in text.split(",") if p.strip()]
    for p in parts:
      if p not in names:
        raise ValueError(suggestion(p, names))
    return tuple(n for n in names if n in parts)

  return parse


class Stages(tuple):
  """Names of stages, and the folder that they are written to; "" for stderr."""

  folder = ""


def stages(*names: str) -> Callable[[str], Stages]:
  """Some of the names, and after a colon the path of a folder."""
  some = some_of(*names)

  def parse(text: str) -> Stages:
    listed, colon, folder = text.partition(":")
    found = Stages(some(listed))
    if colon and (not folder or not found):
      raise ValueError("stages, a colon, and the path of a folder: schedule,kernel:/tmp/stages")
    found.folder = folder
    return found

  return parse


class Texts(tuple):
  """(path, text) of files, and the folder where they were."""

  folder = ""


def texts(folder: str) -> Texts:
  """Each file `*.mini` of a folder."""
  found: list[tuple[str, str]] = []
  try:
    for name in sorted(os.listdir(folder)) if folder else ():
      if name.endswith(".mini"):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
          found.append((os.path.join(folder, name), f.read()))
  except (OSError, UnicodeDecodeError) as e:
    raise ValueError(f"a folder that SHOW=...:FOLDER has written; {e}") from None
  held = Texts(found)
  held.folder = folder
  return held


def number(least: int, most: int) -> Callable[[str], int]:
  def parse(text: str) -> int:
    try:
      value = int(text)
    except ValueError:
      value = least - 1
    if not least <= value <= most:
      raise ValueError(f"a whole number from {least} to {most}")
    return value

  return parse


def switch(text: str) -> bool:
  if text not in ("0", "1"):
    raise ValueError("0 or 1")
  return text == "1"


def text(value: str) -> str:
  return value


def quantities(*names: str) -> Callable[[str], tuple[tuple[str, int], ...]]:
  """name=number for some of the names; 512K and 1M are numbers."""

  def parse(text: str) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for part in (p.strip() for p in text.split(",") if p.strip()):
      name, _, value = (w.strip() for w in part.partition("="))
      digits, unit = (value[:-1], value[-1]) if value[-1:] in UNITS else (value, "")
      if name not in names:
        raise ValueError(suggestion(name, names))
      if not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 1 << 20):
        raise ValueError(f"{name} is a number above 0, such as 8, 512K or 1M")
      found[name] = int(digits) << UNITS.get(unit, 0)
    return tuple(found.items())

  return parse


UNITS = {"K": 10, "M": 20}


def pins(value: str) -> tuple[tuple[str, str], ...]:
  """(pattern of kernels' names, recipe) of each line `PATTERN: STEP; STEP`, or of those of a file."""
  if value and not re.search(r":(\s|$)", value):
    try:
      with open(value, encoding="utf-8") as f:
        value = f.read()
    except (OSError, UnicodeDecodeError) as e:
      raise ValueError(f"a file of recipes, or PATTERN: STEP; STEP; {e}") from None
  found = []
  for line in value.splitlines():
    pattern, colon, recipe = line.partition("#")[0].partition(":")
    if pattern.strip() and not colon:
      raise ValueError(
        f"each line is PATTERN: STEP; STEP, such as contract_*: par i, but not {line.strip()!r}"
      )
    if pattern.strip():
      found.append((pattern.strip(), "\n".join(s.strip() for s in recipe.split(";") if s.strip())))
  return tuple(found)


def folder(value: str) -> str:
  if value in ("0", "1") or "/" in value:
    return value
  raise ValueError("0, 1 or the path of a folder (with a / in it)")


def nearest(given: str, names: Iterable[str]) -> str:
  """The name that is most like what was given; "" if none is."""
  from difflib import get_close_matches  # only an error needs it

  return ELSEWHERE.get(given) or next(iter(get_close_matches(given, list(names), 1, 0.5)), "")


def suggestion(given: str, names: Sequence[str]) -> str:
  close = nearest(given, names)
  return f"one of {', '.join(names)}" + (f"; did you mean {close}?" if close else "")


# fmt: off
TABLE = {s.name: s for s in (
  Setting("DEV", "", device,
    "where tensors are computed: CPU, CL, CUDA, METAL, INTERP (NumPy, slow), with :1 for the second of a "
    "kind; empty for the first that opens of CUDA, METAL, CL on a GPU, CPU"),
  Setting("DEBUG", "0", number(0, 6),
    "prints 1 schedules, 2 times, 3 recipes, 4 sources, 5 kernels, 6 uops; each adds to those before"),
  Setting("SHOW", "", stages("graph", "schedule", "kernel", "uops", "source"),
    "prints these stages of each program once, with commas between them, to stderr, as text that parses; or, after a "
    "colon, to files of a folder: schedule,kernel:/tmp/stages"),
  Setting("EDIT", "", texts,
    "a folder of such files: the schedules and kernels there take the place of those that a program would have"),
  Setting("NOOPT", "0", switch,
    "1: each operation is a kernel of plain loops: nothing is rewritten, fused or tuned"),
  Setting("CHECK", "0", switch,
    "1: verifies the program between every two passes, and looks for NaNs that no input had, and for integers divided "
    "by 0"),
  Setting("TRACE", "0", switch,
    "1: logs the name of each rewrite rule where it first applies"),
  Setting("PROFILE", "0", switch,
    "1: times every kernel and the rest of mini, and prints the sums at exit"),
  Setting("LIMITS", "", quantities("gflops", "gbs", "us"),
    "what PROFILE compares kernels with, for what is not as it was measured: gflops=200,gbs=20,us=2"),
  Setting("THREADS", "0", number(0, 256),
    "threads for one kernel; 0 for as many as this process may use"),
  Setting("CACHE", "1", folder,
    "compiled code on disk, and how large programs run it: 0 off, 1 in $XDG_CACHE_HOME/mini or ~/.cache/mini, or a "
    "folder"),
  Setting("CC", "", text,
    "the C compiler's command; empty for the first of cc, gcc, clang, ziglang"),
  Setting("SEARCH", "0", number(0, 256),
    "n: times n candidates a round for the recipe of each kernel that is new, in another process, and keeps "
    "the best on disk: slow once (python -m mini tune)"),
  Setting("RECIPES", "", pins,
    "recipes for kernels of one's own programs: a file of lines PATTERN: STEP; STEP, of which the first whose pattern "
    "fits a kernel's name counts, such as contract_64_*; one that does not apply is an error"),
  Setting("MACHINE", "", quantities("lanes", "registers", "threads", "streams", "issue", "l1", "l2", "stack"),
    "what recipes are to think of the CPU, for what is not as it was found: "
    "lanes=8,registers=16,threads=2,streams=8,issue=4,l1=32K,l2=512K,stack=512K"),
  Setting("EMULATE", "0", switch,
    "1: CL, CUDA and METAL are emulated on this CPU, whether or not there is a driver"),
  Setting("FEW", "32768", number(0, 1 << 20),
    "as many values of mini.numpy's arrays NumPy computes at once, where nothing is traced, shown or timed"),
  Setting("FAST", "0", switch,
    "1: also rewrite rules that may change a rounding, and products of float32 by matrix instructions that "
    "round to TF32"),
)}
# fmt: on
PREFIX = "MINI_"
CODE = ("NOOPT", "FAST", "MACHINE", "SEARCH", "RECIPES", "EDIT")  # the settings that kernels depend on


def read_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
  """The value of every setting, and the name of the variable that it came from ("" for the default)."""
  for name in environ:
    if name.startswith(PREFIX) and name[len(PREFIX) :] not in TABLE:
      raise ConfigError(f"there is no setting {name}: {suggestion(name, [PREFIX + n for n in TABLE])}")
  values, origins = {}, {}
  for row in TABLE.values():
    values[row.name], origins[row.name] = row.parse(row.default), ""
    # A plain name that is set but empty is as good as not set; a prefixed one hides it, and is the default.
    name = next(
      (n for n in (PREFIX + row.name, row.name) if environ.get(n) or (n in environ and n != row.name)), ""
    )
    try:
      if environ.get(name):
        values[row.name], origins[row.name] = row.parse(environ[name]), name
    except ValueError as e:
      others = f" (if it is another program's: {PREFIX}{name}={row.default} is looked at first)"
      raise ConfigError(f"{name}={environ[name]} does not fit: {e}{others * (name == row.name)}") from None
  return values, origins


_override: ContextVar[dict[str, Any]] = ContextVar("mini settings", default={})  # noqa: B039 (only replaced)


# What stands for the settings of this block: another object wherever others hold.
settings_here = _override.get


class Config:
  """The settings as attributes: of the innermost Context that sets one, or from the environment, or the default."""

  def __init__(self, environ: Mapping[str, str]):
    self._values, self._origins = read_environment(environ)
    self._values["shown"] = set()  # what SHOW has printed under these settings; a Context has its own
    # Asked at every launch, where mostly no Context is open.
    self._code = tuple(self._values[name] for name in CODE)
    self._watched = any(self._values[name] for name in ("SHOW", "DEBUG", "PROFILE", "CHECK"))

  def __getattr__(self, name: str) -> Any:
    override = _override.get()
    if name in override:
      return override[name]
    try:
      return self._values[name]
    except KeyError:
      raise AttributeError(f"there is no setting {name}: {suggestion(name, list(TABLE))}") from None

  @property
  def code(self) -> tuple[Any, ...]:
    """The settings that kernels depend on: what keeps any keeps them by these, too."""
    return tuple(getattr(self, name) for name in CODE) if _override.get() else self._code

  @property
  def watched(self) -> bool:
    """Is anybody to be told of what runs?"""
    return bool(self.SHOW or self.DEBUG or self.PROFILE or self.CHECK) if _override.get() else self._watched

  def origin(self, name: str) -> str:
    """Where the value comes from: "Context", a variable's name, or "default"."""
    return "Context" if name in _override.get() else self._origins[name] or "default"

  def __str__(self) -> str:
    """What `python -m mini config` prints: name, value, where it came from, meaning."""
    rows = [(n, spelled(getattr(self, n)), self.origin(n), row.meaning) for n, row in TABLE.items()]
    widths = [max(len(r[i]) for r in rows) for i in range(3)]
    return "\n".join("  ".join([*(c.ljust(w) for c, w in zip(r, widths)), r[3]]) for r in rows)


class Context:
  """Other settings for a block, in this thread only; blocks nest.

  >>> from mini.config import Context, config
  >>> with Context(DEBUG=0, SHOW="kernel"):
  ...   config.SHOW
  ('kernel',)
  """

  def __init__(self, **settings: Any):
    self.values: dict[str, Any] = {}
    self.tokens: list[Any] = []
    for name, value in settings.items():
      if name not in TABLE:
        raise ConfigError(f"there is no setting {name}: {suggestion(name, list(TABLE))}")
      try:
        self.values[name] = TABLE[name].parse(spelled(value))
      except ValueError as e:
        raise ConfigError(f"{name}={value!r} does not fit: {e}") from None

  def __enter__(self) -> Context:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
    self.tokens.append(_override.set({**_override.get(), "shown": set(), **self.values}))
    return self

  def __exit__(self, *exception: object) -> None:
    _override.reset(self.tokens.pop())


def recipes(pinned: Mapping[str, str]) -> Context:
  """Recipes of one's own for a block: `with mini.recipes({"contract_64_*": "split j 8 -> jo, jv; vec jv; par i"}):`.

  pinned: pattern of kernels' names, as SHOW and PROFILE tell them -> steps, with ; or line ends between them. The first
  that fits a kernel counts, and such a kernel has code of its own. RecipeError where a step does not apply; the steps
  are in docs/text.md. `RECIPES=FILE` does the same for a process; `python -m mini tune --out FILE` writes one.

  >>> import mini
  >>> with mini.recipes({"map_*": "par i"}):
  ...   mini.Tensor([1.0, 2.0]).exp2().numpy()
  array([2., 4.], dtype=float32)
  """
  if wrong := [x for pair in pinned.items() for x in pair if not isinstance(x, str)]:
    raise ConfigError(f"recipes: patterns and recipes are text, not {wrong[0]!r}")
  lines = ((pattern, "; ".join(recipe.splitlines())) for pattern, recipe in pinned.items())
  return Context(RECIPES="\n".join(f"{pattern}: {recipe}" for pattern, recipe in lines))


def spelled(value: Any) -> str:
  """A value as the environment would spell it."""
  if isinstance(value, bool):
    return str(int(value))
  if isinstance(value, Stages) and value.folder:
    return f"{','.join(value)}:{value.folder}"
  if isinstance(value, Texts):
    return value.folder
  if isinstance(value, (tuple, list)):
    return ",".join(v if isinstance(v, str) else f"{v[0]}={v[1]}" for v in value)
  return str(value)


try:
  config = Config(os.environ)
except ConfigError as e:
  if sys.argv[:1] == ["-m"] and "mini" in sys.orig_argv:  # the command line: its errors are a line
    sys.exit(str(e))
  raise e.with_traceback(None) from None  # of this line, whoever imports mini
