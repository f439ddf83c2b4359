"""Changes of several objects that are seen all or not at all, whenever Ctrl-C comes.

Python looks for a signal when a function begins, when a call into C returns and where a loop turns, and never within a
call into C. So what belongs together is set, or set back, in one such call, and that is the first thing which a
`finally` does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import starmap
from typing import TypeVar

T = TypeVar("T")


class During:
  """A block in which an attribute has another value. (A generator's `finally` would come late where Ctrl-C keeps its
  block's end from beginning: when the generator dies.)"""

  def __init__(self, x: object, name: str, value: object):
    self.x, self.name, self.value, self.before = x, name, value, value

  def __enter__(self) -> None:
    self.before = getattr(self.x, self.name)
    setattr(self.x, self.name, self.value)

  def __exit__(self, *exception: object) -> None:
    setattr(self.x, self.name, self.before)


Change = tuple[object, str, object]  # an object, an attribute, its value


def setting(changes: Iterable[Change]) -> Callable[[], object]:
  """What sets them all, once, in one call into C; of a list, what is in it by then."""
  return partial(deque, starmap(setattr, changes), 0)


def all_or_nothing(before: list[Change], change: Callable[[], T]) -> T:
  """change(). Where something keeps it from its end, these attributes are set: to what they were."""
  back = setting(before)
  try:
    result = change()
    before.clear()
    return result
  finally:
    back()
