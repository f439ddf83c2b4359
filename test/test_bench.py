"""The benchmarks run, check their results and print JSON. How fast anything is, no test says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent / "examples" / "bench"


def figures(script: str, *args: str) -> dict:
  done = subprocess.run(
    [sys.executable, BENCH / script, "--json", *args], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr
  (line,) = done.stdout.splitlines()
  return json.loads(line)


@pytest.mark.full
@pytest.mark.parametrize(
  "script, args, rows",
  [
    ("matmul.py", ("--quick",), 6),
    ("rows.py", (), 6),
    ("attention.py", (), 4),
    ("optim.py", ("--parameters", "148000"), 5),
  ],
)
def test_tables(script, args, rows):
  found = figures(script, "--seconds", "0.05", *args)["rows"]
  assert len(found) >= rows and all(row["mini"]["rate"] > 0 for row in found)


@pytest.mark.full
def test_sweep(tmp_path):
  pytest.importorskip("torch")
  few = ("--count", "1", "--seconds", "0.02", "--only", "leaky,vector by,softmax over")
  found = figures("sweep.py", *few, "--report", str(tmp_path / "sweep.md"))
  names = [row["case"].partition(" ")[0] for row in found["rows"]]
  assert names.count("slope") == 4 and len(names) == 7
  assert 0 < found["summary"]["gradients: of PyTorch's time"]
  table = [
    line.split(" | ") for line in (tmp_path / "sweep.md").read_text().splitlines() if line.startswith("| ")
  ]
  assert len(table) == 4 and all(len(row) == 6 for row in table)  # with what stands above


@pytest.mark.full
def test_loops():
  pytest.importorskip("torch")
  rows = figures("loops.py", "--seconds", "0.02", "--only", "diagonals,table,x[i],MLP")["rows"]
  assert [row["case"] for row in rows] == ["diagonals that grow", "a table", "x[i] = v", "MLP step"]
  assert [row["compiles"] for row in rows[:2]] == [0, 0] and 0 < rows[2]["compiles"] < 6


@pytest.mark.full
def test_corpus(tmp_path):
  """The same text twice, and what SHOW prints is what the list of passes makes."""
  few = [
    sys.executable,
    str(BENCH / "corpus.py"),
    "--rounds",
    "1",
    "--only",
    "convnet,LSTM,DCGAN,GPT-2 of 64",
  ]
  for folder, more in (("a", []), ("b", ["--beside", str(tmp_path / "a")])):
    done = subprocess.run([*few, str(tmp_path / folder), *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len([line for line in lines if not line.startswith(" ")]) == 4 and "SHOW prints" not in done.stdout
  assert [line for line in lines if "text" in line] == ["  the same text"] * 4
  assert len([line for line in lines if "of the time" in line]) == 4


@pytest.mark.full
def test_large():
  rows = figures("large.py", "--size", "2")["rows"]
  assert [row["size"] for row in rows] == [2, 8, 32] * (len(rows) // 3) and len(
    {r["case"] for r in rows}
  ) == 13
  assert all(0 < row["graph_s"] and 0 < row["rest_s"] for row in rows)


@pytest.mark.full
def test_models():
  pytest.importorskip("torch")
  found = figures("models.py", "--batch", "1", "--seconds", "0.02", "--only", "DCGAN,LSTM")["rows"]
  assert [row["case"] for row in found] == [
    f"{name}, {what} of 1" for name in ("DCGAN", "LSTM") for what in ("forward", "step")
  ]


@pytest.mark.full
def test_functions():
  found = figures("functions.py", "--seconds", "0.05")["rows"]
  assert all(
    row["mini"]["ulp"] < 8 for row in found if "gelu" not in row["case"]
  )  # whose values pass through 0


@pytest.mark.full
def test_dispatch():
  assert figures("dispatch.py", "--seconds", "0.05")["kernels"] == 1000


@pytest.mark.full
def test_data_parallel():
  assert figures("data_parallel.py", "--seconds", "0.05")["copies in a step"] == 6


@pytest.mark.full
def test_startup():
  assert figures("startup.py", "--rounds", "1")["ms: first sum, warm cache"] > 0


@pytest.mark.full
def test_limits():
  assert figures("limits.py", "--seconds", "0.05")["GB/s read"] > 0


@pytest.mark.full
def test_gpt2_step():
  """With PyTorch installed the losses of both are compared, too."""
  found = figures("gpt2_step.py", "--model", "tiny", "--steps", "3")
  assert found["ms_median"] > 0 and found["kernels"] > 10 and found["first_step_cold_s"] > 0


@pytest.mark.full
@pytest.mark.parametrize(
  "script, args, most",
  [
    ("mlp_step.py", ("--steps", "20"), 30),
    ("convnet.py", ("--steps", "2"), 50),
  ],
)
def test_steps(script, args, most):
  """Beside PyTorch's, where it is installed; and in how many kernels."""
  assert figures(script, "--no-first", *args)["kernels"] <= most


@pytest.mark.full
def test_targets(tmp_path):
  """The table of tables: a row of cases, one of figures, and a number to be met."""
  table = tmp_path / "table.json"
  only = ("--quick", "--only", "layer norm,tiny,kernels: matmul", "--json", table)
  done = subprocess.run(
    [sys.executable, BENCH / "targets.py", *only], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr
  layer_norm, kernels, tiny = json.loads(table.read_text())["rows"]
  assert layer_norm["error"] < 1e-5 and layer_norm["limit"] > 0 and set(layer_norm["ratios"]) == {"best"}
  assert kernels["met"] and tiny["measured"]["mini"] > 0 and "layer norm 4096 x 768" in done.stdout


@pytest.mark.full
def test_generation():
  found = figures("generation.py", "--model", "pico", "--layers", "1", "--tokens", "4", "--prompt", "3")
  assert found["tokens/s, mini"] > 0
