"""Text as tokens with positions, and the error that names one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from mini.text.printer import IDENTIFIER, SOURCE_END
from mini.types import MiniError

TOKEN = re.compile(
  r"""[ \t\r]+ | \#[^\n]* | (?P<token> \n | %[A-Za-z0-9_][\w.]* | "[^"\n]*" | \d+(?:\.(?!\.)\d*)?(?:e[+-]?\d+)?
    | [A-Za-z_][\w.]* | // | && | >= | \.\. | [][(){}<>:,=+*%-] )""",
  re.ASCII | re.VERBOSE,
)
T = TypeVar("T")


class TextError(MiniError):
  """Text that is no program: where, the line, a caret and the reason."""


class Literal(NamedTuple):
  """A number whose type is not known yet."""

  spelled: str
  token: int


class Tokens:
  """The text as tokens, and a position in it."""

  def __init__(self, text: str, where: str):
    self.text, self.where = text, where
    self.tokens: list[str] = []
    self.starts: list[int] = []
    self.at = 0
    position = 0
    while position < len(text):
      m = TOKEN.match(text, position)
      if m is None:
        self._fail_at(position, f"unexpected character {text[position]!r}")
      assert m is not None
      if m.group("token"):
        self.tokens.append(m.group("token"))
        self.starts.append(m.start("token"))
      position = m.end()
      if self.tokens[-3:-2] == ["source"] or self.tokens[-4:-3] == ["source"]:
        position = self._skip_source(position)
    self.tokens.append("")
    self.starts.append(len(text))

  def _skip_source(self, position: int) -> int:
    """After  source NAME "LANGUAGE" {  everything up to its end is one token."""
    if self.tokens[-1] != "{" or not self.tokens[-2].startswith('"'):
      return position
    end = self.text.find("\n" + SOURCE_END, position)
    if end < 0:
      self._fail_at(position, f"this source has no line {SOURCE_END!r}")
    self.tokens.append(self.text[position:end].partition("\n")[2])
    self.starts.append(position)
    return end

  def _fail_at(self, position: int, reason: str) -> None:
    line = self.text.count("\n", 0, position) + 1
    start = self.text.rfind("\n", 0, position) + 1
    shown = self.text[start:].split("\n", 1)[0][:200]
    caret = "".join("\t" if c == "\t" else " " for c in self.text[start:position])
    raise TextError(f"{self.where}:{line}:{position - start + 1}: {reason}\n  {shown}\n  {caret}^") from None

  def fail(self, reason: str, token: int | None = None) -> Any:
    self._fail_at(self.starts[self.at if token is None else token], reason)

  @property
  def next(self) -> str:
    return self.tokens[self.at]

  def take(self, want: str | None = None) -> str:
    got = self.next
    if want is not None and got != want:
      self.fail(f"expected {want}, found {self.shown()}")
    if not got and want is None:
      self.fail("the text ends here")
    self.at += 1
    return got

  def shown(self) -> str:
    return {"": "the end of the text", "\n": "the end of the line"}.get(self.next, self.next[:40])

  def accept(self, want: str) -> bool:
    if self.next == want:
      self.at += 1
      return True
    return False

  def name(self, what: str) -> str:
    """%NAME, without its sign."""
    if not self.next.startswith("%") or len(self.next) < 2:
      self.fail(f"expected {what}, such as %x, found {self.shown()}")
    return self.take()[1:]

  def word(self, what: str, known: Any = None) -> str:
    if not IDENTIFIER.fullmatch(self.next) or (known is not None and self.next not in known):
      names = f" ({', '.join(known)})" if known is not None and len(known) < 20 else ""
      self.fail(f"expected {what}{names}, found {self.shown()}")
    return self.take()

  def newline(self) -> None:
    if self.next not in ("\n", "", "}"):
      self.fail(f"expected the end of the line, found {self.shown()}")
    self.blank()

  def blank(self) -> None:
    while self.next == "\n":
      self.at += 1

  def listed(self, item: Callable[[], T], opening: str, closing: str) -> list[T]:
    """opening item, item ... closing, over as many lines as it likes."""
    self.take(opening)
    out: list[T] = []
    self.blank()
    while not self.accept(closing):
      if out:
        self.take(",")
        self.blank()
      out.append(item())
      self.blank()
    return out
