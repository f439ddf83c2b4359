"""Random programs of indexing, compared with NumPy: get, set, t[i] += v; also under jit, and their gradients.

    python test/fuzz_index.py [SEEDS] [FIRST]      runs seeds FIRST, FIRST+1, ... and prints those that fail

An index is any mix of ints, slices with any step, None, ..., masks and integer arrays that broadcast, each as a list,
an array or a tensor. Ints, and arrays without axes, are taken first, as in PyTorch: x[0, :, k] has the axes of
x[0][:, k]. What basic indices take is a view, and changes with what it is a view of. Getting and setting move numbers: their gradients are counted
by doing the same to the numbers' names.
"""

from __future__ import annotations

import operator
import sys
import traceback

import numpy as np

from mini import Tensor, jit

AUGMENTED = {"+": operator.iadd, "-": operator.isub, "*": operator.imul}


def is_mask(i):
  return isinstance(i, np.ndarray) and i.dtype == bool


def divided(index, shape):
  """An index in two: what is basic, and the integer arrays of what that leaves. IndexError if a mask does not fit."""
  covered = sum(i.ndim if is_mask(i) else i is not None for i in index if i is not ...)
  at = next((n for n, i in enumerate(index) if i is ...), len(index))
  index = [*index[:at], *[slice(None)] * (len(shape) - covered), *index[at + 1 :]]
  basic, arrays = [], []
  for i in index:
    if is_mask(i):
      axis = len(basic) - basic.count(None)
      if i.shape != shape[axis : axis + i.ndim]:
        raise IndexError("NumPy takes an empty mask of an axis of size 1")
      # of a mask without axes: a new axis, taken once or not at all
      basic += [slice(None)] * i.ndim or [None]
      arrays += np.nonzero(np.atleast_1d(i))
    elif isinstance(i, np.ndarray) and i.ndim:
      basic.append(slice(None))
      arrays.append(i)
    else:
      basic.append(i if i is None or isinstance(i, slice) else int(i))
      arrays += [] if isinstance(basic[-1], int) else [slice(None)]
  return tuple(basic), tuple(arrays)


def get(a, index):
  """A view, or what arrays take: a copy."""
  basic, arrays = divided(index, a.shape)
  view = a[(*basic, ...)]
  return view[arrays] if any(isinstance(i, np.ndarray) for i in arrays) else view


def put(a, index, value):
  """Changes a."""
  basic, arrays = divided(index, a.shape)
  a[(*basic, ...)][arrays] = value


class Fuzzer:
  """One program: leaves, and steps that any of NumPy, mini and mini under jit can take."""

  def __init__(self, seed: int, arithmetic: bool):
    self.r = np.random.default_rng(seed)
    self.arithmetic = arithmetic
    self.leaves = [self.numbers(self.shape())]
    self.steps: list[tuple] = []
    known = self.run_numpy(self.leaves)
    for _ in range(self.r.integers(2, 6)):
      self.steps.append(self.step(known))
      known = self.run_numpy(self.leaves)

  def pick(self, xs):
    return xs[int(self.r.integers(len(xs)))]

  def shape(self):
    sizes = [0, 1, 2, 3] if self.r.random() < 0.1 else [1, 2, 3, 4, 5, 7]
    return tuple(int(self.pick(sizes)) for _ in range(self.r.integers(0, 5)))

  def numbers(self, s):
    return np.asarray(self.r.integers(-9, 10, s), np.float64 if self.r.random() < 0.5 else np.float32)

  # ---------------------------------------------------------------- making a program

  def one_slice(self, n):
    ends = [None, *range(-n - 2, n + 3)]
    return slice(self.pick(ends), self.pick(ends), self.pick([None, 1, 2, 3, -1, -1, -2, -3]))

  def index(self, s):
    """Of each axis something; at times fewer, with ... and None between."""
    items: list = []
    common = tuple(int(n) for n in self.r.integers(1, 4, self.r.integers(0, 3)))
    a = 0
    while a < len(s):
      kind = self.r.random()
      n = s[a]
      if kind < 0.2 and n:
        items.append(int(self.r.integers(-n, n)))
      elif kind < 0.4 and n:
        own = tuple(1 if self.r.random() < 0.3 else m for m in common)[
          int(self.r.integers(0, len(common) + 1)) :
        ]
        items.append(np.asarray(self.r.integers(-n, n, own)))
      elif kind < 0.45 and not any(isinstance(i, np.ndarray) for i in items):
        covers = int(self.r.integers(0, min(2, len(s) - a) + 1))
        items.append(np.asarray(self.r.random(s[a : a + covers]) < 0.5))
        common = (int(items[-1].sum()),)
        a += covers - 1
      else:
        items.append(self.one_slice(n))
      a += 1
    if self.r.random() < 0.3:
      items = items[: int(self.r.integers(0, len(items) + 1))]
    if self.r.random() < 0.2:
      at = int(self.r.integers(0, len(items) + 1))
      items[at:at] = [...] if len(items) < len(s) or self.r.random() < 0.5 else []
    for _ in range(self.r.integers(0, 2)):
      items.insert(int(self.r.integers(0, len(items) + 1)), None)
    return items

  def step(self, known):
    """(what, of which, index, ...); all that is random is in it."""
    of = int(self.r.integers(len(known)))
    while True:
      index = self.index(known[of].shape)
      try:
        room = get(known[of], index).shape
        break
      except IndexError:  # arrays that do not broadcast with a mask
        continue
    form = [self.pick(["tensor", "array", "list"]) for _ in index]
    kind = self.r.random()
    if kind < 0.45:
      return "get", of, index, form
    if kind < 0.6 and self.arithmetic:
      return "augment", of, index, form, self.pick("+-*"), int(self.r.integers(1, 4))
    if kind < 0.7:
      return "put", of, index, form, int(self.r.integers(-9, 10))
    s = (
      tuple(1 if self.r.random() < 0.2 else n for n in room)[int(self.r.integers(0, len(room) + 1)) :]
      if self.r.random() < 0.5
      else room
    )
    self.leaves.append(self.numbers(s))
    return "put from", of, index, form, len(self.leaves) - 1

  # ---------------------------------------------------------------- running it

  def run_numpy(self, leaves):
    """The tensors that a program has at its end: the first leaf, and what was taken."""
    known = [np.array(leaves[0])]
    for what, of, index, _, *rest in self.steps:
      if what == "get":
        known.append(get(known[of], index))
      elif what == "augment":
        put(known[of], index, AUGMENTED[rest[0]](get(known[of], index), known[of].dtype.type(rest[1])))
      else:
        put(known[of], index, leaves[rest[0]] if what == "put from" else rest[0])
    return known

  def run(self, *leaves):
    known = [leaves[0].clone()]
    for what, of, index, form, *rest in self.steps:
      at = tuple(self.formed(i, f) for i, f in zip(index, form))
      at = at[0] if len(at) == 1 and not isinstance(at[0], list) else at
      if what == "get":
        known.append(known[of][at])
      elif what == "augment":
        t = known[of]
        if rest[0] == "+":
          t[at] += rest[1]
        elif rest[0] == "-":
          t[at] -= rest[1]
        else:
          t[at] *= rest[1]
      else:
        known[of][at] = leaves[rest[0]] if what == "put from" else rest[0]
    return known

  @staticmethod
  def formed(i, form):
    if not isinstance(i, np.ndarray):
      return i
    if form == "tensor" and i.dtype != bool:
      return Tensor(i)
    return i.tolist() if form == "list" and i.size else i

  def check(self, got, want, what):
    assert len(got) == len(want)
    for n, (t, a) in enumerate(zip(got, want)):
      assert t.shape == a.shape, f"{what}: {n}: shape {t.shape}, not {a.shape}"
      np.testing.assert_array_equal(t.numpy(), a, err_msg=f"{what}: {n}")

  def gradients(self):
    """Of a weighted sum of all results: each number's weight is added up where its name has gone."""
    starts = np.cumsum([0, *(a.size for a in self.leaves)])
    nameless = int(starts[-1])  # the name of a constant
    names = [np.array(n + np.arange(a.size).reshape(a.shape)) for n, a in zip(starts, self.leaves)]
    plain, self.steps = self.steps, [(*s[:4], nameless) if s[0] == "put" else s for s in self.steps]
    gone = self.run_numpy(names)
    self.steps = plain
    weights = [self.r.integers(-4, 5, a.shape).astype(np.float64) for a in gone]
    flat = np.concatenate([a.reshape(-1) for a in gone])
    counted = np.bincount(flat, np.concatenate([w.reshape(-1) for w in weights]), nameless + 1)
    leaves = [Tensor(a).requires_grad_() for a in self.leaves]
    known = self.run(*leaves)
    loss = sum((t.double() * Tensor(w)).sum() for t, w in zip(known, weights))
    if not loss.requires_grad:
      return
    got = loss.gradient(*leaves, materialize_grads=True)
    Tensor.realize(*got)
    for n, g in enumerate(got):
      want = counted[starts[n] : starts[n + 1]].reshape(g.shape)
      np.testing.assert_array_equal(g.numpy(), want, err_msg=f"gradient of leaf {n}")


def run(seed: int, jitted: bool = False) -> None:
  """One random program. A failure says the seed and the steps."""
  fuzzer = Fuzzer(seed, arithmetic=seed % 2 == 0)
  try:
    want = fuzzer.run_numpy(fuzzer.leaves)
    got = fuzzer.run(*map(Tensor, fuzzer.leaves))
    Tensor.realize(*got)
    fuzzer.check(got, want, "values")
    if jitted:
      f = jit(fuzzer.run)
      for sign in (1, -1, 1):
        leaves = [a * a.dtype.type(sign) for a in fuzzer.leaves]
        fuzzer.check(f(*map(Tensor, leaves)), fuzzer.run_numpy(leaves), "jit")
    if not fuzzer.arithmetic:
      fuzzer.gradients()
  except Exception as e:
    steps = "\n  ".join(map(str, fuzzer.steps))
    shapes = ", ".join(str(a.shape) for a in fuzzer.leaves)
    raise AssertionError(f"seed {seed}: {type(e).__name__}: {e}\nleaves: {shapes}\nsteps:\n  {steps}") from e


if __name__ == "__main__":
  count, first = (int(x) for x in (*sys.argv[1:], *("200", "0")[len(sys.argv) - 1 :]))
  failed = []
  for seed in range(first, first + count):
    try:
      run(seed, jitted=seed % 5 == 0)
    except AssertionError:
      traceback.print_exc()
      failed.append(seed)
  print(f"{count - len(failed)} of {count} programs agree with NumPy; failing seeds: {failed}")
  sys.exit(bool(failed))
