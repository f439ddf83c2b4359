"""Text as tokens: the data of train_gpt2.py, three tokenizers, and batches whose order is a function of the seed."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path
from typing import Protocol

import numpy as np


class Missing(Exception):
  """Something has to be installed or fetched first; the message says how."""


# ---------------------------------------------------------------- text


def standard_library() -> list[Path]:
  """The Python sources of this machine's standard library, in an order that is always the same."""
  root = Path(sysconfig.get_paths()["stdlib"])
  left_out = {"site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__"}
  files = [p for p in sorted(root.rglob("*.py")) if not left_out.intersection(p.relative_to(root).parts)]
  random.Random(0).shuffle(files)  # so that the end, which is for validation, is like the rest
  return files


def read(files: list[Path]) -> bytes:
  return b"\n".join(p.read_bytes() for p in files)


# ---------------------------------------------------------------- tokenizers


class Tokenizer(Protocol):
  """Text to tokens and back; `text()` is what it is remade from."""

  kind: str
  size: int

  def encode(self, text: bytes) -> np.ndarray: ...
  def decode(self, tokens: list[int]) -> bytes: ...
  def text(self) -> str: ...


class Bytes:
  """Bytes as tokens."""

  kind, size = "byte", 256

  def encode(self, text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8).astype(np.int32)

  def decode(self, tokens: list[int]) -> bytes:
    return bytes(tokens)

  def text(self) -> str:
    return ""


class BPE:
  """Byte-level byte-pair encoding, by the `tokenizers` package."""

  kind = "bpe"

  def __init__(self, made):
    self.made, self.size = made, made.get_vocab_size()

  def encode(self, text: bytes) -> np.ndarray:
    parts = text.decode("utf-8", "replace").splitlines(keepends=True)
    groups = ["".join(parts[n : n + 1000]) for n in range(0, len(parts), 1000)]
    found = [np.array(e.ids, np.int32) for e in self.made.encode_batch(groups)]
    return np.concatenate(found) if found else np.zeros(0, np.int32)

  def decode(self, tokens: list[int]) -> bytes:
    return self.made.decode(tokens).encode()

  def text(self) -> str:
    return self.made.to_str()


def _tokenizers():
  try:
    import tokenizers
  except ImportError:
    raise Missing("this tokenizer needs the tokenizers package: pip install tokenizers") from None
  return tokenizers


def train_bpe(text: bytes, size: int) -> BPE:
  """A byte-level BPE of `size` tokens, learned from the text."""
  t = _tokenizers()
  made = byte_level(t.models.BPE())
  alphabet = t.pre_tokenizers.ByteLevel.alphabet()
  trainer = t.trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
  made.train_from_iterator(text.decode("utf-8", "replace").splitlines(keepends=True), trainer)
  return BPE(made)


def byte_level(model):
  """A BPE model that sees bytes, as GPT-2's does."""
  t = _tokenizers()
  made = t.Tokenizer(model)
  made.pre_tokenizer = t.pre_tokenizers.ByteLevel(add_prefix_space=False)
  made.decoder = t.decoders.ByteLevel()
  return made


def gpt2_bpe(folder: Path) -> BPE:
  """GPT-2's own, from a folder with vocab.json and merges.txt, or tokenizer.json."""
  if (folder / "tokenizer.json").exists():
    return BPE(_tokenizers().Tokenizer.from_file(str(folder / "tokenizer.json")))
  names = [str(folder / name) for name in ("vocab.json", "merges.txt")]
  if all(map(Path.exists, map(Path, names))):
    return BPE(byte_level(_tokenizers().models.BPE.from_file(*names)))
  raise Missing(
    f"no vocabulary in {folder}/: hf download openai-community/gpt2 vocab.json merges.txt --local-dir {folder}\n"
    "(or give its folder: --tokenizer gpt2:FOLDER)"
  )


def tokenizer(spec: str, text: bytes = b"") -> Tokenizer:
  """byte | bpe:N (learned from the text) | gpt2 | gpt2:FOLDER"""
  kind, _, rest = spec.partition(":")
  if kind == "byte" and not rest:
    return Bytes()
  if kind == "bpe" and rest.isdigit() and int(rest) > 256:
    return train_bpe(text, int(rest))
  if kind == "gpt2":
    return gpt2_bpe(Path(rest or "gpt2"))
  raise Missing(f"no tokenizer {spec!r}: it is byte, bpe:N with N > 256, gpt2 or gpt2:FOLDER")


def restored(kind: str, text: str) -> Tokenizer:
  """The tokenizer of a checkpoint, from its `text()`."""
  return Bytes() if kind == "byte" else BPE(_tokenizers().Tokenizer.from_str(text))


# ---------------------------------------------------------------- batches


class Windows:
  """Windows of `seq` + 1 tokens, in an order that is drawn anew for each pass over the data.

  What comes at a position is a function of (tokens, seq, seed, position): going on from a checkpoint needs a number.
  """

  def __init__(self, tokens: np.ndarray, seq: int, seed: int):
    if len(tokens) < seq + 1:
      raise Missing(f"the data has {len(tokens)} tokens, too few for one window of {seq} + 1")
    self.tokens, self.seq, self.seed = tokens, seq, seed
    self.count = max(1, (len(tokens) - seq - 1) // seq)  # of windows in a pass, whatever its offset
    self.drawn = (-1, 0, np.zeros(0, np.int64))

  def order(self, turn: int) -> tuple[int, np.ndarray]:
    """(offset of the first window, order of the windows) in a pass."""
    if self.drawn[0] != turn:
      rng = np.random.default_rng([self.seed, turn])
      offset = int(rng.integers(min(self.seq, len(self.tokens) - self.seq * self.count)))
      self.drawn = (turn, offset, rng.permutation(self.count))
    return self.drawn[1:]

  def at(self, position: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """n windows from a position on: tokens and, one further, targets, i32[n, seq] each."""
    rows = []
    for turn, k in (divmod(p, self.count) for p in range(position, position + n)):
      offset, order = self.order(turn)
      start = offset + int(order[k]) * self.seq
      rows.append(self.tokens[start : start + self.seq + 1])
    both = np.stack(rows)
    return both[:, :-1], both[:, 1:]
