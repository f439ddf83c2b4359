"""What a terminal says while compilers work."""

import io
import re
import time
from types import SimpleNamespace

import pytest

from mini.engine import device, progress


class Terminal(io.StringIO):
  def isatty(self):
    return True


@pytest.fixture
def terminal(monkeypatch):
  monkeypatch.setattr(progress, "PATIENCE", 0.01)
  monkeypatch.setattr(progress, "EVERY", 0.01)
  found = Terminal()
  monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
  return found


def test_it_counts_and_leaves_nothing_behind(terminal):
  done = [0]
  with progress.compiling(120, lambda: done[0]):
    for done[0] in (16, 37):
      time.sleep(0.1)
  said = terminal.getvalue()
  assert re.findall(r"compiling (\d+)/120 kernels, \d+ s", said)[0] == "16" and "compiling 37/120" in said
  assert re.search(r"\r +\r$", said)


def test_it_ends_with_what_it_waits_for(terminal):
  with pytest.raises(ValueError, match="wrong"), progress.compiling(1, lambda: 0):
    time.sleep(0.05)
    raise ValueError("wrong")
  assert terminal.getvalue().endswith("\r")


def test_what_takes_a_moment_is_not_worth_a_word(terminal, monkeypatch):
  monkeypatch.setattr(progress, "PATIENCE", 60)
  with progress.compiling(3, lambda: 0):
    pass
  assert terminal.getvalue() == ""


class Closed(Terminal):
  closed = True


@pytest.mark.parametrize("stderr", [None, Closed()])
def test_a_program_may_have_no_stderr(stderr, monkeypatch):
  monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stderr))
  with progress.compiling(3, lambda: 0):
    pass


def test_what_is_no_terminal_is_left_alone(monkeypatch):
  monkeypatch.setattr(progress, "PATIENCE", 0)
  monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=io.StringIO()))
  with progress.compiling(3, lambda: 0):
    time.sleep(0.05)
  assert progress.sys.stderr.getvalue() == ""


def test_sources_are_not_long():
  codes = [device.Code(f"k{n}", f"void k{n}() {{}}", (), "") for n in range(100)]
  units = device.in_units(codes, max(2, len(codes) // device.UNIT))
  assert sorted(len(u) for u in units) == [8] * 8 + [9] * 4 and {c for u in units for c in u} == {*codes}
