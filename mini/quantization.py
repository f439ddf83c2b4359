"""Numbers kept as small integers: codes of 8 or 4 bits, and a scale (with a zero point, if asked for) for those that
share one.

  x ~ (code - zero) * scale      and |x - (code - zero) * scale| <= scale / 2

Or as floats of 8 bits (float8.py) with a scale: the larger, the further apart.

What shares a scale is the whole tensor, a channel, or a block; the words and the axes are those of ONNX's
QuantizeLinear (https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html). Everything here is made of ordinary
operations: a product loads the integers and widens them in registers, so of what is quantized no float32 copy is ever
in memory. Which weights of a model are quantized is decided in mini/nn/quantized.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mini.float8 import FORMATS, decode, encode, name_of
from mini.tensor import Tensor
from mini.tensor.autograd import given_tensors
from mini.tensor.handle import fail
from mini.types import ArgumentError, DType, DTypeError, ShapeError, dtypes


class Pairs(NamedTuple):
  """How codes of 4 bits lie: along an axis, in groups; a byte holds a code of the first half of its group (low bits)
  and the one that is as far into the second half."""

  axis: int
  group: int


class Quantized:
  """What `quantize` gives: codes, and what they stand for. It is a matrix to `x @ q`, `x @ q.T` and an Embedding.

  bits: 8 or 4; or "e4m3" or "e5m2"
  codes: int8[..] (symmetric) or uint8[..]; of 4 bits uint8 with half as many along one axis; of floats uint8
  scale, zero: f32[..], uint8[..], with the axes of what was quantized: 1 where its elements share them, or their blocks
  zero: None if symmetric. (Then codes of 4 bits are kept with 8 added.)
  """

  def __init__(
    self,
    codes: Tensor,
    scale: Tensor,
    zero: Tensor | None,
    shape: tuple[int, ...],
    bits: int | str,
    pairs: Pairs | None,
    turned: bool = False,  # a transpose: memory has it the other way round
  ):
    self.codes, self.scale, self.zero = codes, scale, zero
    self.shape, self.bits, self._pairs, self._turned = shape, bits, pairs, turned

  @property
  def ndim(self) -> int:
    """The number of axes."""
    return len(self.shape)

  @property
  def nbytes(self) -> int:
    """The bytes of codes, scales and zero points."""
    return sum(t.nbytes for t in (self.codes, self.scale, self.zero) if t is not None)

  def dequantize(self) -> Tensor:
    """The values, float32. What reads them computes them, unless they are realized.

    >>> mini.quantize(Tensor([0.5, -1.0])).dequantize().numpy().round(2)
    array([ 0.5, -1. ], dtype=float32)
    """
    scale, zero = self._spread(self.scale), None if self.zero is None else self._spread(self.zero)
    return self._centered(self._unpacked(), zero) * scale

  def realize(self) -> Quantized:
    """Compute codes and scales now; what they came from may go."""
    Tensor.realize(*(t for t in (self.codes, self.scale, self.zero) if t is not None))
    return self

  # ---------------------------------------------------------------- as a weight

  @property
  def T(self) -> Quantized:
    """The transpose of a matrix."""
    self._matrix("T")
    zero = None if self.zero is None else self.zero.T
    pairs = None if self._pairs is None else Pairs(1 - self._pairs.axis, self._pairs.group)
    return Quantized(self.codes.T, self.scale.T, zero, self.shape[::-1], self.bits, pairs, not self._turned)

  def cast(self, dtype: Any) -> Quantized:
    """Itself: a product has the type of what it is multiplied with."""
    return self

  def embedding(self, index: Tensor) -> Tensor:
    """Rows of a matrix.   index: int[..]   ->   f32[.., d]"""
    self._matrix("embedding")
    n, width = self.shape
    flat = index.flatten()
    scale, zero = self.scale, self.zero
    if (blocks := scale.shape[0]) > 1:
      block = flat // (n // blocks)
      scale, zero = scale.embedding(block), None if zero is None else zero.embedding(block)
    pairs = self._pairs if self._pairs and self._pairs.axis == 1 else None
    if self._pairs is None or pairs is not None:
      codes = self.codes.embedding(flat)
    else:
      group, half = self._pairs.group, self._pairs.group // 2
      both = self.codes.embedding(flat // group * half + flat % half)
      codes = (flat % group < half).unsqueeze(1).where(both & 15, both >> 4)
    found = Quantized(codes, scale, zero, (flat.shape[0], width), self.bits, pairs)
    return found.dequantize().reshape(*index.shape, width)

  def __rmatmul__(self, x: Any) -> Tensor:
    """x @ q.   x: T[.., k]   q: [k, m]   ->   T[.., m], summed in float32

    The scale of a column multiplies its sum, those of blocks their parts of it.
    """
    x = x if isinstance(x, Tensor) else Tensor(x)
    self._matrix("x @ q")
    k = self.shape[0]
    if not x.shape or x.shape[-1] != k:
      fail(ShapeError, f"x @ q: the last axis of x is not {k}, the rows of q, which is {self!r}", x=x)
    if x.dtype.kind != "f":
      fail(DTypeError, f"x @ q: x is {x.dtype.name}; x.float() would fit", x=x)
    wide, blocks = x.float(), self.scale.shape[0]
    inwards = self._pairs is None or self._pairs.axis == 0  # a column's codes share their bytes
    if not inwards or blocks == k > 1:
      return wide.matmul(self.dequantize()).cast(x.dtype)
    if x.numel() == k:
      return self._of_vector(wide.flatten(), blocks).reshape(*x.shape[:-1], -1).cast(x.dtype)
    codes = self._by_blocks(blocks)
    x_by_blocks = wide.reshape(*x.shape[:-1], *codes.shape[:-1])
    axes = tuple(range(-codes.ndim, -1))
    if blocks > 1:
      codes = codes * self._for_blocks(self.scale, codes.ndim)
    sums = (x_by_blocks.unsqueeze(-1) * codes).sum(axes)
    return (sums if blocks > 1 else sums * self.scale[0]).cast(x.dtype)

  def _of_vector(self, x: Tensor, blocks: int) -> Tensor:
    """x @ q, in which what is in memory is read once, as it lies there.   x: f32[k]   ->   f32[m]"""
    codes = self._by_blocks(blocks)
    parts = x.reshape(*codes.shape[:-1], 1)
    if self._pairs is None:
      products = parts * codes
    else:
      products = parts.select(1, 0) * codes.select(1, 0) + parts.select(1, 1) * codes.select(1, 1)
    if blocks == 1:
      return products.sum((0, 1)) * self.scale[0]
    if self._turned:  # a column's blocks follow each other: one sum along them all
      return (products * self.scale.unsqueeze(1)).sum((0, 1))
    # the rows of a block, then what the blocks gave
    return (products.sum(1) * self.scale).contiguous().sum(0)

  def _by_blocks(self, blocks: int) -> Tensor:
    """A matrix without its scales: f32[blocks, k/blocks, m]; of 4 bits f32[blocks, 2, k/blocks/2, m]"""
    zero = self.zero
    codes = self.codes.reshape(blocks, -1, self.shape[1])
    if self._pairs is not None:
      codes = halves(codes, 1)
    return self._centered(codes, None if zero is None else self._for_blocks(zero, codes.ndim))

  @staticmethod
  def _for_blocks(t: Tensor, ndim: int) -> Tensor:
    """Scales or zero points [blocks, m] beside values with an axis for blocks first."""
    return t.reshape(t.shape[0], *(1,) * (ndim - 2), t.shape[1])

  # ---------------------------------------------------------------- parts

  def _matrix(self, what: str) -> None:
    if self.ndim != 2:
      raise ShapeError(f"{what}: {self!r} is no matrix; q.dequantize() is a tensor")

  def _centered(self, codes: Tensor, zero: Tensor | None) -> Tensor:
    if isinstance(self.bits, str):
      return decode(codes, self.bits)
    if zero is not None:
      return codes.float() - zero.float()
    return codes.float() if self.bits == 8 else codes.float() - 8.0

  def _unpacked(self) -> Tensor:
    if self._pairs is None:
      return self.codes
    axis, group = self._pairs
    return halves(self.codes.unflatten(axis, (-1, group // 2)), axis + 1).reshape(*self.shape)

  def _spread(self, t: Tensor) -> Tensor:
    """Scales or zero points, repeated for each element of their blocks."""
    for axis, (n, blocks) in enumerate(zip(self.shape, t.shape)):
      if 1 < blocks < n:
        t = t.repeat_interleave(n // blocks, axis)
    return t

  def __repr__(self) -> str:
    bits = self.bits if isinstance(self.bits, str) else f"{self.bits} bits"
    return f"Quantized({bits}, shape={self.shape}, scale={self.scale.shape})"


def halves(codes: Tensor, axis: int) -> Tensor:
  """The codes of 4 bits in bytes, with a new axis of size 2: low bits, high bits.   u8[..]   ->   i32[.., 2, ..]"""
  both = codes.cast(dtypes.int32).unsqueeze(axis)
  second = Tensor.arange(2).reshape(2, *(1,) * (codes.ndim - axis)) == 1
  return second.where(both >> 4, both & 15)


def quantize(
  x: Tensor,
  bits: int | str | DType = 8,
  axis: int | None = None,
  block: int | None = None,
  symmetric: bool = True,
) -> Quantized:
  """x, of finite floats, as integers of 8 or 4 bits; with a scale for all of it, for each index of `axis`, or for each
  run of `block` elements along `axis`.

  symmetric: codes from -127 to 127 (-7 to 7) around 0; else from 0 to 255 (15) around a zero point, over the range of
  the values and 0. |x - dequantize()| <= scale / 2, but for the roundings of float32. Two codes of 4 bits share a byte:
  they lie along `axis` if there are blocks, else along the last axis that is not `axis`, whose size (and that of a
  block) is even. ShapeError where a size does not fit, DTypeError if x is not of floats.

  bits "e4m3" or "e5m2" (dtypes.float8_e4m3, dtypes.float8_e5m2): floats of 8 bits, of which the largest becomes 448 or
  57344 times the scale. They are off by at most |x| / 16 (e4m3) or |x| / 8, or where that is more, by scale * 2**-10 or
  2**-17.

  >>> q = mini.quantize(Tensor([[1.0, -2.0], [30.0, 40.0]]), axis=0)
  >>> q.codes.tolist(), q.scale.shape
  ([[64, -127], [95, 127]], (2, 1))
  >>> (Tensor([1.0, 1.0]) @ q.T).numpy().round(1)
  array([-1. , 69.9], dtype=float32)
  """
  (x,) = given_tensors("quantize", x)
  bits = name_of(bits)
  if isinstance(bits, DType) or bits not in (8, 4, *FORMATS):
    fail(
      ArgumentError, f"quantize: codes have 8 or 4 bits, or are of {' or '.join(FORMATS)}, not {bits!r}", x=x
    )
  if isinstance(bits, str) and not symmetric:
    fail(ArgumentError, f"quantize: {bits} has a sign, and no zero point", x=x)
  if x.dtype.kind != "f":
    fail(DTypeError, "quantize: x is not of floats; x.float() would fit", x=x)
  x = x.float().detach()
  along = None if axis is None else x._axis(axis, "quantize")
  pairs = _pairs(x, along, block) if bits == 4 else None
  values, kept = _grouped(x, along, block)
  shared = tuple(n for n in range(values.ndim) if n not in kept)
  codes, scale, zero = _coded(values, shared, bits, symmetric)
  codes = codes.reshape(*x.shape)
  if pairs is not None:
    both = codes.unflatten(pairs.axis, (-1, 2, pairs.group // 2))
    codes = both.select(pairs.axis + 1, 0) | both.select(pairs.axis + 1, 1) << 4
    codes = codes.flatten(pairs.axis, pairs.axis + 1)
  if block is not None and along is not None:
    scale, zero = scale.squeeze(along + 1), None if zero is None else zero.squeeze(along + 1)
  return Quantized(codes, scale, zero, x.shape, bits, pairs)


def _coded(
  values: Tensor, shared: tuple[int, ...], bits: int | str, symmetric: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
  """(codes, scale, zero) where what differs in the axes `shared` alone has one scale."""
  if isinstance(bits, str):
    scale = _scale(values.abs().amax(shared, True), FORMATS[bits].most)
    return encode(values / scale, bits), scale, None
  most = 2 ** (bits - 1) - 1
  if symmetric:
    scale = _scale(values.abs().amax(shared, True), most)
    codes = (values / scale).round().clamp(-most, most)
    return codes.cast(dtypes.int8) if bits == 8 else (codes + 8).cast(dtypes.uint8), scale, None
  least = values.amin(shared, True).minimum(0)
  scale = _scale(values.amax(shared, True).maximum(0) - least, 2 * most + 1)
  zero = (-least / scale).round().cast(dtypes.uint8)
  codes = ((values / scale).round() + zero.float()).clamp(0, 2 * most + 1)
  return codes.cast(dtypes.uint8), scale, zero


def _scale(width: Tensor, steps: float) -> Tensor:
  """The distance of two codes: a normal number, also where all values are 0."""
  return (width / steps).maximum(2.0**-126)


def _grouped(x: Tensor, axis: int | None, block: int | None) -> tuple[Tensor, list[int]]:
  """(x with an axis for the elements of a block, the axes along which scales differ)."""
  if block is None:
    return x, [] if axis is None else [axis]
  if axis is None:
    fail(ShapeError, f"quantize: blocks of {block} lie along an axis, and none is given", x=x)
  if block < 1 or x.shape[axis] % block:
    fail(ShapeError, f"quantize: axis {axis} does not fall into blocks of {block}", x=x)
  return x.unflatten(axis, (-1, block)), [n for n in range(x.ndim + 1) if n != axis + 1]


def _pairs(x: Tensor, axis: int | None, block: int | None) -> Pairs:
  others = [n for n in range(x.ndim) if n != axis]
  along = axis if block is not None else others[-1] if others else None
  size = None if along is None else block or x.shape[along]
  if along is None or size is None or size % 2:
    what = "no axis" if along is None else f"axis {along}, or a block of it, has {size} elements:"
    fail(ShapeError, f"quantize: two codes of 4 bits share a byte, and {what} no pairs to make", x=x)
  return Pairs(along, size)
