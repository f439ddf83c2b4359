"""The whole table of what we aim at: ours beside each peer in the same run, and how far from what the machine can do.

  python examples/bench/targets.py                             everything, with the peers that are installed (an hour)
  python examples/bench/targets.py --quick --only softmax      some rows, in short
  python examples/bench/targets.py --compile --tinygrad .venv-tinygrad/bin/python --report docs/measurements.md

An aim is a ratio: at most so many times a peer's time (or memory), measured in turns with ours, so it does not depend
on the machine; "best" is the fastest of the peers. Where an aim is a number of its own, its peer is "". Every row is of
a script beside this one, which also compares the results before it times them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import limits
from common import chosen

HERE = Path(__file__).parent
LIBRARIES = ("mini", "torch", "compile", "numpy", "tinygrad")


class Row(NamedTuple):
  """One row: where its figures come from, and what we aim at."""

  name: str
  script: str
  case: str  # of a table of cases; or the name of our figure, in which case a peer's is said by `figures`
  aims: dict[str, float]
  limit: str = ""  # the figure of limits.py that holds for it
  unit: str = "ms"
  figures: dict[str, str] = {}  # noqa: RUF012 (never changed)
  options: tuple[str, ...] = ()
  slow: bool = False


def training(name: str, script: str, *options: str, slow: bool = False, **aims: float) -> Row:
  """The time of a training step."""
  figures = {peer: f"{peer}_ms_median" for peer in ("torch", "compile", "tinygrad")}
  return Row(name, script, "ms_median", aims, "GFLOP/s", "ms", figures, options, slow)


MATMULS = {"matmul 512": "square 512", "matmul 1024": "square 1024", "matmul 2048": "square 2048"}
GPT2_MATMULS = (
  "attention qkv", "attention out", "mlp up", "mlp down", "logits", "d input of mlp up", "d input of logits",
  "d weight of mlp up", "d weight of logits",
)  # fmt: skip
CONVOLUTIONS = (
  "conv2d 8x64x56x56 by 64 of 3x3", "conv2d 8x64x56x56 by 128 of 3x3", "conv2d 8x256x14x14 by 256 of 3x3",
  "conv2d 8x256x28x28 by 64 of 1x1",
)  # fmt: skip
GRADIENTS = ("d input of ", "d weight of ")
MORE_CONVOLUTIONS = [
  *(what + name for name in CONVOLUTIONS[:3] for what in GRADIENTS),
  *(what + "conv2d 8x3x224x224 by 64 of 7x7" for what in ("", "d weight of ")),
  *(what + name for name in ("conv2d 8x128x28x28 by 128 of 3x3", "depthwise conv2d 8x128x56x56 of 3x3 stride 1",
                             "depthwise conv2d 8x128x56x56 of 3x3 stride 2") for what in ("", *GRADIENTS)),
]  # fmt: skip
BOTH = ("forward", "step")
MODELS = {"ResNet-18": BOTH, "ResNet-50": BOTH, "MobileNetV2": BOTH[:1], "EfficientNet-B0": BOTH[:1], "UNet": BOTH,
          "ViT": BOTH, "DCGAN": BOTH, "LSTM": BOTH}  # fmt: skip
PEAK = {"torch": "torch_peak_bytes", "compile": "compile_peak_bytes"}
FIRST = {"torch": "torch_first_step_s", "compile": "compile_first_step_s"}
GPT2 = ("--model", "gpt2")
GENERATED = {"torch": "ms a token, torch"}
# what a token may take with weights kept so, beside float32: gcc widens vectors of bytes slowly
KEPT = {"bfloat16": 0.59, "int8": 0.4 if "clang" in limits.machine() else 0.67, "int4": 0.59}
FEW = ("--layers", "2", "--tokens", "14")

# fmt: off
ROWS = [
  *[Row(name, "matmul.py", case, {"best": 1.0}, "GFLOP/s") for name, case in MATMULS.items()],
  *[Row(f"GPT-2: {name}", "matmul.py", f"{name} ", {"best": 1.0}, "GFLOP/s") for name in GPT2_MATMULS],
  Row("element-wise chain of 5, 16M",  "rows.py", "chain",           {"torch": 0.08, "compile": 0.25}, "GB/s copied"),
  Row("sum of 16M",                    "rows.py", "sum 16x",         {"best": 1.0},  "GB/s read"),
  Row("sum over axis 0, 4096 x 4096",  "rows.py", "sum over axis 0", {"best": 0.5},  "GB/s read"),
  Row("sum over axis 1",               "rows.py", "sum over axis 1", {"best": 1.0},  "GB/s read"),
  Row("softmax 4096 x 1024",           "rows.py", "softmax",         {"best": 0.52}, "GB/s copied"),
  Row("layer norm 4096 x 768",         "rows.py", "layer norm",      {"best": 0.84}, "GB/s copied"),
  Row("attention forward",             "attention.py", "attention forward 4",         {"torch": 1.0},  "GFLOP/s"),
  Row("attention forward, causal",     "attention.py", "attention forward causal 4",  {"torch": 0.6},  "GFLOP/s"),
  Row("attention with gradients",      "attention.py", "attention backward 4",        {"torch": 1.0},  "GFLOP/s"),
  Row("attention with gradients, causal",              "attention.py", "attention backward causal 4", {"torch": 0.8},  "GFLOP/s"),
  *[Row(name, "conv.py", name, {"torch": 1.05}, "GFLOP/s") for name in CONVOLUTIONS],
  *[Row(name, "conv.py", name, {"torch": 1.1}, "GFLOP/s") for name in MORE_CONVOLUTIONS],
  training("GPT-2 124M step, B=4 T=64", "gpt2_step.py", *GPT2, slow=True, torch=0.7, compile=0.8),
  Row("GPT-2: first step, nothing kept", "gpt2_step.py", "first_step_cold_s", {"torch": 1.4, "compile": 0.25}, "", "s", FIRST, GPT2, True),
  Row("GPT-2: first step, kept code",    "gpt2_step.py", "first_step_warm_s", {"torch": 0.5},                  "", "s", FIRST, GPT2, True),
  Row("GPT-2: peak memory",              "gpt2_step.py", "peak_bytes", {"torch": 0.86, "compile": 0.87}, "", "bytes", PEAK, GPT2, True),
  Row("GPT-2: kernels of a step",        "gpt2_step.py", "kernels", {"": 1112}, "", "", {}, GPT2, True),
  training("small GPT step, B=8 T=256", "gpt2_step.py", "--model", "small", "--no-first", torch=0.75, compile=0.7),
  training("MLP step, batch 128", "mlp_step.py", "--no-first", "--steps", "200", torch=0.8),
  training("small convnet step, batch 128", "convnet.py", "--no-first", torch=0.82),
  *[Row(f"{name}, {what} of {n}", "models.py", f"{name}, {what} of {n}", {"torch": 0.9}, "", options=("--batch", n), slow=True)
    for name, whats in MODELS.items() for what in whats for n in ("2", "16")],
  Row("AdamW, 124M parameters",        "optim.py", "AdamW, one tensor", {"torch": 0.95}, "GB/s copied"),
  Row("GPT-2 124M generation, a token", "generation.py", "ms a token, mini", {"torch": 0.43}, "GB/s read", "ms", GENERATED, slow=True),
  Row("GPT-2 124M generation, bfloat16 weights", "generation.py", "ms a token, mini, bfloat16 weights", {"torch": 0.3}, "", "ms", GENERATED, slow=True),
  *[Row(f"2 layers of GPT-2 and logits, {kept} weights", "generation.py", f"ms a token, mini, {kept} weights", {"float32": aim}, "", "ms",
        {"float32": "ms a token, mini"}, FEW) for kept, aim in KEPT.items()],
  *[Row(f"kernels: {name}", "kernels.py", name, {"": 1}, "", "")
    for name in ("max_pool2d+relu", "matmul+relu", "relu(a*b+a).sum()", "softmax", "attention")],
  Row("tiny kernel in a jitted function", "dispatch.py", "us each, mini", {"best": 0.53}, "", "us",
      {"torch": "us each, torch", "numpy": "us each, numpy"}),
  Row("compile time, twice the layers", "compile.py", "ratio", {"": 2.3}, "", "times", slow=True),
  Row("import, over NumPy's", "startup.py", "ms: import mini over numpy", {"": 40}, "", "ms", {"numpy": "ms: import numpy"}),
  Row("first (a+b).sum(), nothing kept", "startup.py", "ms: first sum, cold cache", {"torch": 0.24}, "", "ms", {"torch": "ms: torch: first sum"}),
  Row("first (a+b).sum(), kept code",    "startup.py", "ms: first sum, warm cache", {"torch": 0.17}, "", "ms", {"torch": "ms: torch: first sum"}),
  Row("new matmul+relu, without the C compiler", "startup.py", "ms: the same, compiled code on disk", {"": 40}, "", "ms"),
]
# fmt: on


def run(script: str, options: tuple[str, ...], rows: list[Row], args: argparse.Namespace) -> dict[str, Any]:
  """A script's JSON."""
  command = [sys.executable, str(HERE / script), "--json", "--seconds", str(args.seconds), *options]
  if not any(r.figures for r in rows):
    command += ["--only", ",".join(r.case for r in rows)]
  if args.quick:
    command += ["--rounds", "3", *(["--steps", "3"] if "--model" in options else [])]
  command += ["--compile"] * args.compile + ["--tinygrad", args.tinygrad] * bool(args.tinygrad)
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  if done.returncode:
    return {"failed": (done.stderr.strip().splitlines() or ["no words"])[-1]}
  return json.loads(done.stdout.splitlines()[-1])


def figures(row: Row, found: dict[str, Any], machine: dict[str, float]) -> dict[str, Any]:
  """What is told of a row: ours and each peer's, ratios to the aims, and the part of the machine's limit."""
  told: dict[str, Any] = {"name": row.name, "unit": row.unit, "aims": row.aims, "script": row.script}
  amount: dict[str, float] = {}
  if "failed" in found:
    return {**told, "failed": found["failed"]}
  if "rows" in found:
    case = next((c for c in found["rows"] if c["case"].startswith(row.case)), None)
    if case is None:
      return {**told, "failed": f"{row.script} has no {row.case}"}
    told["measured"] = {name: case[name]["ms_median"] for name in LIBRARIES if name in case}
    told["best"] = {name: case[name]["ms_best"] for name in LIBRARIES if name in case}
    told["error"], told["kernels"] = case["mini"]["error"], case.get("kernels")
    work = case["mini"]["rate"] * case["mini"]["ms_median"] / 1e3
    amount = {row.limit: work}
  else:
    names = {"mini": row.case, **row.figures}
    told["measured"] = {name: found[key] for name, key in names.items() if key in found}
    told["error"] = found.get("loss_difference") if row.case == "ms_median" else None
    if row.limit == "GFLOP/s":  # and what an optimizer moves
      amount = {row.limit: found.get("gflop", 0.0), "GB/s copied": found.get("gb", 0.0)}
    elif row.limit:
      amount = {row.limit: found["gb"]}
  measured = told["measured"]
  others = [t for name, t in measured.items() if name != "mini"]
  times = {"": 1.0, "best": min(others, default=0.0), **measured}
  told["ratios"] = {p: measured["mini"] / times[p] for p in row.aims if times.get(p)}
  told["met"] = all(ratio <= row.aims[p] for p, ratio in told["ratios"].items()) if told["ratios"] else None
  told["limit"] = sum(n / machine[what] * 1e3 for what, n in amount.items() if n)
  return told


def number(x: float | None, unit: str = "") -> str:
  if x is None:
    return ""
  if unit == "bytes":
    return f"{x / 1e9:.2f} GB"
  return f"{x:.0f}" if x == int(x) or x >= 1000 else f"{x:.3g}"


HEAD = ("", "unit", *LIBRARIES, "ratio", "we aim at", "met", "limit", "of the limit", "error")


def cells(told: dict[str, Any]) -> list[str]:
  if "failed" in told:
    return [told["name"], "failed:", told["failed"], *[""] * (len(HEAD) - 3)]
  unit, measured, limit = told["unit"], told["measured"], told["limit"]
  aims = ", ".join(f"<= {aim:g} {peer}".strip() for peer, aim in told["aims"].items())
  ratios = ", ".join(f"{ratio:.2f} {peer}".strip() for peer, ratio in told["ratios"].items() if peer)
  return [
    told["name"],
    "" if unit == "bytes" else unit,
    *[number(measured.get(name), unit) for name in LIBRARIES],
    ratios,
    aims,
    {True: "yes", False: "NO", None: "?"}[told["met"]],
    number(limit or None),
    f"{limit / measured['mini']:.0%}" if limit else "",
    "" if told["error"] is None else f"{told['error']:.0e}",
  ]


WIDTHS = (42, 5, 9, 9, 9, 9, 9, 26, 26, 4, 8, 13, 6)
LEFT = (0, 7, 8)


def show(texts: list[str]) -> None:
  parts = [t.ljust(w) if n in LEFT else t.rjust(w) for n, (t, w) in enumerate(zip(texts, WIDTHS))]
  print(" ".join(parts).rstrip(), flush=True)


def report(path: Path, about: dict[str, Any], rows: list[list[str]]) -> None:
  """Writes the table between the two marks of a file, or at its end."""
  begin, end = "<!-- targets.py: begin -->", "<!-- targets.py: end -->"
  text = path.read_text() if path.exists() else ""
  before, _, rest = text.partition(begin)
  after = rest.partition(end)[2]
  lines = [f"{name}: `{value}`  " for name, value in about.items()]
  table = [f"| {' | '.join(row)} |" for row in [list(HEAD), ["---"] * len(HEAD), *rows]]
  path.write_text("\n".join([before + begin, *lines, "", *table, end]) + (after or "\n"))


def main() -> None:
  p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("--only", default="", help="rows whose name contains one of these, with commas between them")
  p.add_argument("--quick", action="store_true", help="in short, and without what takes long")
  p.add_argument("--compile", action="store_true", help="torch.compile, too (needs g++)")
  p.add_argument("--tinygrad", default="", metavar="PYTHON", help="tinygrad, too: the Python that has it")
  p.add_argument("--seconds", type=float, default=1.0, help="for each row and library")
  p.add_argument("--report", default="", metavar="FILE", help="Markdown, in place of the table that FILE has")
  p.add_argument("--json", default="", metavar="FILE", help="writes everything there as JSON, too")
  args = p.parse_args()
  args.seconds = min(args.seconds, 0.1) if args.quick else args.seconds
  rows = [r for r in ROWS if chosen(r.name, args) and not (args.quick and r.slow)]
  if args.only and not rows:
    sys.exit(f"no row is called {args.only}: there are {', '.join(r.name for r in ROWS)}")
  machine = limits.measure(args.seconds)
  about = {
    "machine": limits.machine(),
    "date": time.strftime("%Y-%m-%d"),
    "command": " ".join(["python", "examples/bench/targets.py", *sys.argv[1:]]),
    "limits": {name: round(x, 1) for name, x in machine.items()},
  }
  groups: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
  for r in rows:
    groups.setdefault((r.script, r.options), []).append(r)

  for name, value in about.items():
    print(f"{name}: {value}")
  show(list(HEAD))
  told = []
  for (script, options), some in groups.items():
    found = run(script, options, some, args)
    for r in some:
      told.append(figures(r, found, machine))
      show(cells(told[-1]))
  if args.json:
    Path(args.json).write_text(json.dumps({**about, "rows": told}, indent=1) + "\n")
  if args.report:
    report(Path(args.report), about, [cells(t) for t in told])


if __name__ == "__main__":
  main()
