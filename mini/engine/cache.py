"""Compiled code on disk: a folder of files that are verified before they are used.
What a key must hold is the caller's to know.

An entry is one file, `<digest of the key>-<digest of the bytes>`, written under a temporary name and renamed, so other
processes see all of it or nothing, and never see it change. Whoever finds an entry damaged removes it and builds it
again.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time

from mini.config import config
from runtime.files import MARK, remove, sweep, written

LIMIT_BYTES = 512 << 20  # of all entries; a GPT-2 training step takes about 1 MB
RESULT_BYTES = 16 << 20  # of all recipes that were found
STALE_SECONDS = 3600  # after which a temporary file is what a killed process left, on whatever host
ENTRY = re.compile(r"[0-9a-f]{32,}-[0-9a-f]{32,}")  # older ones are shorter
_refused: set[tuple[str, str]] = set()  # what the log has said of folders that are not used


def warn(message: str, *args: object) -> None:
  """A line of warning in the log."""
  import logging  # a tenth of the time that the first tensor takes, and seldom needed

  logging.getLogger("mini").warning(message, *args)


def default_folder() -> str:
  """`$XDG_CACHE_HOME/mini`, or `~/.cache/mini`."""
  return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mini")


def digest(data: bytes) -> str:
  """256 bits, in hexadecimal: nobody finds two keys, or two libraries, that share them."""
  return hashlib.blake2b(data, digest_size=32).hexdigest()


def disk_cache() -> DiskCache | None:
  """The cache that the setting CACHE asks for."""
  return open_cache(config.CACHE)


def result_cache(make: bool = False) -> DiskCache | None:
  """Where recipes are kept that a search has found: beside the code.
  None where there are none, unless `make` is true."""
  code = disk_cache()
  folder = os.path.join(code.folder, "recipes") if code else ""
  if not folder or not (make or os.path.isdir(folder)):
    return None
  reason = secure(folder)
  if reason:
    warn("recipes that were searched for are not kept: %s %s", folder, reason)
  return None if reason else DiskCache(folder, RESULT_BYTES)


def open_cache(setting: str, limit_bytes: int = LIMIT_BYTES) -> DiskCache | None:
  """The cache for a value of the setting CACHE: "0" for none, "1" for the default folder, or a folder.

  None, and once a line of warning in the log, for a folder that cannot be trusted or written.
  """
  if setting == "0":
    return None
  folder = default_folder() if setting == "1" else os.path.abspath(os.path.expanduser(setting))
  reason = secure(folder)
  if reason:
    if (folder, reason) not in _refused:
      _refused.add((folder, reason))
      warn("nothing is cached on disk: %s %s (CACHE=0 or CACHE=FOLDER avoids this)", folder, reason)
    return None
  return DiskCache(folder, limit_bytes)


def secure(folder: str) -> str:
  """Makes the folder, open to its owner only; the reason why code from it must not be run, or ""."""
  try:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.stat(folder)
    if status.st_uid != os.geteuid():
      return "belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
      return "could be written by others"
    if stat.S_IMODE(status.st_mode) != 0o700:
      os.chmod(folder, 0o700)
    return "" if os.access(folder, os.W_OK | os.X_OK) else "cannot be written"
  except OSError as e:
    return f"cannot be used: {e.strerror}"


class DiskCache:
  """The entries of one folder. Any number of processes and threads may use it at once."""

  def __init__(self, folder: str, limit_bytes: int = LIMIT_BYTES):
    self.folder, self.limit_bytes = folder, limit_bytes
    self.index: dict[str, str] = {}  # digest of the key -> file name
    self.seen = -1  # the folder's time of change when `index` was made
    self.room = 0  # bytes that may be put before the total is measured again

  def get(self, key: str) -> str | None:
    """The path of the entry with this key, its bytes verified; None where there is none."""
    name = self.names().get(digest(key.encode()))
    if name is None:
      return None
    path = os.path.join(self.folder, name)
    try:
      with open(path, "rb") as f:
        intact = digest(f.read()) == name.partition("-")[2]
      if intact:
        os.utime(path)  # used now: `trim` takes what was not used for longest
        return path
      warn("a damaged entry was removed from the cache: %s", path)
      os.unlink(path)
    except OSError:  # another process removed it
      pass
    self.index.pop(name.partition("-")[0], None)
    return None

  def put(self, key: str, data: bytes) -> str | None:
    """Writes an entry and returns its path; None, and a line in the log, where that fails (a full disk)."""
    name = f"{digest(key.encode())}-{digest(data)}"
    path = os.path.join(self.folder, name)
    try:
      with written(path, durable=False) as f:
        f.write(data)
    except OSError as e:
      warn("the cache could not be written: %s", e)
      return None
    self.index[name.partition("-")[0]] = name
    self.room -= len(data)
    if self.room < 0:
      self.trim(keep=name)
      self.room = self.limit_bytes // 16
    return path

  def names(self) -> dict[str, str]:
    """File names by digest of the key, read again when the folder has changed."""
    try:
      changed = os.stat(self.folder).st_mtime_ns
      if changed != self.seen:
        self.index = {name.partition("-")[0]: name for name in os.listdir(self.folder)}
        self.seen = changed
    except OSError:
      self.index = {}
    return self.index

  def entries(self) -> list[tuple[float, int, str]]:
    """When each entry was last used, its bytes and its path; the oldest first."""
    sweep(self.folder)
    found = []
    for entry in _scan(self.folder):
      try:
        status = entry.stat()
      except OSError:
        continue
      if ENTRY.fullmatch(entry.name):
        found.append((status.st_mtime, status.st_size, entry.path))
      elif MARK.search(entry.name) and time.time() - status.st_mtime > STALE_SECONDS:
        remove(entry.path)
    return sorted(found)

  def trim(self, keep: str = "") -> None:
    """Removes the oldest entries while there are more bytes than allowed, down to 7/8 of that."""
    entries = self.entries()
    total = sum(nbytes for _, nbytes, _ in entries)
    if total <= self.limit_bytes:
      return
    for _, nbytes, path in entries:
      if total <= self.limit_bytes // 8 * 7:
        break
      if os.path.basename(path) != keep:
        remove(path)
        total -= nbytes

  def clear(self) -> tuple[int, int]:
    """Removes every entry; how many there were, and their bytes."""
    entries = self.entries()
    for _, _, path in entries:
      remove(path)
    self.index, self.seen = {}, -1
    return len(entries), sum(nbytes for _, nbytes, _ in entries)

  def describe(self) -> str:
    """What `python -m mini cache` prints."""
    entries = self.entries()
    used = sum(nbytes for _, nbytes, _ in entries)
    size = f"{used / 1e6:.1f} MB of at most {self.limit_bytes / 1e6:.0f} MB"
    lines = [f"{self.folder}: {len(entries)} entries, {size}"]
    if entries:
      days = [(time.time() - used_at) / 86400 for used_at, _, _ in (entries[0], entries[-1])]
      lines.append(f"last used: the oldest {days[0]:.1f} days ago, the newest {days[1]:.1f} days ago")
    return "\n".join(lines)


def _scan(folder: str) -> list[os.DirEntry[str]]:
  try:
    with os.scandir(folder) as it:
      return list(it)
  except OSError:
    return []
