"""The host's C and C++ compilers: which ones, what they compile for, and running them.
Whoever asked loads what comes out."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from runtime import host
from runtime.base import Cache, DeviceError
from runtime.files import mark, remove, sweep_once

# Never -ffast-math: loading a library that gcc linked with it sets flush-to-zero for the whole thread.
BASE_FLAGS = ["-O2", "-std=gnu11", "-fPIC", "-shared", "-pthread", "-fwrapv"]
MATH_FLAGS = ["-fno-math-errno", "-ffp-contract=fast", "-fno-strict-aliasing"]
GCC_FLAGS = ["-Wno-psabi"]
GCC_X86_FLAGS = ["-mtune=haswell"]  # newer tunings fold loads into each FMA of a matmul: 70 for 98 GFLOP/s
CLANG_FLAGS = ["-fno-unroll-loops"]  # unrolling a matmul's K loop spills accumulators: 42 for 98 GFLOP/s
CLANG_HALF = ["-D_Float16=__fp16"]  # of clang before 15, which does not know the other on x86-64
NATIVE = "-mcpu=native" if os.uname().machine in ("arm64", "aarch64") else "-march=native"

NAMES = {"c": ("cc", "gcc", "clang"), "c++": ("c++", "g++", "clang++")}
NOT_FOUND = {
  "c": "the CPU device needs a C compiler: none of $CC, cc, gcc, clang was found "
  "(apt install gcc, or pip install ziglang, or run with DEV=INTERP: slow, needs nothing)",
  "c++": "an emulated device needs a C++ compiler: none of $CC, c++, g++, clang++ was found "
  "(apt install g++, or pip install ziglang)",
}


QUICK = (
  "/* compile quickly */"  # the first line of a source that runs for a moment: a test's, of many kernels
)


@dataclass(frozen=True)
class Compiler:
  """A command and the macros that it defines for this machine, which say what it is and what it compiles for."""

  command: list[str]
  macros: dict[str, str] = field(repr=False)
  missing: str = ""  # why it does not compile: it was here when what the cache has was compiled

  @property
  def name(self) -> str:
    """For a reader: "gcc 12.2.0"."""
    version = self.macros.get("__VERSION__", "").strip('"')
    return version if self.is_clang else f"gcc {version}"

  @property
  def is_clang(self) -> bool:
    """Whether it takes clang's flags; the ziglang wheel does."""
    return "__clang__" in self.macros

  @property
  def flags(self) -> list[str]:
    """Everything between the command and the files."""
    flags = [*BASE_FLAGS, *MATH_FLAGS, NATIVE]
    if self.is_clang:
      return [*flags, *CLANG_FLAGS, *(CLANG_HALF if "__FLT16_MAX__" not in self.macros else [])]
    return [*flags, *GCC_FLAGS, *(GCC_X86_FLAGS if "__x86_64__" in self.macros else [])]

  def check(self) -> None:
    """DeviceError if it is missing."""
    if self.missing:
      raise DeviceError(f"this is not in the cache, and {self.missing}")

  def start(self, source: str) -> Build:
    """Begins to compile C source into a shared library. A source may ask, in its first line, for speed of compiling."""
    self.check()
    level = ["-O0"] if source.startswith(QUICK) else []
    return Build([*self.command, *self.flags, *level, "-x", "c", "-", "-lm"], source)

  def key(self, source: str) -> str:
    """What decides the bytes that come out: equal keys mean equal code."""
    target = [f"{name} {value}" for name, value in sorted(self.macros.items())]
    return "\n".join(["code", *target, " ".join([*self.command, *self.flags]), source])

  def vectors(self) -> tuple[str, int, int]:
    """The widest vectors of the target: their name, float32 lanes of one, number of registers."""
    # fmt: off
    rows = [("__AVX512F__", "avx512", 16, 32),
            ("__AVX2__",    "avx2",    8, 16),
            ("__SSE2__",    "sse2",    4, 16),
            ("__ARM_NEON",  "neon",    4, 32)]
    # fmt: on
    return next((row[1:] for row in rows if row[0] in self.macros), ("scalar", 4, 16))

  def streams(self) -> int:
    """Places in memory from which a core of the target reads the most at once. AMD's alone have CLZERO: two cores of a
    Zen 3 read 4 streams each in 0.84 to 0.89 of the time of 8, as long as torch.sum reads or shorter."""
    return 4 if "__CLZERO__" in self.macros else 8

  def issue(self) -> int:
    """Instructions that a core of the target begins in a cycle, about: a Zen 5, AMD's first with AVX-VNNI, twice as
    many as those before it. (Other cores as wide were not measured.)"""
    return 8 if {"__CLZERO__", "__AVXVNNI__"} <= self.macros.keys() else 4


def find(cc: str = "", cache: Cache | None = None, language: str = "c") -> Compiler:
  """The compiler of the command `cc`, or where it is "" the first of cc, gcc, clang and the ziglang wheel that works.
  Where there is none, the one that was found last: what it compiled is in the cache, and runs.

  language: "c" or "c++", for which c++, g++ and clang++ are tried. A C compiler's command may do for both.
  """
  key = f"compiler\n{language}\n{cc}\n{host.processor()}"
  path = cache.get(key) if cache else None
  last = host.read(path) if path else ""
  try:
    found = _find(cc, cache, language)
  except DeviceError as e:
    if not last:
      raise
    command, _, macros = last.partition("\n")
    return Compiler(shlex.split(command), _macros(macros), missing=str(e))
  now = "\n".join([shlex.join(found.command), *(f"#define {name} {x}" for name, x in found.macros.items())])
  if cache and now != last:
    if path:
      remove(path)
    cache.put(key, now.encode())
  return found


def _macros(text: str) -> dict[str, str]:
  return dict(re.findall(r"^#define (\w+) (.*)$", text, re.MULTILINE))


def _find(cc: str, cache: Cache | None, language: str) -> Compiler:
  if cc:
    try:
      found = _ask(shlex.split(cc), cache, language)
    except DeviceError as e:
      raise DeviceError(f"CC={cc} does not compile for this machine\n  {e}") from None
    if not found:
      names = ", ".join(NAMES[language])
      raise DeviceError(f"CC={cc}: there is no such command; without CC the first of {names} is taken")
    return found
  failed: DeviceError | None = None
  for command in [*([name] for name in NAMES[language]), _ziglang()]:
    try:
      found = _ask(command, cache, language)
    except DeviceError as e:
      failed = failed or e
    else:
      if found:
        return found
  raise failed or DeviceError(NOT_FOUND[language])


def _ziglang() -> list[str]:
  """The wheel's compiler, which takes C and C++."""
  from importlib.util import find_spec

  spec = find_spec("ziglang")
  return [os.path.join(os.path.dirname(spec.origin), "zig"), "cc"] if spec and spec.origin else []


def which(program: str) -> str:
  """The absolute path of a program, "" where there is none. (shutil.which costs 5 ms of imports.)"""
  folders = [""] if os.path.dirname(program) else os.environ.get("PATH", os.defpath).split(os.pathsep)
  paths = (os.path.abspath(os.path.join(folder, program)) for folder in folders)
  return next((p for p in paths if os.path.isfile(p) and os.access(p, os.X_OK)), "")


def _ask(command: list[str], cache: Cache | None, language: str) -> Compiler | None:
  """The compiler, if there is one; DeviceError if it does not work.
  Its answer is kept: a home folder may be shared by machines, so per processor too."""
  path = which(command[0]) if command else ""
  if not path:
    return None
  command = [path, *command[1:]]
  programs = [os.path.realpath(p) for p in map(which, command) if p]  # "ccache gcc" is two
  stamps = [f"{p} {os.stat(p).st_mtime_ns} {os.stat(p).st_size}" for p in programs]
  key = "\n".join(["macros", language, *command, *stamps, host.processor()])
  kept = cache.get(key) if cache else None
  text = host.read(kept) if kept else ""
  if not text:
    data = Build([*command, NATIVE, "-dM", "-E", "-x", language, "-"], "").finish()
    text = data.decode(errors="replace")
    if cache:
      cache.put(key, data)
  return Compiler(command, _macros(text))


class Build:
  """One run of a compiler from its standard input to a file, in a folder of its own; begun when it is made."""

  def __init__(self, command: list[str], source: str):
    import tempfile  # it, shutil in `close` and subprocess (posix_spawn is instead) cost 15 ms: not at a warm start

    self.command, self.source, self.owner, self.pid = command, source, os.getpid(), 0
    try:
      sweep_once(tempfile.gettempdir())
      self.folder = tempfile.mkdtemp(prefix=mark())
    except OSError as e:
      raise DeviceError(f"a compiler needs a folder for its files: {e} (TMPDIR=FOLDER names one)") from None
    self.output, self.errors = os.path.join(self.folder, "output"), os.path.join(self.folder, "errors")
    path = os.path.join(self.folder, "source.c")
    try:
      with open(path, "w") as f:
        f.write(source)
      actions = [(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDONLY, 0),
                 (os.POSIX_SPAWN_OPEN, 1, self.errors, os.O_WRONLY | os.O_CREAT, 0o600),
                 (os.POSIX_SPAWN_DUP2, 1, 2)]  # fmt: skip
      own = {**os.environ, "TMPDIR": self.folder}  # for what the compiler leaves when it is killed
      self.pid = os.posix_spawn(command[0], [*command, "-o", self.output], own, file_actions=actions)
    except OSError as e:
      self.close()
      raise DeviceError(f"{command[0]} could not be started: {e}") from None
    except BaseException:
      self.close()
      raise

  def finish(self) -> bytes:
    """Waits for the compiler and returns what it wrote; DeviceError with its words when it failed."""
    if os.getpid() != self.owner:  # forked since then: it is not our child
      return Build(self.command, self.source).finish()
    try:
      try:
        status = os.waitpid(self.pid, 0)[1]
      except ChildProcessError:  # a process that ignores SIGCHLD is not told
        status = 0
      self.pid = 0
      if status == 0 and os.path.exists(self.output):
        with open(self.output, "rb") as f:
          return f.read()
      words = [line for line in host.read(self.errors).splitlines() if line.strip()] or [f"status {status}"]
      words = [line for line in words if "error" in line] or words
      lines = [f"the C compiler failed: {' '.join(self.command)}", *("  " + w for w in words[:8])]
      raise DeviceError("\n".join(lines))
    finally:
      self.close()

  def close(self) -> None:
    """Ends the compiler where it still runs, and removes its files."""
    import shutil

    if os.getpid() != self.owner:
      return
    pid, self.pid = self.pid, 0
    if pid:
      try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
      except (ProcessLookupError, ChildProcessError):
        pass
    shutil.rmtree(self.folder, ignore_errors=True)


def finish_all(builds: Iterable[Build], most: int) -> Iterator[bytes]:
  """What they write, in order. A generator's builds begin when one of the `most` that run at once has ended."""
  running: deque[Build] = deque()
  todo = iter(builds)
  try:
    while True:
      running.extend(islice(todo, most - len(running)))
      if not running:
        return
      yield running.popleft().finish()
  finally:
    for build in running:
      build.close()
