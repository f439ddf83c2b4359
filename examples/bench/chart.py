"""The picture of docs/performance.md, of the table in docs/measurements.md:

python examples/bench/chart.py docs/measurements.md docs/performance.svg
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

# a row of the table, and what the picture calls it
ROWS = {
  "GPT-2 124M step, B=4 T=64": "training step of GPT-2 124M",
  "small GPT step, B=8 T=256": "training step of a GPT of 6 layers",
  "MLP step, batch 128": "training step of an MLP",
  "small convnet step, batch 128": "training step of a convnet",
  "GPT-2 124M generation, a token": "a token of GPT-2 124M",
  "matmul 1024": "1024 x 1024 matrix product",
  "attention with gradients": "attention and its gradients",
  "conv2d 8x64x56x56 by 64 of 3x3": "3x3 convolution of 64 channels",
  "softmax 4096 x 1024": "softmax of 4096 x 1024",
  "element-wise chain of 5, 16M": "5 elementwise operations of 16M",
}
UNITS = {"ms": 1.0, "s": 1000.0}


def times(page: str) -> dict[str, tuple[float, float]]:
  """{row: milliseconds of mini and of PyTorch}"""
  found = {}
  for line in page.splitlines():
    name, unit, mine, theirs, *_ = [*map(str.strip, line.strip("|").split("|")), "", "", "", ""]
    if name in ROWS and unit in UNITS:
      found[name] = float(mine) * UNITS[unit], float(theirs) * UNITS[unit]
  if missing := ROWS.keys() - found.keys():
    raise SystemExit(f"no such rows: {', '.join(sorted(missing))}")
  return found


def shown(ms: float) -> str:
  return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def draw(found: dict[str, tuple[float, float]], path: str) -> None:
  plt.rcParams.update({"svg.hashsalt": "mini", "svg.fonttype": "none", "font.family": "sans-serif"})
  fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
  names = [*ROWS][::-1]
  for y, name in enumerate(names):
    mine, theirs = found[name]
    ratio = mine / theirs
    ax.barh(y, ratio, height=0.62, color="#2f6f9f")
    at, color = (0.01, "white") if ratio > 0.15 else (ratio + 0.01, "black")
    ax.text(at, y, shown(mine), va="center", fontsize=8, color=color)
    ax.text(1.01, y, shown(theirs), va="center", fontsize=8, color="#666666")
  ax.axvline(1, color="#777777", linewidth=1)
  ax.set_yticks(range(len(names)), [ROWS[n] for n in names], fontsize=9)
  ax.set_xlim(0, 1.12)
  ax.set_xlabel("time of mini, in times of PyTorch's: shorter is faster", fontsize=9)
  ax.spines[["top", "right"]].set_visible(False)
  fig.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
  source, target = sys.argv[1:]
  draw(times(Path(source).read_text(encoding="utf-8")), target)
