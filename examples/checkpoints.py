"""The folder of a training run: who works in it, its checkpoints, and what one of them may say.

A checkpoint may be a stranger's. Of its metadata only what is named here is taken, each in its form, and no paths;
anything else is a StateError.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from data import Missing, Tokenizer, restored

from mini.nn.state import StateError, safe_load_metadata

NAME = "checkpoint.safetensors"
KEPT = re.compile(r"checkpoint-\d{8}\.safetensors")
# fmt: off
SETTINGS = ["model", "dtype", "batch", "seq", "accumulate", "steps", "decay_steps", "lr", "warmup", "decay", "clip",
            "dropout", "seed", "save_every", "eval_every", "sample"]
# fmt: on


# ---------------------------------------------------------------- what it says


def entry(path: Path, said: dict[str, str], name: str, form: Callable[[Any], Any] = str) -> Any:
  """What the metadata say under a name, in a form."""
  try:
    return form(said[name])
  except (KeyError, ValueError, TypeError, RecursionError, OverflowError):
    what = "no" if name not in said else "no valid"
    raise StateError(f"{path} is no checkpoint of train_gpt2.py: its metadata have {what} {name!r}") from None


def count(text: str) -> int:
  n = int(text)
  if not 0 <= n < 1 << 62:
    raise ValueError(text)
  return n


def json_of(*kinds: type) -> Callable[[str], list]:
  """A JSON list of values of these types."""

  def parse(text: str) -> list:
    found = json.loads(text)
    if not isinstance(found, list) or [*map(type, found)] != [*kinds]:
      raise ValueError(text)
    return found

  return parse


def settings_of(text: str) -> dict[str, Any]:
  """Those of SETTINGS, which are numbers and words."""
  found = dict(json.loads(text))
  known = {name: found[name] for name in SETTINGS if found.get(name) is not None}
  if any(type(x) not in (str, int, float) for x in known.values()):
    raise ValueError(text)
  return known


class Said(NamedTuple):
  """The metadata of a checkpoint."""

  settings: dict[str, Any]
  tokenizer: Tokenizer
  step: int
  position: int
  generator: tuple[int, int]
  machine: str
  data: str  # a digest of the tokens
  files: str  # the names of what it was trained on, to be shown


def tokenizer_of(path: Path, said: dict[str, str]) -> Tokenizer:
  kind, text = entry(path, said, "tokenizer", json_of(str, str))
  try:
    return restored(kind, text)
  except Missing:
    raise
  except Exception as e:  # noqa: BLE001 (the class that the tokenizers package raises)
    raise StateError(f"{path}: its tokenizer cannot be read: {e}") from None


def read(path: Path) -> Said:
  """StateError, where it is no checkpoint of train_gpt2.py."""
  said = safe_load_metadata(path)
  key, calls = entry(path, said, "generator", json_of(int, int))
  if not (0 <= key < 1 << 64 and 0 <= calls < 1 << 64):
    raise StateError(f"{path} is no checkpoint of train_gpt2.py: its metadata have no valid 'generator'")
  return Said(
    entry(path, said, "settings", settings_of),
    tokenizer_of(path, said),
    entry(path, said, "step", count),
    entry(path, said, "position", count),
    (key, calls),
    entry(path, said, "machine"),
    entry(path, said, "data"),
    said.get("files", ""),
  )


def with_settings(p: argparse.ArgumentParser, path: Path, said: Said, argv: list[str]) -> argparse.Namespace:
  """The arguments, before which a checkpoint's settings stand. StateError where these are none."""
  given = [f"--{name.replace('_', '-')}={value}" for name, value in said.settings.items()]

  def wrong(message: str) -> None:
    raise StateError(f"{path} is no checkpoint of train_gpt2.py: {message}")

  p.error = wrong  # type: ignore[method-assign,assignment]
  try:
    p.parse_args(given)
  finally:
    del p.error  # type: ignore[method-assign]
  return p.parse_args([*given, *argv])


# ---------------------------------------------------------------- its folder


def locked(out: Path) -> IO[str]:
  """A file in the folder that this process alone has locked, until it ends. Missing, where another run has."""
  out.mkdir(parents=True, exist_ok=True)
  f = open(out / ".lock", "a+")  # noqa: SIM115 (it is given back)
  try:
    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    f.seek(0)
    who = f.read().strip() or "another process"
    raise Missing(
      f"{out}: another run works there ({who}); --out DIR gives this one a folder of its own"
    ) from None
  except OSError as e:  # a file system without locks
    print(f"warning: {out} could not be locked: {e}", file=sys.stderr)
  f.truncate(0)
  f.write(f"process {os.getpid()} on {os.uname().nodename}\n")
  f.flush()
  return f


def saved(out: Path, step: int, keep: int, save: Callable[[Path], None]) -> bool:
  """Save a checkpoint, and keep so many of the last. Where that fails, as on a full disk, a line says so, the one
  before is as it was, and the run goes on."""
  path = out / NAME
  try:
    save(path)
    if keep > 1:
      name = out / f"checkpoint-{step:08}.safetensors"
      name.unlink(missing_ok=True)
      try:
        os.link(path, name)
      except OSError:  # a file system without links
        shutil.copyfile(path, name)
      for old in sorted(p for p in out.iterdir() if KEPT.fullmatch(p.name))[:-keep]:
        old.unlink(missing_ok=True)
    return True
  except OSError as e:
    print(f"\nwarning: step {step} is not saved: {e}", file=sys.stderr)
    return False
