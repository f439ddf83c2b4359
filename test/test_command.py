"""python -m mini: its commands, their help, what is said of a wrong word, and the limits of a stranger's program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mini import __version__, limited
from mini.__main__ import COMMANDS, BadCommand, main
from mini.config import TABLE

ROOT = Path(__file__).parent.parent
COPY = """kernel k(%out: out f32[8], %a: in f32[8]) {
  %i = range 8
  %0 = load %a[%i] : f32
  store %out[%i], %0
  end over (%i)
}
"""
# 2^43 steps; 4 GiB of input and as many of output; a chain that a compiler takes minutes for
LONG = """kernel k(%out: out f32[8], %a: in f32[8]) {
  %i = range 8
  %j = range 1048576
  %k = range 1048576
  %0 = load %a[%i] : f32
  %1 = reduce.add %0 over (%j, %k) : f32
  store %out[%i], %1
  end over (%i)
}
"""
BIG = """graph g(%a: f32[1073741824]) {
  %0 = exp %a : f32[1073741824]
  return %0
}
"""


def chain(n):
  lines = "".join(f"  %{i} = sin %{i - 1} : f32[8]\n" for i in range(1, n))
  return f"graph g(%a: f32[8]) {{\n  %0 = exp %a : f32[8]\n{lines}  return %{n - 1}\n}}\n"


def run(*words, **variables):
  env = {k: v for k, v in os.environ.items() if k not in TABLE} | variables
  how = {"capture_output": True, "text": True, "env": env, "cwd": ROOT, "timeout": 100}
  return subprocess.run([sys.executable, "-m", "mini", *map(str, words)], check=False, **how)


@pytest.fixture
def file(tmp_path):
  def write(text):
    (tmp_path / "x.mini").write_text(text)
    return str(tmp_path / "x.mini")

  return write


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(("words", "says"), [
  (["opps"],                  r"no command 'opps'; did you mean ops\?\n  there are ops, rules, .*new-device"),
  (["frobnicate"],            r"no command 'frobnicate'\n  there are ops"),
  (["no_such.mini"],          r"no_such.mini: No such file"),
  (["cache", "claer"],        r"cache takes \[clear\], not 'claer'; did you mean clear\?"),
  (["rules", "x"],            r"rules takes nothing more, not 'x'"),
  (["ops", "--al"],           r"did you mean --all\?"),
  (["x.mini", "--shwo=graph"], r"--shwo=graph; did you mean --show\?"),
  (["tune", "--wdith", "3"],  r"did you mean --width\?"),
  (["test-device", "CPU", "--row=add"], r"did you mean --rows\?"),
])  # fmt: skip
def test_a_wrong_word_is_answered_with_the_nearest(words, says):
  with pytest.raises(BadCommand, match=says):
    main(words)


def test_every_command_has_help(capsys):
  for name in COMMANDS:
    assert main([name, "--help"]) == main([name, "-h"]) == 0
    assert capsys.readouterr().out.startswith(f"python -m mini {name}")
  assert main(["--help"]) == 0 and main([]) == 2
  said = capsys.readouterr().out
  assert all(said.count(f"python -m mini {name} ") == 2 for name in COMMANDS)


def test_version(capsys):
  assert main(["--version"]) == 0
  assert capsys.readouterr().out == f"mini {__version__}\n"


# ---------------------------------------------------------------- a device that is missing


@pytest.mark.skipif(sys.platform == "darwin", reason="METAL is there")
def test_a_missing_driver_is_a_line(file):
  done = run(file(COPY), "--test", DEV="METAL")
  assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "METAL" in done.stderr, done.stderr
  script = "from mini import Tensor\n(Tensor.zeros(3) + 1).numpy()"
  how = {"env": {**os.environ, "DEV": "METAL"}, "cwd": ROOT, "capture_output": True, "text": True}
  done = subprocess.run([sys.executable, "-c", script], check=False, **how)
  assert done.returncode == 1 and done.stderr.count("File") == 2 and "METAL needs" in done.stderr, done.stderr


# ---------------------------------------------------------------- limits


def test_limits_are_read():
  assert limited.of(["x.mini"]) == (120, 4 << 30)
  assert limited.of(["tune", "x.mini"]) == (600, 4 << 30)
  assert limited.of(["x.mini", "--time=0.5s", "--memory", "512m"]) == (0.5, 512 << 20)
  assert limited.of(["x.mini", "--time=0", "--memory=0"]) == (0, 0)
  for wrong in ("--time=x", "--time=-1", "--memory=", "--memory=1.5G", "--memory=-1"):
    with pytest.raises(BadCommand, match=wrong):
      limited.of(["x.mini", wrong])


@pytest.mark.parametrize(("program", "words", "says"), [
  (LONG,         ["--test", "--time=1", "--dev=CPU"],     "it takes more than 1 s: stopped (--time=2 allows more)"),
  (BIG,          ["--test", "--memory=1G"],  "it takes more than 1G of memory: stopped (--memory=2G allows more)"),
  pytest.param(chain(20000), ["--test", "--time=1"],     "it takes more than 1 s: stopped", marks=pytest.mark.full),
])  # fmt: skip
def test_a_program_ends_at_its_limits(file, program, words, says):
  done = run(file(program), *words)
  assert done.returncode in (1, 2) and says in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_what_its_process_says_and_returns_is_passed_on(file):
  done = run(file(COPY), "--test", PROFILE="1")
  assert done.returncode == 0 and done.stdout.endswith("ok\n") and "open a device" in done.stderr


@pytest.mark.full
def test_tune_of_a_file_has_limits(file):
  done = run("tune", file(LONG), "--time=3")
  assert done.returncode == 1 and "more than 3 s" in done.stderr and "Traceback" not in done.stderr
