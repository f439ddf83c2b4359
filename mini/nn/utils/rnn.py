"""torch.nn.utils.rnn's names: sequences of several lengths as one tensor.

A packed sequence is a padded one that knows its lengths: a recurrent layer (recurrent.py) masks what is behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mini.tensor import Tensor
from mini.tensor.errors import fail
from mini.types import ArgumentError, ShapeError


class PackedSequence(NamedTuple):
  """data: T[L, N, ...], in PyTorch the same without what is behind the ends; lengths: how many of L each of N has."""

  data: Tensor
  lengths: tuple[int, ...]


def pad_sequence(
  sequences: Sequence[Tensor],
  batch_first: bool = False,
  padding_value: float = 0.0,
  padding_side: str = "right",
) -> Tensor:
  """Sequences T[length, ...] as one tensor of the longest length.   -> T[L, N, ...], with batch_first T[N, L, ...]

  >>> nn.utils.rnn.pad_sequence([Tensor([1, 2, 3]), Tensor([4])], batch_first=True)
  Tensor([[1, 2, 3],
          [4, 0, 0]])
  """
  if padding_side not in ("left", "right"):
    fail(ArgumentError, f'pad_sequence: padding_side is "left" or "right", not {padding_side!r}')
  if not sequences:
    fail(ShapeError, "pad_sequence: there are no sequences")
  longest, padded = max(len(s) for s in sequences), []
  for s in sequences:
    behind, none = longest - len(s), (0, 0) * (s.ndim - 1)
    padded.append(
      s.pad((*none, *((behind, 0) if padding_side == "left" else (0, behind))), value=padding_value)
    )
  return padded[0].stack(*padded[1:], dim=0 if batch_first else 1)


def pack_padded_sequence(
  input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
  """A padded tensor, T[L, N, ...] or T[N, L, ...], as what recurrent layers take; they give such a one, too.

  enforce_sorted: the longest sequence comes first, or ValueError, as in PyTorch.

  >>> x = nn.utils.rnn.pack_padded_sequence(Tensor.ones(4, 2, 3), [4, 2])
  >>> out, h = nn.GRU(3, 5)(x)
  >>> padded, lengths = nn.utils.rnn.pad_packed_sequence(out)
  >>> padded.shape, lengths
  ((4, 2, 5), Tensor([4, 2]))
  """
  known = tuple(int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths))
  x = input.transpose(0, 1) if batch_first else input
  if len(known) != x.shape[1] or not all(0 < n <= x.shape[0] for n in known):
    about = f"there must be {x.shape[1]} lengths from 1 to {x.shape[0]}, not {list(known)}"
    fail(ShapeError, f"pack_padded_sequence: {about}", input=input)
  if enforce_sorted and list(known) != sorted(known, reverse=True):
    about = "the lengths do not fall; enforce_sorted=False takes any order"
    fail(ArgumentError, f"pack_padded_sequence: {about}", input=input)
  return PackedSequence(x[: max(known)], known)


def pad_packed_sequence(
  sequence: PackedSequence,
  batch_first: bool = False,
  padding_value: float = 0.0,
  total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
  """(the padded tensor, the lengths): the inverse of `pack_padded_sequence`. total_length: that long, at least."""
  x, lengths = sequence
  if total_length is not None and total_length < len(x):
    fail(ArgumentError, f"pad_packed_sequence: total_length={total_length} is less than {len(x)}", x=x)
  x = x.pad((*(0, 0) * (x.ndim - 1), 0, (total_length or len(x)) - len(x)))
  ends = Tensor(lengths)
  behind = Tensor.arange(len(x)).unsqueeze(1) >= ends
  x = x.masked_fill(behind.reshape(*behind.shape, *(1,) * (x.ndim - 2)), padding_value)
  return x.transpose(0, 1) if batch_first else x, ends


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
  """`pad_sequence`, packed."""
  return pack_padded_sequence(
    pad_sequence(sequences), [len(s) for s in sequences], enforce_sorted=enforce_sorted
  )


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
  """The inverse of `pad_sequence`."""
  rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
  return [row[: int(n)] for row, n in zip(rows, lengths)]


__all__ = ["PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
           "unpad_sequence"]  # fmt: skip
