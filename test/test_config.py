"""Settings: where values come from, what is refused and how, and Context."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from mini.config import TABLE, Config, ConfigError, Context, config


def test_the_table_is_small_and_its_defaults_fit():
  assert len(TABLE) <= 18
  plain = Config({})
  for name, row in TABLE.items():
    assert getattr(plain, name) == row.parse(row.default) and row.meaning and plain.origin(name) == "default"


def test_the_prefixed_name_wins():
  c = Config({"DEBUG": "2", "THREADS": "3"})
  assert (c.DEBUG, c.origin("DEBUG")) == (2, "DEBUG")
  c = Config({"DEBUG": "2", "MINI_DEBUG": "4"})
  assert (c.DEBUG, c.origin("DEBUG")) == (4, "MINI_DEBUG")


@pytest.mark.parametrize(("name", "text", "value"), [
  ("DEV",     "interp",         "INTERP"),
  ("DEBUG",   "6",              6),
  ("SHOW",    "source, kernel", ("kernel", "source")),
  ("SHOW",    "",               ()),
  ("NOOPT",   "1",              True),
  ("THREADS", "2",              2),
  ("CACHE",   "0",              "0"),
  ("CACHE",   "/tmp/x",         "/tmp/x"),
  ("CC",      "ccache gcc -g",  "ccache gcc -g"),
  ("MACHINE", "lanes=8, l2=1M", (("lanes", 8), ("l2", 1 << 20))),
])  # fmt: skip
def test_values(name, text, value):
  assert getattr(Config({name: text}), name) == value
  assert getattr(Config({"MINI_" + name: text}), name) == value


@pytest.mark.parametrize(("name", "text"), [("DEBUG", "true"), ("DEBUG", "7"), ("DEV", "GPU"), ("SHOW", "krnel"),
                                            ("NOOPT", "yes"), ("THREADS", "-1"), ("CACHE", "of"),
                                            ("MACHINE", "lanes=0"),
                                            ("MACHINE", "l2=1G"), ("MACHINE", "lanes")])  # fmt: skip
def test_a_bad_value_is_an_error(name, text):
  for spelled in ("MINI_" + name, name):
    with pytest.raises(ConfigError, match=f"^{spelled}={text} does not fit"):
      Config({spelled: text})


def test_another_programs_variable_is_hidden_by_the_prefixed_one():
  with pytest.raises(ConfigError, match="another program's: MINI_DEBUG=0"):
    Config({"DEBUG": "express:*"})
  c = Config({"DEBUG": "express:*", "MINI_DEBUG": "0"})
  assert (c.DEBUG, c.origin("DEBUG")) == (0, "MINI_DEBUG")
  c = Config({"SHOW": "all of it", "MINI_SHOW": ""})
  assert (c.SHOW, c.origin("SHOW")) == ((), "default")


@pytest.mark.parametrize(("variables", "says"), [
  ({"DEV": "XYZ"}, "one of CPU, CL, CUDA, METAL, INTERP"),
  ({"DEV": "MTL"}, "did you mean METAL"),
  ({"DEBUG": "x"}, "a whole number from 0 to 6"),
  ({"MACHINE": "lanez=4"}, "did you mean lanes"),
  ({"MINI_DEBG": "1"}, "did you mean MINI_DEBUG"),
])  # fmt: skip
def test_a_program_ends_with_the_error(variables, says):
  env = {k: v for k, v in os.environ.items() if k not in TABLE} | variables
  how = {"capture_output": True, "text": True, "env": env, "cwd": Path(__file__).parent.parent}
  command = subprocess.run([sys.executable, "-m", "mini", "rules"], check=False, **how)
  assert command.returncode == 1 and says in command.stderr and len(command.stderr.splitlines()) == 1
  if "DEV" in variables:
    script = subprocess.run([sys.executable, "-c", "import mini"], check=False, **how)
    assert script.returncode == 1 and says in script.stderr and script.stderr.count("File") <= 3


def test_an_empty_plain_value_of_a_number_is_no_reason_to_complain():
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    assert Config({"DEBUG": "", "MINI_THREADS": ""}).DEBUG == 0


def test_suggestions():
  with pytest.raises(ConfigError, match="no setting MINI_DEBG.*did you mean MINI_DEBUG"):
    Config({"MINI_DEBG": "1"})
  with pytest.raises(ConfigError, match="did you mean kernel"):
    Config({"MINI_SHOW": "krnel"})
  with pytest.raises(ConfigError, match="did you mean registers"):
    Config({"MINI_MACHINE": "lanes=8,register=16"})
  with pytest.raises(AttributeError, match="did you mean THREADS"):
    _ = config.THREDS
  with pytest.raises(ConfigError, match="did you mean DEBUG"):
    Context(DEBG=1)
  with pytest.raises(ConfigError, match="DEBUG=9 does not fit"):
    Context(DEBUG=9)


def test_contexts_nest_and_end_with_their_block():
  before = config.DEBUG
  with Context(DEBUG=2, SHOW=("kernel", "source")):
    assert config.DEBUG == 2 and config.SHOW == ("kernel", "source") and config.origin("DEBUG") == "Context"
    with Context(DEBUG=3):
      assert config.DEBUG == 3 and config.SHOW == ("kernel", "source")
    assert config.DEBUG == 2
    with pytest.raises(KeyError), Context(NOOPT=True):
      assert config.NOOPT is True
      raise KeyError
    assert config.NOOPT is False
  assert config.DEBUG == before and config.SHOW == ()


def test_one_context_may_be_used_again_within_itself():
  quiet = Context(DEBUG=1)
  with quiet, Context(DEBUG=2), quiet:
    assert config.DEBUG == 1


def test_a_context_is_of_its_thread_only():
  seen = []
  before = config.DEBUG
  with Context(DEBUG=5):
    t = threading.Thread(target=lambda: seen.append(config.DEBUG))
    t.start()
    t.join()
  assert seen == [before]


def test_the_printed_table_has_a_row_for_each():
  with Context(DEBUG=3, SHOW="kernel", MACHINE="l2=512K,lanes=8"):
    assert "l2=524288,lanes=8" in str(config)
    lines = str(config).splitlines()
  assert [line.split()[0] for line in lines] == list(TABLE)
  assert lines[1].split()[:3] == ["DEBUG", "3", "Context"] and lines[2].split()[:3] == [
    "SHOW",
    "kernel",
    "Context",
  ]
