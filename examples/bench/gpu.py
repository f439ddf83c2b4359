"""Everything that wants a GPU, in one call: is it right, and how fast is it beside PyTorch on the same machine?

  DEV=CUDA python examples/bench/gpu.py --out gpu.json

Prints one table, and writes the same figures as JSON. Needs a few minutes; PyTorch, where it is installed, is what the
times are compared with. What fails is a row that says so, and the rest goes on. Without a GPU the script runs, too, at
sizes that tell nothing about speed: `EMULATE=1 DEV=CUDA python examples/bench/gpu.py --tiny`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import error, peer
from gpt2_step import ours, sizes, theirs

from mini import Device, Tensor, jit, nn, stats
from mini.config import Context

HERE = Path(__file__).parent
torch = peer("torch") if peer("torch") and peer("torch").cuda.is_available() else None

Row = dict[str, Any]


def seconds(call: Callable[[], Any], wait: Callable[[], Any], budget: float = 0.5) -> float:
  """The median of some blocks of calls, each long enough that waiting for the device does not count."""
  for _ in range(3):
    call()
  wait()
  start = time.perf_counter()
  call()
  wait()
  count = max(1, min(100, int(budget / 5 / max(time.perf_counter() - start, 1e-6))))
  blocks = []
  for _ in range(5):
    start = time.perf_counter()
    for _ in range(count):
      call()
    wait()
    blocks.append((time.perf_counter() - start) / count)
  return statistics.median(blocks)


def compared(what: str, mine: Callable, other: Callable | None, amount: float, unit: str) -> Row:
  """A row: rates of both, and how much of the other's speed is ours."""
  device = Device[Device.DEFAULT]
  t = seconds(mine, device.synchronize)
  row: Row = {"what": what, "unit": unit, "mini": amount / t, "mini_us": t * 1e6}
  if other is not None:
    u = seconds(other, torch.cuda.synchronize)
    row.update({"peer": amount / u, "peer_us": u * 1e6, "ratio": u / t})
  return row


# ---------------------------------------------------------------- is it right


def suite(args: argparse.Namespace) -> list[Row]:
  """Every operation on every type."""
  command = [sys.executable, "-m", "mini", "test-device", Device.DEFAULT]
  done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
  last = (done.stdout.strip() or done.stderr.strip() or "it printed nothing").splitlines()[-1]
  return [{"what": "op suite", "text": last, "right": done.returncode == 0}]


def training(args: argparse.Namespace) -> list[Row]:
  """The losses of a few training steps, here and on the CPU."""
  model, steps = ("pico", 3) if args.tiny else ("nano", 20)
  losses = {}
  for dev in ("CPU", Device.DEFAULT):
    out = Path(args.out).with_suffix(f".{dev.replace(':', '_')}")
    command = [sys.executable, str(HERE.parent / "train_gpt2.py"), "--dev", dev, "--model", model]
    command += ["--steps", str(steps), "--batch", "4", "--seq", "32", "--sample", "0", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = map(json.loads, (out / "log.jsonl").read_text().splitlines())
    losses[dev] = [row["loss"] for row in rows if "loss" in row]
  worst = max(abs(a - b) for a, b in zip(*losses.values(), strict=True))
  text = f"{steps} steps of {model}: losses differ by {worst:.1e}"
  return [{"what": "training as on the CPU", "text": text, "right": worst < 1e-4 * (1 if steps < 6 else 10)}]


# ---------------------------------------------------------------- how fast


def products(args: argparse.Namespace) -> list[Row]:
  """A square product in float32, TF32 and bfloat16, beside cuBLAS."""
  n = 64 if args.tiny else 4096
  a = np.random.default_rng(0).standard_normal((n, n), np.float32)
  rows = []
  for name, dtype, fast in (("float32", "float32", 0), ("tf32", "float32", 1), ("bfloat16", "bfloat16", 0)):
    with Context(FAST=fast):
      x = Tensor(a).cast(dtype).realize()
      product = jit(lambda x: x @ x)
      mine = lambda: product(x)  # noqa: B023 (timed before x changes)
      other = None
      if torch:
        torch.backends.cuda.matmul.allow_tf32 = bool(fast)
        u = torch.from_numpy(a).cuda().to(getattr(torch, dtype))
        other = lambda: u @ u  # noqa: B023
      row = compared(f"matmul {n} {name}", mine, other, 2e-12 * n**3, "TFLOP/s")
      got, want = mine()[:8].cast("float32").numpy(), a[:8].astype(np.float64) @ a
      row["error"] = error(got, want)
      row["right"] = row["error"] < {"float32": 1e-5, "tf32": 2e-3, "bfloat16": 2e-2}[name]
      rows.append(row)
  return rows


def bandwidth(args: argparse.Namespace) -> list[Row]:
  """What is bound by memory, as a share of what a copy on the device reaches."""
  rows_, n = (64, 64) if args.tiny else (32768, 1024)
  rng = np.random.default_rng(0)
  x, y = (Tensor(rng.standard_normal((rows_, n), np.float32)).realize() for _ in range(2))
  device, nbytes = Device[Device.DEFAULT], 4 * rows_ * n
  source, target = device.alloc(nbytes), device.alloc(nbytes)
  copy = compared(
    "copy on the device", lambda: device.copy(target, source, nbytes), None, 2e-9 * nbytes, "GB/s"
  )
  weight = Tensor(rng.standard_normal((rows_ * n,), np.float32), requires_grad=True)
  optimizer = nn.optim.AdamW([weight], lr=1e-4)
  gradient = Tensor(rng.standard_normal((rows_ * n,), np.float32)).realize()

  def adamw():
    weight.grad = gradient
    optimizer.step()

  cases: list[tuple[str, Callable, tuple, int, Callable | None]] = [
    ("chain of 5", lambda x, y: ((x * y + x) * 0.5 - y) * x, (x, y), 3, lambda u, v: ((u * v + u) * 0.5 - v) * u),
    ("sum", lambda x: x.sum(), (x,), 1, lambda u: u.sum()),
    ("sum over axis 0", lambda x: x.sum(0), (x,), 1, lambda u: u.sum(0)),
    ("sum over axis 1", lambda x: x.sum(1), (x,), 1, lambda u: u.sum(1)),
    ("softmax", lambda x: x.softmax(1), (x,), 2, lambda u: u.softmax(1)),
    ("layer norm", lambda x: x.layer_norm((n,)), (x,), 2, lambda u: torch.nn.functional.layer_norm(u, (n,))),
    ("AdamW", adamw, (), 7, None),
  ]  # fmt: skip
  found = [copy]
  for name, function, inputs, passes, peers in cases:
    jitted = jit(function)
    other = None
    if torch and peers:
      theirs_ = [torch.from_numpy(t.numpy()).cuda() for t in inputs]
      other = lambda: peers(*theirs_)  # noqa: B023 (timed before they change)
    row = compared(name, lambda: jitted(*inputs), other, 1e-9 * passes * nbytes, "GB/s")  # noqa: B023
    row["of_copy"] = row["mini"] / copy["mini"]
    row["right"] = args.tiny or row["of_copy"] >= 0.8
    found.append(row)
  return found


def launches(args: argparse.Namespace) -> list[Row]:
  """What one of many tiny kernels costs: in one graph launch, and each by itself."""
  count = 20 if args.tiny else 1000
  w = Tensor(np.eye(8, dtype=np.float32)).realize()

  def chain(x):
    for _ in range(count):
      x = x @ w
    return x

  x, jitted = Tensor(np.ones((8, 8), np.float32)).realize(), jit(chain)
  before = stats.kernels
  jitted(x)
  kernels = stats.kernels - before
  row = compared(
    f"{kernels} tiny kernels in a jitted function", lambda: jitted(x), None, kernels * 1e-6, "M/s"
  )
  one = jit(lambda x: x @ w)
  return [row, compared("a call of a jitted function", lambda: one(x), None, 1e-6, "M/s")]


def gpt2(args: argparse.Namespace) -> list[Row]:
  """A training step of GPT-2 124M beside PyTorch's: eager, and compiled."""
  config = sizes("tiny" if args.tiny else "gpt2")
  rows = []
  for name, dtype, fast in (("float32", "float32", 0), ("tf32", "float32", 1), ("bfloat16", "bfloat16", 0)):
    times, losses = {}, {}
    workers: dict[str, Callable[[], tuple[Callable, Callable]]] = {}
    workers["mini"] = lambda: ours(config, True, dtype)  # noqa: B023
    if torch:
      torch.backends.cuda.matmul.allow_tf32 = bool(fast)
      workers["torch"] = lambda: theirs(config, True, dtype, "cuda")  # noqa: B023
      workers["compiled"] = lambda: theirs(config, True, dtype, "cuda", True)  # noqa: B023
    with Context(FAST=fast):
      for worker, make in workers.items():
        run, _ = make()
        losses[worker] = [run(n) for n in range(2 if args.tiny else 3)]
        steps = []
        for n in range(3 if args.tiny else 20):
          start = time.perf_counter()
          run(3 + n)
          steps.append(time.perf_counter() - start)
        times[worker] = statistics.median(steps)
    row: Row = {
      "what": f"GPT-2 step {name}",
      "unit": "steps/s",
      "mini": 1 / times["mini"],
      "mini_us": 1e6 * times["mini"],
    }
    if torch:
      row.update(
        {"peer": 1 / times["torch"], "peer_us": 1e6 * times["torch"], "ratio": times["torch"] / times["mini"]}
      )
      row["ratio_compiled"] = times["compiled"] / times["mini"]
      row["loss_difference"] = max(abs(a - b) for a, b in zip(losses["mini"], losses["torch"], strict=True))
      row["right"] = row["loss_difference"] < {"float32": 1e-3, "tf32": 1e-2, "bfloat16": 1e-1}[name]
    rows.append(row)
  return rows


# ---------------------------------------------------------------- the report


def line(row: Row) -> str:
  """A row of the table."""
  if "text" in row:
    figures = row["text"]
  else:
    figures = f"{row['mini']:10.2f} {row['unit']:8} {row['mini_us']:12.1f} us"
    figures += f"   {row['ratio']:5.2f} x PyTorch ({row['peer']:.2f})" if "ratio" in row else ""
    figures += f", {row['ratio_compiled']:.2f} x compiled" if "ratio_compiled" in row else ""
    figures += f"   {row['of_copy']:.0%} of a copy" if "of_copy" in row else ""
    figures += f"   off by {row['error']:.1e}" if "error" in row else ""
  return f"{row['what']:40} {figures}" + ("" if row.get("right", True) else "   NOT AS ASKED")


def machine() -> Row:
  """What it ran on."""
  info = Device[Device.DEFAULT].shim.info
  found = {"device": Device.DEFAULT, "target": info.target, "python": platform.python_version()}
  found["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
  found["emulated"] = os.environ.get("MINI_EMULATE", os.environ.get("EMULATE", "0"))
  return {**found, "torch": torch.__version__ if torch else "none"}


def main() -> None:
  sections = {f.__name__: f for f in (suite, training, products, bandwidth, launches, gpt2)}
  p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("--out", default="gpu.json", metavar="FILE")
  p.add_argument("--tiny", action="store_true", help="sizes for an emulated device")
  p.add_argument("--only", default=",".join(sections), help="sections, with commas between them")
  args = p.parse_args()
  result: dict[str, Any] = {"machine": machine(), "rows": []}
  print("  ".join(f"{k}: {v}" for k, v in result["machine"].items()), flush=True)
  start = time.perf_counter()
  for name in args.only.split(","):
    try:
      rows = sections[name](args)
    except Exception as e:  # noqa: BLE001 (a row that says so; the machine is lent for minutes)
      traceback.print_exc()
      why = re.sub(r"\s+", " ", f"{type(e).__name__}: {e}")[:300]
      rows = [{"what": name, "text": why, "right": False}]
    for row in rows:
      print(line(row), flush=True)
    result["rows"] += rows
    result["seconds"] = round(time.perf_counter() - start, 1)
    Path(args.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
  wrong = sum(not row.get("right", True) for row in result["rows"])
  print(f"{len(result['rows']) - wrong} as asked, {wrong} not; {result['seconds']} s; {args.out}")
  sys.exit(1 if wrong else 0)


if __name__ == "__main__":
  main()
