"""Where a node is: on the device of the memory beneath it, where a copy takes it, or nowhere in particular.

What has no memory beneath it (constants, ranges) goes along with whatever it meets, and is computed where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini.engine.device import Device
from mini.ir.extern import HOST
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
  if "place" not in u.memo:
    for n in unknown(u, "place"):
      n.memo["place"] = OWN[n.op](n) if n.op in OWN else _met(n)
  return u.memo["place"]


def device_of(u: UOp) -> Place:
  """The same; of what is anywhere, the device on which it would be computed by itself."""
  return place(u) or Device.DEFAULT


class Several:
  """Was anything ever on several devices? Otherwise nobody needs to look for it."""

  used = False


def noted(where: Place) -> Place:
  Several.used |= isinstance(where, tuple)
  return where


# What is somewhere whatever its inputs are.
OWN: dict[str, Callable[[UOp], Place]] = {
  "copy": lambda u: noted(u.arg),
  "shard": lambda u: noted(u.arg[1]),
  "buffer": lambda u: noted(u.arg[2] if len(u.arg) > 2 else getattr(u.arg[0], "device", "")),
  # a leaf that gradients are taken of has a home: there its gradient goes
  "tag": lambda u: u.src[0].memo["place"] if "given" in u.memo else device_of(u.src[0]),
  "call": lambda u: HOST,
  "after": lambda u: u.src[0].memo["place"],
}


def _met(u: UOp) -> Place:
  """Where the inputs of u are."""
  found = {p: None for s in u.src if (p := s.memo["place"])}
  if len(u.src) > 1 and Several.used and any(isinstance(p, tuple) for p in found):
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
