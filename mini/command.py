"""What the commands of `python -m mini` share: how their words are read, and what is said of a wrong one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import NoReturn

from mini.config import nearest
from mini.types import MiniError


class BadCommand(MiniError):
  """A command line that asks for what there is not."""


def did_you_mean(given: str, names: Iterable[str]) -> str:
  """
  >>> did_you_mean("claer", ["clear"])
  '; did you mean clear?'
  """
  close = nearest(given, names)
  return f"; did you mean {close}?" if close else ""


class Parser(argparse.ArgumentParser):
  """argparse's, whose errors are exceptions, and name what is nearest to an unknown option."""

  def __init__(self) -> None:
    super().__init__(add_help=False, allow_abbrev=False)

  def error(self, message: str) -> NoReturn:
    words = message.partition("unrecognized arguments: ")[2].split()
    known = [option for action in self._actions for option in action.option_strings]
    raise BadCommand(message + did_you_mean(words[0].partition("=")[0], known) if words else message)
