"""The discrete Fourier transform, of any length, as tensor operations.

Where no prime factor of the length is large, by its factors (J. Cooley and J. Tukey, An algorithm for the machine
calculation of complex Fourier series, 1965): each is a product with a small matrix. Elsewhere as a convolution (L.
Bluestein, 1970), which is a product of transforms of a length that has small factors. Both take O(n log n).

Of real numbers, and where real ones come out, an even length takes a complex transform of half of it: even elements are
real parts there, and odd ones imaginary parts (W. Press et al., Numerical Recipes, 3rd edition 2007, 12.3.2).

Inside, real and imaginary part are an axis of size 2, so that a product of complex matrices is one of real ones. Tables
are computed in float64 and kept, a few of each kind. What users call is in mini/fft.py.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mini.tensor.autocast import autocast
from mini.tensor.data import complex_numbers
from mini.tensor.handle import Handle
from mini.types import DType, dtypes, real_of

if TYPE_CHECKING:
  from mini.tensor import Tensor

RADIX = 32  # the largest matrix that is a product of factors
PRIME = 64  # the largest prime factor that is a matrix


def transformed(x: Tensor, inverse: bool = False) -> Tensor:
  """The transform along the last axis, of a real or complex tensor, without a scale.   T[.., n] -> C[.., n]"""
  return _joined(_transform(_rows(x), inverse), x.shape)


def to_half(x: Tensor) -> Tensor:
  """The first n // 2 + 1 elements of the transform of a real tensor.   T[.., n] -> C[.., n // 2 + 1]"""
  n, rows = x.shape[-1], _rows(x)
  if (sizes := half_radices(n)) is None:
    return _joined(_transform(rows, False).narrow(-1, 0, n // 2 + 1), x.shape)
  found = _transform(rows.reshape(rows.shape[0], n // 2, 2).transpose(1, 2), False, sizes)
  return _joined(_mirrored(found.cat(found.narrow(-1, 0, 1), dim=-1), n), x.shape)


def from_half(x: Tensor, n: int) -> Tensor:
  """The real tensor of n elements of which `to_half` gives x, times n.   C[.., n // 2 + 1] -> T[.., n]

  What is imaginary of the elements that are their own mirror images, the first and for an even n the last, is dropped.
  """
  re, im = _parts(x)
  im = im.narrow(-1, 1, (n - 1) // 2).pad((1, 1 - n % 2))
  if (sizes := half_radices(n)) is not None:
    pairs = _transform(_paired(re, im, n), True, sizes).contiguous()
    return pairs.transpose(1, 2).reshape(*x.shape[:-1], n)
  re_rest, im_rest = (p.narrow(-1, 1, (n - 1) // 2).flip(-1) for p in (re, im))
  whole = re.cat(re_rest, dim=-1).cat(im.cat(-im_rest, dim=-1), dim=1)
  return _transform(whole, True).select(1, 0).reshape(*x.shape[:-1], n)


def _parts(x: Tensor) -> list[Any]:
  """Real and imaginary part, as they are transformed.   T[.., n] or C[.., n] -> T[b, 1, n], ..."""
  kind = dtypes.float64 if real_of(x.dtype) is dtypes.float64 else dtypes.float32
  return [p.cast(kind).reshape(prod(x.shape[:-1]), 1, x.shape[-1]) for p in x._parts()]


def _rows(x: Tensor) -> Any:
  """T[.., n] -> T[b, 1, n], C[.., n] -> T[b, 2, n]"""
  first, *rest = _parts(x)
  return first.cat(*rest, dim=1) if rest else first


def _joined(rows: Any, shape: tuple[int, ...]) -> Tensor:
  """T[b, 2, m] -> C[.., m]"""
  out = rows.reshape(*shape[:-1], 2, rows.shape[-1])
  return complex_numbers().joined(out.select(-2, 0), out.select(-2, 1))


def _transform(x: Any, inverse: bool, sizes: tuple[int, ...] | None = None) -> Any:
  """T[b, 1 or 2, n] -> T[b, 2, n], by these factors, or by those of n."""
  if not x.shape[0]:
    return x.expand(0, 2, x.shape[-1])
  sizes = sizes or radices(x.shape[-1])
  with autocast(enabled=False):
    return _by_factors(x, sizes, inverse) if sizes else _by_convolution(x, inverse)


# ---------------------------------------------------------------- of real numbers


def half_radices(n: int) -> tuple[int, ...] | None:
  """The factors for half of a length: those of n, of which one is halved; () if there are none. None where that is not
  worth it: n is odd, or the transform is one matrix, of which no more is computed than is read."""
  sizes = radices(n)
  if n % 2 or (sizes and len(sizes) == 1):
    return None
  if sizes is None:
    return ()
  at = next(at for at, p in enumerate(sizes) if p % 2 == 0)
  found = (*sizes[:at], sizes[at] // 2, *sizes[at + 1 :])
  return tuple(sorted((p for p in found if p > 1), reverse=True))


def _mirrored(z: Any, n: int) -> Any:
  """From the transform of (even elements + i odd ones) to that of all of them.   T[b, 2, m] -> T[b, 2, m]

  a z[k] + b conj(z[m - 1 - k]), where a and b are (1 -+ i w) / 2 of the n-th roots of unity w. m = n // 2 + 1: z[0] is
  also the last one.
  """
  own, swapped, mirror, mirror_swapped = tables(halves, z, n)
  back = z.flip(-1)
  return z * own + z.flip(1) * swapped + back * mirror + back.flip(1) * mirror_swapped


def _paired(re: Any, im: Any, n: int) -> Any:
  """The way back, with that of the inverse: conjugates, without the 2.   T[b, 1, m], T[b, 1, m] -> T[b, 2, m - 1]"""
  terms = (re, im, re.flip(-1), im.flip(-1))
  a, b, c, d = (p.narrow(-1, 0, n // 2) * w for p, w in zip(terms, tables(pairing, re, n)))
  return a + b + c + d


def halves(n: int) -> np.ndarray:
  """What the sum in `_mirrored` has of an element's same and other part, and of its mirror image's.   f64[4, 2, m]"""
  c, s = roots(np.arange(n // 2 + 1), n, False)
  a, b = (1 + s - 1j * c) / 2, (1 - s + 1j * c) / 2
  return np.stack([*_as_factor(a), *(_as_factor(b) * [[[1], [-1]], [[-1], [1]]])])


def pairing(n: int) -> np.ndarray:
  """What either part in `_paired` has of an element's parts, and of its mirror image's.   f64[4, 2, m - 1]"""
  c, s = roots(np.arange(n // 2), n, True)
  a, b = 1 - s + 1j * c, 1 + s - 1j * c
  return np.stack([(w.real, w.imag) for w in (a, 1j * a, b, -1j * b)])


# ---------------------------------------------------------------- by factors


@lru_cache(1024)
def radices(n: int) -> tuple[int, ...] | None:
  """Sizes of matrices whose product is n, few and about as large as one another; None where a prime is too large."""
  primes = []
  rest, p = n, 2
  while rest > 1:
    while rest % p == 0:
      primes.append(p)
      rest //= p
    p = p + 1 if p * p <= rest else rest
  if any(p > PRIME for p in primes):
    return None
  count = 1
  while True:
    found = [1] * count
    for p in sorted(primes, reverse=True):
      found[found.index(min(found))] *= p
    if count > len(primes) or max(found) <= RADIX or max(found) in primes:
      return tuple(sorted((m for m in found if m > 1), reverse=True)) or (1,)
    count += 1


def _by_factors(x: Any, sizes: tuple[int, ...], inverse: bool) -> Any:
  """One axis of the index after another becomes an axis of the frequency: j = (j1, j2, ..), k = (.., k2, k1)."""
  b, _, n = x.shape
  done = 1
  for p in sizes:
    rest = n // done // p
    x = x.reshape(b, x.shape[1], done, p, rest)
    x = x.einsum("ckdp,bdxpr->bcxkr", *tables(matrix_of, x, p, inverse, x.shape[1]), x)
    if rest > 1:
      same, other = tables(twiddles, x, p, rest, inverse)
      x = x * same + x.flip(1) * other
    done *= p
  x = x.reshape(b, 2, *sizes)
  return x.permute(0, 1, *range(len(sizes) + 1, 1, -1)).reshape(b, 2, n)


def roots(k: np.ndarray, n: int, inverse: bool) -> tuple[np.ndarray, np.ndarray]:
  """Cosine and sine of k n-th parts of a turn, 0 where they are: nowhere else are they so small."""
  angle = 2 * np.pi / n * k * (1 if inverse else -1)
  c, s = np.cos(angle), np.sin(angle)
  return np.where(abs(c) < 1e-15, 0.0, c), np.where(abs(s) < 1e-15, 0.0, s)


def matrix_of(p: int, inverse: bool, parts: int) -> np.ndarray:
  """The matrix of p roots of unity, by parts of what comes out and of what goes in.   f64[1, 2, p, parts, p]"""
  k = np.arange(p)
  c, s = roots(np.outer(k, k) % p, p, inverse)
  return np.stack([np.stack([c, -s], 1), np.stack([s, c], 1)])[None, :, :, :parts] + 0.0  # no -0.0


def twiddles(p: int, rest: int, inverse: bool) -> np.ndarray:
  """The turn between two factors: by the cosine, and what the sine takes of the other part.   f64[2, 2, 1, p, rest]"""
  c, s = roots(np.outer(np.arange(p), np.arange(rest)), p * rest, inverse)
  return np.stack([np.stack([c, c]), np.stack([-s, s])])[:, :, None]


# ---------------------------------------------------------------- by a convolution


def smooth(n: int) -> int:
  """The least length from n on whose only prime factors are 2, 3 and 5."""
  best = 1 << (n - 1).bit_length()
  five = 1
  while five < best:
    three = five
    while three < best:
      best = min(best, three << max(-(-n // three) - 1, 0).bit_length())
      three *= 3
    five *= 5
  return best


def _by_convolution(x: Any, inverse: bool) -> Any:
  """From j k = (j^2 + k^2 - (k - j)^2) / 2: turned by the first, convolved with the last, turned by the second."""
  n = x.shape[-1]
  size = smooth(2 * n - 1)
  turn, spectrum = tables(chirp, x, n, inverse), tables(chirp_spectrum, x, n, size, inverse)
  turned = _times(x, turn).pad((0, size - n))
  found = _times(_transform(turned, False), spectrum)
  return _times(_transform(found, True).narrow(-1, 0, n), turn)


def _times(x: Any, w: Any) -> Any:
  """A product of rows of complex numbers, or of real ones, with a complex row.   T[b, 1 or 2, n] -> T[b, 2, n]"""
  same, other = w
  if x.shape[1] == 1:  # what the real part gives to either
    return x * same[:1].cat(other[1:], dim=0)
  return x * same + x.flip(1) * other


def _chirp(n: int, inverse: bool) -> np.ndarray:
  j = np.arange(n, dtype=np.int64)
  return np.exp((1j if inverse else -1j) * np.pi / n * (j * j % (2 * n)))


def _as_factor(w: np.ndarray) -> np.ndarray:
  """What a product with w takes of the same part, and of the other.   c128[n] -> f64[2, 2, n]"""
  return np.stack([np.stack([w.real, w.real]), np.stack([-w.imag, w.imag])])


def chirp(n: int, inverse: bool) -> np.ndarray:
  return _as_factor(_chirp(n, inverse))


def chirp_spectrum(n: int, size: int, inverse: bool) -> np.ndarray:
  """Of what is convolved with, which goes both ways from 0; with the scale of the transform back."""
  w = np.conj(_chirp(n, inverse))
  around = np.zeros(size, complex)
  around[:n] = w
  around[size - n + 1 :] = w[:0:-1]
  return _as_factor(np.fft.fft(around) / size)


# ---------------------------------------------------------------- tables


@lru_cache(64)
def _kept(make: Any, dtype: DType, *args: Any) -> np.ndarray:
  found = np.ascontiguousarray(make(*args).astype(dtype.np))
  found.flags.writeable = False
  return found


def tables(make: Any, like: Handle, *args: Any) -> list[Any]:
  """Tables along a first axis, in the type of a tensor, on its device."""
  return [Handle._final(t, device=like.device) for t in _kept(make, like.dtype, *args)]
