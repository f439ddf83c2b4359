"""Where a node is: on the device of the memory beneath it, where a copy takes it, or nowhere in particular.

What has no memory beneath it (constants, ranges) goes along with whatever it meets, and is computed where it is used.
"""

from __future__ import annotations

from typing import Any

from mini.engine.device import Device
from mini.ir.graph import shape
from mini.ir.uop import UOp, unknown
from runtime.base import DeviceError

Place = Any  # a device's name, the names of several, or "" for anywhere


class Mixed(DeviceError):
  """Two inputs of a node are on different devices."""

  def __init__(self, node: UOp, places: tuple[Place, Place]):
    super().__init__(f"{node.op} of memory on {shown(places[0])} and on {shown(places[1])}")
    self.node, self.places = node, places


def place(u: UOp) -> Place:
  """Where u is. Mixed, if something beneath it is in two places."""
  got = u.memo.get("place")
  if got is None:
    known = all("place" in s.memo for s in u.src)
    for n in (u,) if known else unknown(u, "place"):
      n.memo["place"] = _own(n) or _met(n)
    got = u.memo["place"]
  return got


def device_of(u: UOp) -> Place:
  """The same; of what is anywhere, the device on which it would be computed by itself."""
  return place(u) or Device.DEFAULT


def _own(u: UOp) -> Place:
  """Where u is, whatever its inputs are."""
  if u.op == "copy":
    return u.arg
  if u.op == "shard":
    return u.arg[1]
  if u.op == "buffer":
    return u.arg[2] if len(u.arg) > 2 else getattr(u.arg[0], "device", "")
  if u.op == "tag":  # a leaf that gradients are taken of has a home: that is where its gradient goes
    return device_of(u.src[0])
  return ""


def _met(u: UOp) -> Place:
  """Where the inputs of u are."""
  found = dict.fromkeys(p for s in u.src if (p := s.memo["place"]))
  if any(isinstance(p, tuple) for p in found):
    found = dict.fromkeys(p for s in u.src if isinstance(p := s.memo["place"], tuple) or (p and held(s) > 1))
  if len(found) > 1:
    raise Mixed(u, (*found,)[:2])
  return next(iter(found), "")


def held(u: UOp) -> int:
  """What memory is beneath u: 0 none, 1 numbers, 2 more. Numbers go along with what is on several devices."""
  for n in unknown(u, "held"):
    most = 2 if n.op == "buffer" else max((s.memo["held"] for s in n.src), default=0)
    n.memo["held"] = most if shape(n) else min(most, 1)
  return u.memo["held"]


def shown(found: Place) -> str:
  """CPU, or CPU and CPU:1"""
  return found if isinstance(found, str) else " and ".join(found)
