"""Floats of 8 bits, as bytes: what they stand for, and the nearest one (Micikevicius et al. 2022, "FP8 formats for deep
learning"). They are codes like those of quantization.py, made and read by ordinary operations on integers, so every
device has them; arithmetic is in float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mini.tensor import Tensor
from mini.types import DType, dtypes


class Format(NamedTuple):
  """1 bit of sign, an exponent, a mantissa."""

  mantissa: int  # bits
  bias: int
  most: float  # the largest finite number
  nan: int  # the least code, without a sign, that is no number
  infinite: bool = False  # is the code before that infinity?

  @property
  def least(self) -> float:
    """The smallest number above 0: numbers below 2 ** (1 - bias) are multiples of it."""
    return 2.0 ** (1 - self.bias - self.mantissa)


FORMATS = {"e4m3": Format(3, 7, 448.0, 0x7F), "e5m2": Format(2, 15, 57344.0, 0x7D, True)}


def name_of(kind: Any) -> Any:
  """The key in FORMATS of `dtypes.float8_e4m3` or `dtypes.float8_e5m2`; anything else stays."""
  return kind.name.removeprefix("float8_") if isinstance(kind, DType) else kind


def encode(x: Tensor, name: str | DType) -> Tensor:
  """The nearest numbers, ties to even, of f32[..] as u8[..]. What is beyond the largest finite one becomes it, infinity
  too; NaN stays.

  name: "e4m3", "e5m2", or dtypes.float8_e4m3, dtypes.float8_e5m2

  >>> encode(Tensor([1.0, 1.1, -448.0, 1e9]), "e4m3").tolist()
  [56, 57, 254, 126]
  """
  f, bits = FORMATS[name_of(name)], x.bitcast(dtypes.int32)
  size, shift = x.abs().minimum(f.most), 23 - f.mantissa
  wide = size.bitcast(dtypes.int32)
  rounded = (wide + ((1 << shift - 1) - 1) + ((wide >> shift) & 1)) >> shift
  normal = rounded - (127 - f.bias << f.mantissa)
  small = (size / f.least).round().int()
  code = x.isnan().where(0x7F, (size < 2.0 ** (1 - f.bias)).where(small, normal))
  return (code | (bits >> 24) & 0x80).cast(dtypes.uint8)


def decode(codes: Tensor, name: str | DType) -> Tensor:
  """What the codes u8[..] stand for, f32[..].

  >>> decode(Tensor([56, 57, 254, 126], dtype="uint8"), "e4m3").tolist()
  [1.0, 1.125, -448.0, 448.0]
  """
  f, bits = FORMATS[name_of(name)], codes.int()
  code = bits & 0x7F
  normal = ((code << 23 - f.mantissa) + (127 - f.bias << 23)).bitcast(dtypes.float32)
  size = (code < 1 << f.mantissa).where(code.float() * f.least, normal)
  if f.infinite:
    size = (code < f.nan - 1).where(size, float("inf"))
  size = (code < f.nan).where(size, float("nan"))
  return (bits < 0x80).where(size, -size)


__all__ = ["FORMATS", "decode", "encode", "name_of"]
