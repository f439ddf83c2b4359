"""Models whose weights are kept as integers: which ones, and along which axis. How is in mini/quantization.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mini.nn.embedding import Embedding
from mini.nn.layers import Linear
from mini.nn.module import Module
from mini.quantization import Quantized, quantize
from mini.tensor import Tensor
from mini.tensor.handle import fail
from mini.types import ShapeError

CHANNELS: dict[type, int] = {Linear: 0, Embedding: 0}  # the axis of `weight` that is not summed over


def quantized(
  model: Module,
  bits: int | str = 8,
  block: int | None = None,
  symmetric: bool = True,
  channels: Mapping[type, int] | None = None,
  skip: Iterable[str] = (),
) -> Module:
  """The model, in which the weights of linear layers and embeddings are integers from now on: each output has a scale,
  or, with `block`, each run of so many of its inputs. See `mini.quantize`.

  channels: modules of one's own whose `weight` is a matrix, and the axis of their outputs, beside those of Linear and
  Embedding (0). skip: paths of modules that stay as they are. A weight that several modules share stays shared. What is
  quantized is no parameter any more; gradients pass through it to what was before. Each weight is computed and let go
  before the next: no two of them are there in both forms.

  >>> model = nn.quantized(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)), bits=4, skip=["2"])
  >>> model[0].weight
  Quantized(4 bits, shape=(64, 64), scale=(64, 1))
  >>> model(Tensor.ones(3, 64)).shape
  (3, 2)
  """
  axes = {**CHANNELS, **(channels or {})}
  modules, skipped = dict(model.named_modules()), set(skip)
  if unknown := skipped - set(modules):
    raise ShapeError(f"quantized: the model has no module {', '.join(sorted(unknown))} to skip")
  wanted: dict[Tensor, list[tuple[str, Module]]] = {}
  for path, m in modules.items():
    if path not in skipped and type(m) in axes and isinstance(m.weight, Tensor):  # type: ignore[attr-defined]
      wanted.setdefault(m.weight, []).append((path, m))  # type: ignore[attr-defined]
  while wanted:
    weight, users = wanted.popitem()
    axis = axes[type(users[0][1])]
    if weight.ndim != 2:
      fail(ShapeError, f"quantized: the weight of {users[0][0]} is no matrix", weight=weight)
    found: Quantized = quantize(weight, bits, axis if block is None else 1 - axis, block, symmetric).realize()
    for _, m in users:
      m.weight = found  # type: ignore[attr-defined]
    del weight
  return model
