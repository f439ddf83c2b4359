"""examples/train_gpt2.py as a user runs it: it learns, resumes to the bit, and survives being killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from data import Bytes, Missing, Windows, restored, tokenizer
from report import Log
from train_gpt2 import parse

EXAMPLES = Path(__file__).parent.parent / "examples"
TEXT = ("".join(f"{n} times {m} is {n * m}.\n" for n in range(40) for m in range(40))).encode()


@pytest.fixture
def text(tmp_path):
  path = tmp_path / "text.txt"
  path.write_bytes(TEXT)
  return path


def command(script: str, *args: object) -> list[str]:
  return [sys.executable, str(EXAMPLES / script), *map(str, args)]


def call(script: str, *args: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
  return subprocess.run(command(script, *args), cwd=cwd, capture_output=True, text=True, check=False)


def train(out: Path, *args: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
  """A short run; from any folder."""
  small = ("--model", "pico", "--batch", 4, "--seq", 32, "--warmup", 4, "--sample", 5)
  done = call("train_gpt2.py", "--out", out, *small, *args, cwd=cwd)
  assert done.returncode == 0, done.stderr
  return done


def losses(out: Path) -> dict[int, float]:
  rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
  return {row["step"]: row["loss"] for row in rows}


@pytest.mark.full
@pytest.mark.parametrize("dev", ["CUDA", "METAL", "CL"])
def test_every_device_learns_the_same(tmp_path, text, dev, monkeypatch):
  """GPUs are emulated."""
  monkeypatch.setenv("MINI_EMULATE", "1")
  for name in ("CPU", dev):
    train(tmp_path / name, "--data", text, "--dev", name, "--steps", 5, "--batch", 2, "--seq", 16)
  mine, theirs = losses(tmp_path / dev), losses(tmp_path / "CPU")
  assert len(mine) == 5 and all(abs(mine[n] - theirs[n]) < 1e-4 for n in theirs)


@pytest.mark.full
def test_resume_is_the_same_to_the_bit(tmp_path, text):
  """With dropout, accumulation and a pass over the data that ends in between."""
  flags = ("--data", text, "--dropout", 0.1, "--accumulate", 2, "--save-every", 5, "--eval-every", 4)
  whole, parts = tmp_path / "whole", tmp_path / "parts"
  done = train(whole, *flags, "--steps", 12, cwd=tmp_path)
  train(parts, *flags, "--steps", 5)
  resumed = train(parts, "--resume", "--steps", 12)
  assert "warning" not in resumed.stderr
  assert len(losses(whole)) == 12 and losses(whole) == losses(parts)
  assert losses(whole)[11] < losses(whole)[0] - 0.3
  weights = [(out / "checkpoint.safetensors").read_bytes() for out in (whole, parts)]
  assert len(weights[0]) == len(weights[1])
  assert "def " in done.stdout and "parameters" in done.stderr
  rows = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
  assert [row["step"] for row in rows if "val_loss" in row] == [3, 7, 11]

  again = call("generate.py", "--out", whole, "--tokens", 8)
  assert again.returncode == 0 and again.stdout, again.stderr
  other = call("train_gpt2.py", "--out", whole, "--resume", "--data", EXAMPLES / "data.py", "--steps", 12)
  assert other.returncode == 0 and "warning: the checkpoint is of another data" in other.stderr


def test_ctrl_c_saves(tmp_path, text):
  """It finishes the step and saves; what is resumed goes on with the next one."""
  out, small = tmp_path / "out", ("--model", "pico", "--batch", 2, "--seq", 32, "--sample", 0)
  started = command("train_gpt2.py", "--out", out, *small, "--data", text, "--steps", 100_000)
  with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as process:
    wait_for_steps(process, out)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
  assert process.returncode == 130 and f"--resume goes on with step {len(losses(out))}" in said
  assert (out / "checkpoint.safetensors").exists()


def wait_for_steps(process: subprocess.Popen, out: Path) -> None:
  end = time.monotonic() + 60
  while not ((out / "log.jsonl").exists() and len(losses(out)) > 4) and time.monotonic() < end:
    assert process.poll() is None
    time.sleep(0.05)


def test_kill_loses_no_checkpoint(tmp_path, text):
  """kill -9 at some moment of a run that saves at every step; what it leaves resumes to the same losses."""
  out, small = tmp_path / "out", ("--model", "pico", "--batch", 2, "--seq", 32, "--sample", 0)
  started = command("train_gpt2.py", "--out", out, *small, "--data", text, "--save-every", 1, "--steps", 400)
  process = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
  try:
    wait_for_steps(process, out)
  finally:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
  before = losses(out)
  assert call("train_gpt2.py", "--out", out, "--resume", "--steps", len(before) + 2).returncode == 0
  after = losses(out)
  assert len(after) == len(before) + 2
  assert {step: after[step] for step in before} == before


def test_messages(tmp_path, text):
  """What is missing is said in a line, and the exit status tells."""
  for args, said in (
    (("--resume", "--out", tmp_path / "none"), "nothing to resume"),
    (("--seq", 4096), "nano sees 128 tokens"),
    (("--tokenizer", "gpt2:" + str(tmp_path), "--data", text), "no vocabulary in"),
    (("--tokenizer", "words", "--data", text), "no tokenizer 'words'"),
    (("--data", tmp_path / "none"), "none"),
    (("--dev", "TOASTER"), "TOASTER"),
  ):
    done = call("train_gpt2.py", *args, cwd=tmp_path)
    assert done.returncode and said in done.stderr and "Traceback" not in done.stderr


def test_windows_cover_the_data_once_a_pass():
  tokens = np.arange(1000, dtype=np.int32)
  w = Windows(tokens, 32, seed=3)
  x, y = w.at(0, w.count)
  assert (y == x + 1).all() and len(np.unique(x)) == x.size and x.size > 1000 - 3 * 32
  second = w.at(w.count, w.count)[0]
  assert not np.array_equal(x, second)
  for position in (5, w.count - 2, 3 * w.count + 1):  # any position, from a new object
    np.testing.assert_array_equal(Windows(tokens, 32, seed=3).at(position, 4)[0], w.at(position, 4)[0])
  with pytest.raises(Missing):
    Windows(tokens[:20], 32, seed=3)


def test_bytes():
  assert Bytes().decode(Bytes().encode(TEXT).tolist()) == TEXT


def test_bpe(tmp_path):
  """Learned from the text; the same from a checkpoint, and from files as GPT-2's are published."""
  pytest.importorskip("tokenizers")
  text = TEXT + "naïve – 統計\n".encode()
  learned = tokenizer("bpe:300", text)
  tokens = learned.encode(text)
  assert learned.size == 300 and len(tokens) < 0.7 * len(text)
  assert learned.decode(tokens.tolist()) == text
  again = restored("bpe:300", learned.text())
  np.testing.assert_array_equal(again.encode(text), tokens)
  learned.made.model.save(str(tmp_path))
  np.testing.assert_array_equal(tokenizer(f"gpt2:{tmp_path}").encode(text), tokens)


def test_log_goes_on_at_a_step(tmp_path):
  path = tmp_path / "log.jsonl"
  path.write_text('{"step": 0, "loss": 3.0}\n{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
  log = Log(path, 2)
  log.add({"step": 2, "loss": 1.0})
  assert [json.loads(line)["loss"] for line in path.read_text().splitlines()] == [3.0, 2.0, 1.0]


def test_settings_that_make_no_sense_are_refused(capsys):
  for setting in ("--steps 0", "--batch 0", "--batch -1", "--seq 0", "--accumulate 0", "--eval-every -1",
                  "--save-every -2", "--warmup -1", "--lr nan", "--clip -1", "--seed -1", "--sample -1",
                  "--decay-steps 0", "--dropout -0.1"):  # fmt: skip
    with pytest.raises(SystemExit):
      parse(setting.split())
    assert f"argument {setting.split()[0]}: {setting.split()[1]} is not at least" in capsys.readouterr().err
  for setting in ("--tokens -1", "--top-k -1", "--temperature nan"):
    assert f"{setting.split()[1]} is not at least 0" in call("generate.py", *setting.split()).stderr


def test_at_the_end_alone(tmp_path, text):
  """What is done every 0 steps is done at the end."""
  train(tmp_path, "--data", text, "--steps", 2, "--eval-every", 0, "--save-every", 0)
  rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
  assert ["val_loss" in row for row in rows] == [False, True]
  assert (tmp_path / "checkpoint.safetensors").exists()
