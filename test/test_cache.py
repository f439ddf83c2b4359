"""The disk cache: what comes out is what went in, or nothing, whatever happens to the folder."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from mini.engine import cache as module
from mini.engine.cache import DiskCache, default_folder, disk_cache, open_cache
from runtime import compiler, cpu, host, library
from runtime import files as files_of
from runtime.base import Call, DeviceError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture
def cache(tmp_path):
  found = open_cache(str(tmp_path / "cache"))
  assert found is not None
  return found


def contents(cache: DiskCache, key: str) -> bytes | None:
  path = cache.get(key)
  if path is None:
    return None
  with open(path, "rb") as f:
    return f.read()


def files(cache: DiskCache) -> list[str]:
  return sorted(os.listdir(cache.folder))


# ---------------------------------------------------------------- entries


def test_what_was_put_is_got_by_this_process_and_the_next(cache):
  assert cache.get("a") is None
  path = cache.put("a", b"code of a")
  assert path and contents(cache, "a") == b"code of a"
  assert contents(DiskCache(cache.folder), "a") == b"code of a"
  assert cache.get("b") is None and len(files(cache)) == 1


def test_an_entry_of_another_process_is_seen(cache):
  assert cache.get("a") is None
  time.sleep(0.02)  # a folder's time of change has steps of some milliseconds
  DiskCache(cache.folder).put("a", b"code")
  assert contents(cache, "a") == b"code"


@pytest.mark.parametrize(
  "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:3] + b"\0" + b[4:], lambda b: b + b"x"]
)
def test_a_damaged_entry_is_removed_and_built_again(cache, damage, caplog):
  path = cache.put("a", b"code of a")
  with open(path, "rb") as f:
    data = f.read()
  with open(path, "wb") as f:
    f.write(damage(data))
  with caplog.at_level(logging.WARNING, "mini"):
    assert cache.get("a") is None
  assert "damaged" in caplog.text and files(cache) == []
  cache.put("a", b"code of a")
  assert contents(cache, "a") == b"code of a"


def test_damaged_code_is_not_loaded_but_compiled_again(cache):
  source = "void f(void **args, long lo, long hi) { *(int *)args[0] = 3; }"
  for hits in (0, 1, 0):
    device = cpu.open(cache=cache)
    lib = device.compile(source)
    assert device.counters["disk_hits"] == hits
    block = device.alloc(4)
    device.sequence([Call(lib["f"], [(0, 0)], 1, 0)]).run([block])
    assert device.download(block, 4)[0] == 3
    if hits:
      path = cache.get(device.compiler.key(source))
      replacement = path + ".new"  # not in place: the file is mapped into this process
      with open(replacement, "wb") as f:
        f.write(b"\x7fELF nonsense")
      os.rename(replacement, path)


def test_the_oldest_go_first_when_there_are_too_many_bytes(tmp_path):
  cache = open_cache(str(tmp_path / "cache"), limit_bytes=16 * 1000)
  for n in range(16):
    os.utime(cache.put(f"key {n}", bytes(1000)), (n, n))
  assert cache.get("key 0")  # now it was used last
  for n in range(16, 19):
    cache.put(f"key {n}", bytes(1000))
  cache.trim()
  left = [n for n in range(19) if cache.get(f"key {n}")]
  assert left[0] == 0 and left[1:] == list(range(left[1], 19)) and left[1] > 1
  assert sum(nbytes for _, nbytes, _ in cache.entries()) <= 16 * 1000


def test_room_is_made_for_a_while(tmp_path):
  full = open_cache(str(tmp_path / "cache"), limit_bytes=1 << 20)
  for n in range(20):
    full.put(str(n), bytes(1000))
  small = open_cache(str(tmp_path / "cache"), limit_bytes=16_000)
  small.trim()
  assert sum(nbytes for _, nbytes, _ in small.entries()) == 14_000


def test_the_cap_holds_while_entries_are_put(tmp_path):
  cache = open_cache(str(tmp_path / "cache"), limit_bytes=100_000)
  for n in range(300):
    cache.put(str(n), bytes(5000))
  assert sum(nbytes for _, nbytes, _ in cache.entries()) <= 110_000 and cache.get("299")


def test_what_a_killed_process_left_goes(cache):
  """At once where it was on this host, and in time where that was another."""
  with subprocess.Popen([sys.executable, "-c", ""]) as ended:
    pass
  names = [f".x.mini-{files_of.HOST}-{ended.pid}-0.part", ".x.mini-other-1-0.part", ".x.mini-other-1-1.part"]
  here, old, new = (os.path.join(cache.folder, name) for name in names)
  for path in (here, old, new):
    with open(path, "w"):
      pass
  os.utime(old, (0, 0))
  cache.put("a", b"a")
  assert [os.path.exists(path) for path in (here, old, new)] == [False, False, True]


def test_a_full_disk_costs_the_entry_and_nothing_else(cache, monkeypatch, caplog):
  def full(*args):
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(os, "replace", full)
  assert cache.put("a", b"a") is None and "No space left" in caplog.text
  assert files(cache) == []
  device = cpu.open(cache=cache)
  assert device.compile("void f(void **args, long lo, long hi) { }")["f"]


def test_show_and_clear(cache):
  cache.put("a", bytes(3_000_000))
  cache.put("b", b"b")
  foreign = os.path.join(cache.folder, "notes.txt")
  with open(foreign, "w"):
    pass
  assert "2 entries, 3.0 MB of at most 537 MB" in cache.describe()
  assert cache.clear() == (2, 3_000_001)
  assert files(cache) == ["notes.txt"] and cache.get("a") is None


# ---------------------------------------------------------------- the folder


def test_the_folder_is_closed_to_others(tmp_path):
  assert stat.S_IMODE(os.stat(open_cache(str(tmp_path / "a" / "b")).folder).st_mode) == 0o700
  readable = tmp_path / "c"
  readable.mkdir(mode=0o755)
  assert open_cache(str(readable)) and stat.S_IMODE(readable.stat().st_mode) == 0o700


def test_a_folder_that_others_could_write_is_not_used(tmp_path, caplog, monkeypatch):
  tmp_path.chmod(0o777)
  assert open_cache(str(tmp_path)) is None and "could be written by others" in caplog.text
  tmp_path.chmod(0o700)
  monkeypatch.setattr(module.os, "geteuid", lambda: os.getuid() + 1)
  assert open_cache(str(tmp_path)) is None and "belongs to another user" in caplog.text


def test_a_folder_that_cannot_be_made_turns_the_cache_off(tmp_path, caplog):
  (tmp_path / "file").touch()
  assert open_cache(str(tmp_path / "file" / "cache")) is None
  assert caplog.text.count("\n") == 1 and "cannot be used" in caplog.text


def test_the_setting_says_where(monkeypatch, tmp_path):
  from mini.config import Context

  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  assert default_folder() == str(tmp_path / "mini") == open_cache("1").folder
  monkeypatch.delenv("XDG_CACHE_HOME")
  assert default_folder() == os.path.expanduser("~/.cache/mini")
  with Context(CACHE=0):
    assert disk_cache() is None
  with Context(CACHE=str(tmp_path / "here")):
    assert disk_cache().folder == str(tmp_path / "here")


# ---------------------------------------------------------------- what the key holds


def test_another_processor_flag_compiler_or_source_is_another_key(cache, monkeypatch):
  found = compiler.find(cache=cache)
  keys = {found.key("a"), found.key("b")}
  keys.add(compiler.Compiler(found.command, {**found.macros, "__AVX9__": "1"}).key("a"))
  keys.add(compiler.Compiler(found.command, {**found.macros, "__VERSION__": '"99"'}).key("a"))
  keys.add(compiler.Compiler([*found.command, "-g"], found.macros).key("a"))
  monkeypatch.setattr(compiler, "MATH_FLAGS", [])
  keys.add(found.key("a"))
  assert len(keys) == 6


def test_the_compiler_is_asked_once_for_each_processor(cache, monkeypatch, tmp_path):
  log = tmp_path / "log"
  cc = tmp_path / "cc"
  cc.write_text(f'#!/bin/sh\necho asked >> {log}\nexec {compiler.which("cc")} "$@"\n')
  cc.chmod(0o755)
  for _ in range(3):
    compiler.find(str(cc), cache)
  assert log.read_text().count("asked") == 1
  monkeypatch.setattr(host, "processor", lambda: "another machine with the same home folder")
  compiler.find(str(cc), cache)
  assert log.read_text().count("asked") == 2
  os.utime(cc, (1, 1))  # another compiler
  compiler.find(str(cc), cache)
  assert log.read_text().count("asked") == 3


# ---------------------------------------------------------------- what is missing


ADD = "from mini import Tensor; print((Tensor([1.0, 2.0]) + 1).numpy())"


def ran(program, **variables):
  how = {"capture_output": True, "text": True, "cwd": ROOT, "env": {**os.environ, "DEV": "CPU", **variables}}
  return subprocess.run(program, check=False, **how)


@pytest.mark.parametrize("setting", ["0", pytest.param("folder", marks=pytest.mark.full)])
def test_code_is_loaded_where_temporary_files_may_not_be_executed(tmp_path, setting):
  folder = tmp_path / "noexec"
  folder.mkdir()
  mounted = f"mount -t tmpfs -o noexec tmpfs {folder}"
  if ran(["unshare", "-rm", "sh", "-c", mounted]).returncode:
    pytest.skip("a file system cannot be mounted here")
  variables = {"TMPDIR": str(folder), "CACHE": setting if setting == "0" else str(folder / "cache")}
  maps = "print(open('/proc/self/maps').read().count('memfd') > 0, __import__('os').listdir())"
  program = f'cd {folder} && {sys.executable} -c "{ADD}; {maps}"'
  # twice, as the second time finds a cache
  variables["PYTHONPATH"] = ROOT
  done = ran(["unshare", "-rm", "sh", "-c", f"{mounted} && {program} && {program}"], **variables)
  left = ["cache"] if setting != "0" else []
  assert done.stdout == f"[2. 3.]\nTrue {left}\n" * 2, done.stdout + done.stderr


def test_code_that_cannot_be_loaded_says_what_would_help(monkeypatch):
  def refused(path):
    raise OSError(f"{path}: failed to map segment")

  monkeypatch.setattr(library.ctypes, "CDLL", refused)
  with pytest.raises(DeviceError, match="failed to map segment\n.*TMPDIR=FOLDER takes another"):
    library.Library.of(b"code")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="Linux alone has it")
def test_two_libraries_without_files_are_two():
  found = [compiler.find().start(f"int f(void) {{ return {n}; }}").finish() for n in range(2)]
  assert [library.in_memory(data).f() for data in found] == [0, 1]


def test_a_warm_cache_needs_no_compiler(tmp_path):
  python = os.path.realpath(sys.executable)
  here = {"PYTHONPATH": os.pathsep.join([ROOT, *sys.path]), "CACHE": str(tmp_path / "cache"), "CC": ""}
  assert ran([python, "-c", ADD], **here).stdout == "[2. 3.]\n"
  here["PATH"] = str(tmp_path)  # where no compiler is
  assert ran([python, "-c", ADD], **here).stdout == "[2. 3.]\n"
  new = ran([python, "-c", ADD.replace("+ 1", "* 5 - 2")], **here)
  assert (
    new.returncode == 1 and "this is not in the cache, and the CPU device needs a C compiler" in new.stderr
  )
  none = ran([python, "-c", ADD], **{**here, "CACHE": "0"})
  assert none.returncode == 1 and "DeviceError: the CPU device needs a C compiler" in none.stderr


def test_the_compiler_that_was_found_last_is_remembered_once(cache, monkeypatch):
  found = compiler.find(cache=cache)
  before = files(cache)
  assert compiler.find(cache=cache) == found and files(cache) == before
  newer = compiler.Compiler(found.command, {**found.macros, "__VERSION__": '"99"'})
  monkeypatch.setattr(compiler, "_find", lambda *args: newer)
  compiler.find(cache=cache)
  assert len(files(cache)) == len(before)

  def none(*args):
    raise DeviceError("gone")

  monkeypatch.setattr(compiler, "_find", none)
  last = compiler.find(cache=cache)
  assert (last.command, last.macros, last.key("a")) == (newer.command, newer.macros, newer.key("a"))
  with pytest.raises(DeviceError, match="not in the cache, and gone"):
    last.start("int f;")


# ---------------------------------------------------------------- many at once


@pytest.mark.full
def test_eight_processes_share_one_folder(tmp_path):
  code = """
import random, sys
from mini.engine.cache import open_cache
from runtime import cpu
from runtime.base import Call, DeviceError
seed = int(sys.argv[1])
cache = open_cache(sys.argv[2], limit_bytes=120_000)
device = cpu.open(threads=1, cache=cache)
order = list(range(6))
random.Random(seed).shuffle(order)
for n in order:
  lib = device.compile(f"void f(void **args, long lo, long hi) {{ *(int *)args[0] = {n}; }}")
  block = device.alloc(4)
  device.sequence([Call(lib["f"], [(0, 0)], 1, 0)]).run([block])
  assert device.download(block, 4)[0] == n
rng = random.Random(seed)
for _ in range(100):  # entries come and go, and some are damaged
  k = rng.randrange(20)
  path = cache.get(f"key {k}")
  if path is None:
    cache.put(f"key {k}", bytes([k]) * 10_000)
    continue
  try:
    with open(path, "rb") as f:
      assert f.read() in (bytes([k]) * 10_000, bytes([k]) * 99)  # damaged since `get` verified it
    if rng.random() < 0.02:
      with open(path, "r+b") as f:
        f.truncate(99)
  except FileNotFoundError:
    pass
"""
  env = {**os.environ, "PYTHONPATH": ROOT}
  running = [subprocess.Popen([sys.executable, "-c", code, str(n), str(tmp_path / "cache")], env=env,
                              stderr=subprocess.PIPE, text=True) for n in range(8)]  # fmt: skip
  for process in running:
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
  assert not [f for f in os.listdir(tmp_path / "cache") if f.endswith(".part")]


def test_threads_share_one_cache(cache):
  def work():
    for n in range(200):
      cache.put(str(n % 10), b"code")
      assert contents(cache, str(n % 10)) in (b"code", None)

  threads = [threading.Thread(target=work) for _ in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert all(contents(cache, str(n)) == b"code" for n in range(10))
