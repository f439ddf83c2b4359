"""Files that are there whole or not at all, and temporary ones that say whose they are.

The name of a temporary file has the host and the process in it. What a process that was killed has left is so found by
the next one on the same host that writes to the folder, and removed.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

HOST = re.sub(r"\W", "_", os.uname().nodename)[:64]
MARK = re.compile(r"mini-(\w+)-([0-9]+)-")
_counter = itertools.count()
_swept: set[tuple[int, str]] = set()


def mark() -> str:
  """What stands in the names of this process's temporary files."""
  return f"mini-{HOST}-{os.getpid()}-"


def is_alive(pid: int) -> bool:
  """Is there such a process on this host?"""
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  except (PermissionError, OverflowError):
    return True
  return True


def is_abandoned(name: str) -> bool:
  """Is this the name of a temporary file whose process, on this host, is no more?"""
  found = MARK.search(name)
  return found is not None and found[1] == HOST and not is_alive(int(found[2]))


def sweep(folder: str) -> None:
  """Remove what this user's dead processes have left in a folder."""
  try:
    with os.scandir(folder) as entries:
      left = [
        e for e in entries if is_abandoned(e.name) and e.stat(follow_symlinks=False).st_uid == os.geteuid()
      ]
  except OSError:
    return
  for e in left:
    if e.is_dir(follow_symlinks=False):
      import shutil  # 5 ms, and seldom needed

      shutil.rmtree(e.path, ignore_errors=True)
    else:
      remove(e.path)


def sweep_once(folder: str) -> None:
  """`sweep`, in this process for the first time."""
  if (os.getpid(), folder) not in _swept:
    _swept.add((os.getpid(), folder))
    sweep(folder)


def remove(path: str) -> None:
  """Removes a file that another process may remove too."""
  try:
    os.unlink(path)
  except OSError:
    pass


@contextmanager
def written(path: str | os.PathLike, durable: bool = True) -> Iterator[BinaryIO]:
  """A file to write, which has its name when all of it is written, and is gone if that fails: then the old one stands.
  An OSError names the file.

  durable: when it has its name it is on disk, too.
  """
  path = os.path.abspath(path)
  folder, name = os.path.split(path)
  if not os.path.isdir(folder):
    raise FileNotFoundError(f"{path}: there is no folder {folder}")
  if durable:
    sweep(folder)
  part = os.path.join(folder, f".{name[:100]}.{mark()}{next(_counter)}.part")
  try:
    with open(part, "xb") as f:
      yield f
      if durable:
        f.flush()
        os.fsync(f.fileno())
    os.replace(part, path)
  except OSError as e:
    remove(part)
    if e.errno is None or e.filename not in (None, part):
      raise
    raise type(e)(e.errno, f"{e.strerror}: it could not be written, and is as it was", path) from None
  except BaseException:
    remove(part)
    raise
  if durable:
    at = os.open(folder, os.O_RDONLY)
    try:
      os.fsync(at)  # the new name, too, is on disk
    finally:
      os.close(at)
