"""Messages to Objective-C objects, by ctypes: `send(device, "newBufferWithLength:options:", 64, 0)`.

Every message that is sent has a row in a table: its result, then its arguments, as C types. Who owns a result follows
Objective-C's rule: what a method whose name begins with new, or retain, returns is ours, and comes as an `Owned`, which
releases it when it dies; the row says OWNED. Anything else is borrowed: an address, good until the innermost `pool`
ends. nil is None. A message to nil does nothing and returns 0; nothing here catches an Objective-C exception, which
ends the process: what would raise one has to be checked before it is sent.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_void_p
from typing import Any

OWNED = object()  # the result of a row: an object whose reference is ours
OBJC = "/usr/lib/libobjc.A.dylib"

Signature = tuple[Any, ...]  # the C type of the result, OWNED or None; then of each argument

# fmt: off
FOUNDATION: dict[str, Signature] = {
  "new":                   (OWNED,),
  "retain":                (OWNED,),
  "release":               (None,),
  "stringWithUTF8String:": (c_void_p, c_char_p),
  "UTF8String":            (c_char_p,),
  "count":                 (ctypes.c_ulong,),
  "objectAtIndex:":        (c_void_p, ctypes.c_ulong),
  "localizedDescription":  (c_void_p,),
  "respondsToSelector:":   (ctypes.c_bool, c_void_p),
}
# fmt: on


class Owned:
  """A reference to an object, released when this dies. It is passed to messages like an address."""

  __slots__ = ("_as_parameter_", "objc")

  def __init__(self, address: int, objc: Objc):
    self._as_parameter_, self.objc = address, objc  # ctypes passes the first

  def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
    # getpid is bound before: when a process ends, modules may be gone
    # what the parent of a forked process made is not the child's to release
    if hasattr(self, "objc") and getpid() == self.objc.process:
      self.objc.send(self, "release")


class Pool:
  """Inside, what is borrowed stays; at the end it goes. To be ended by the thread that began it.

  A pool that a Ctrl-C leaves open ends with the one around it; it is not ended later, in the midst of others, as that
  of a generator would be.
  """

  def __init__(self, objc: Objc):
    self.objc = objc

  def __enter__(self) -> None:
    self.pool = self.objc.push()

  def __exit__(self, *exception: object) -> None:
    self.objc.pop(self.pool)


class Objc:
  """The runtime, and the messages of a table."""

  def __init__(self, table: Mapping[str, Signature], library: str = ""):
    """library: a file that stands in for the system's. OSError where there is none."""
    self.library, self.process = ctypes.CDLL(library or OBJC), os.getpid()
    # fmt: off
    self.selector = self.function("sel_registerName",         c_void_p, c_char_p)
    self.find     = self.function("objc_getClass",            c_void_p, c_char_p)
    self.push     = self.function("objc_autoreleasePoolPush", c_void_p)
    self.pop      = self.function("objc_autoreleasePoolPop",  None, c_void_p)
    # fmt: on
    self.table = {**FOUNDATION, **table}
    # (the C function with the types of this message, its selector): calling one is a single step for Ctrl-C
    self.functions = {name: self.typed(name, signature) for name, signature in self.table.items()}

  def function(self, name: str, result: Any, *args: Any) -> Any:
    f = self.library[name]
    f.restype, f.argtypes = result, args
    return f

  def typed(self, name: str, signature: Signature) -> tuple[Any, int]:
    """objc_msgSend has the type of the method that it reaches: arguments are passed as that one expects them."""
    result, *args = signature
    returns = c_void_p if result is OWNED else result
    send = ctypes.CFUNCTYPE(returns, c_void_p, c_void_p, *args)(("objc_msgSend", self.library))
    return send, self.selector(name.encode())

  def send(self, receiver: Any, name: str, *args: Any) -> Any:
    """Sends a message of the table."""
    function, selector = self.functions[name]
    result = function(receiver, selector, *args)
    return self.owned(result) if result and self.table[name][0] is OWNED else result

  def owned(self, address: int | None) -> Owned | None:
    """For the result of a C function that returns a reference of ours."""
    return Owned(address, self) if address else None

  def class_(self, name: str) -> int | None:
    return self.find(name.encode())

  def pool(self) -> Pool:
    """For a `with`."""
    return Pool(self)

  def string(self, text: str) -> Any:
    """An NSString, borrowed."""
    return self.send(self.class_("NSString"), "stringWithUTF8String:", text.encode())

  def text(self, string: Any) -> str:
    """What an NSString says; "" for nil."""
    return (self.send(string, "UTF8String") or b"").decode(errors="replace")

  def array(self, objects: Any) -> list[int]:
    """The elements of an NSArray, borrowed from it."""
    return [self.send(objects, "objectAtIndex:", n) for n in range(self.send(objects, "count"))]

  def has(self, receiver: Any, name: str) -> bool:
    """Does the object understand the message? Newer systems know more."""
    return self.send(receiver, "respondsToSelector:", self.selector(name.encode()))
