"""What a process leaves in the temporary folder and the cache: nothing; where it was killed, the next one removes it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from runtime import files

EAGER = "from mini import Tensor; assert (Tensor([1.0, 2.0]) * 3).tolist() == [3, 6]"
JITTED = "from mini import Tensor, jit; f = jit(lambda x: x.exp().sum()); f(Tensor([1.0])); print(f(Tensor([0.0])).item())"
FAILING = "from mini import Tensor; Tensor([1.0]).sin().realize(); raise SystemExit(3)"
CODES = {"eager": EAGER, "jitted": JITTED, "failing": FAILING}


def environment(folder, **settings):
  for name in ("tmp", "cache"):
    (folder / name).mkdir(exist_ok=True)
  own = {
    "TMPDIR": str(folder / "tmp"),
    "MINI_CACHE": str(folder / "cache"),
    "MINI_DEV": "CPU",
    "MINI_THREADS": "1",
  }
  return {**os.environ, **own, **settings}


def left(folder):
  """What is in the temporary folder, and what is in the cache that is no entry."""
  return os.listdir(folder / "tmp") + [name for name in os.listdir(folder / "cache") if name.startswith(".")]


def run(code, env):
  return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
  "name, cache",
  [("jitted", "0"), *(pytest.param(n, c, marks=pytest.mark.full) for n in CODES for c in ("", "0"))],
)
def test_a_run_leaves_nothing(tmp_path, name, cache):
  env = environment(tmp_path, **({"MINI_CACHE": cache} if cache else {}))
  done = run(CODES[name], env)
  assert done.returncode == (3 if name == "failing" else 0), done.stderr
  assert left(tmp_path) == []


SLOW = """#!/bin/sh
case "$*" in *-dM*) exec cc "$@";; esac
echo $$ > {pid}
touch "$TMPDIR/ccXXXX.s"  # as a compiler does
exec sleep 60
"""


@pytest.mark.parametrize(
  "number",
  [signal.SIGKILL, *(pytest.param(n, marks=pytest.mark.full) for n in (signal.SIGINT, signal.SIGTERM))],
)
def test_who_is_ended_while_compiling(tmp_path, number):
  """Ctrl-C leaves nothing; of a killed process the next one removes what it left, and of a living one nothing."""
  slow, pid = tmp_path / "slowcc", tmp_path / "pid"
  slow.write_text(SLOW.format(pid=pid))
  slow.chmod(0o755)
  env = environment(tmp_path, MINI_CC=str(slow))
  process = subprocess.Popen([sys.executable, "-c", EAGER], env=env, stderr=subprocess.DEVNULL)
  try:
    end = time.monotonic() + 60
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < end:
      time.sleep(0.02)
    mine = tmp_path / "tmp" / f"{files.mark()}mine"
    mine.mkdir()
    assert run(EAGER, environment(tmp_path)).returncode == 0  # meanwhile
    assert len(left(tmp_path)) >= 2
    process.send_signal(number)
    process.wait(30)
  finally:
    for one in (process.pid, int(pid.read_text())):
      try:
        os.kill(one, signal.SIGKILL)
      except ProcessLookupError:
        pass
    process.wait()
  if number != signal.SIGINT:
    assert len(left(tmp_path)) > 1
    assert run(JITTED, environment(tmp_path, MINI_CACHE=str(tmp_path / "other"))).returncode == 0
  assert left(tmp_path) == [mine.name]


def test_a_link_is_removed_and_not_what_it_points_to(tmp_path):
  """Anybody can write to a temporary folder; what is another user's stays."""
  with subprocess.Popen([sys.executable, "-c", ""]) as ended:
    pass
  target = tmp_path / "mine"
  target.mkdir()
  (target / "file").touch()
  folder = tmp_path / "tmp"
  folder.mkdir()
  (folder / f"mini-{files.HOST}-{ended.pid}-x").symlink_to(target)
  (folder / f"mini-{files.HOST}-{ended.pid}-y").mkdir()
  (folder / f"mini-{files.HOST}-{10**30}-z").mkdir()  # no process has such a number
  (folder / "mini-notes").mkdir()
  files.sweep(str(folder))
  assert os.listdir(target) == ["file"]
  assert {*os.listdir(folder)} == {f"mini-{files.HOST}-{10**30}-z", "mini-notes"}


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
  path = tmp_path / ("x" * 250)  # no name is too long for another in its place
  with files.written(path) as f:
    f.write(b"1")
  with pytest.raises(ZeroDivisionError), files.written(path) as f:
    f.write(b"2")
    1 / 0  # noqa: B018
  assert path.read_bytes() == b"1" and os.listdir(tmp_path) == [path.name]
  with pytest.raises(FileNotFoundError, match="there is no folder"), files.written(tmp_path / "none" / "x"):
    pass
