"""examples/train_gpt2.py as a user runs it: it learns, resumes to the bit, and survives being killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gpt2
import numpy as np
import pytest
import train_gpt2
from checkpoints import locked, saved
from data import Bytes, Missing, Windows, restored, tokenizer
from report import Log
from train_gpt2 import parse

from mini import Tensor
from mini.nn.state import StateError, safe_save
from runtime.files import written

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
  resumed = train(parts, "--resume", "--steps", 12, "--data", text)
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


@pytest.mark.sample(4)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves(tmp_path, text, number):
  """It finishes the step and saves; what is resumed goes on with the next one. Meanwhile no other run gets the folder."""
  out, small = tmp_path / "out", ("--model", "pico", "--batch", 2, "--seq", 32, "--sample", 0)
  started = command("train_gpt2.py", "--out", out, *small, "--data", text, "--steps", 100_000)
  with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as process:
    wait_for_steps(process, out)
    if number == signal.SIGTERM:
      other = call("train_gpt2.py", "--out", out, *small, "--data", text, "--steps", 1)
      assert other.returncode and f"another run works there (process {process.pid} on" in other.stderr
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
  assert process.returncode == 128 + number and f"--resume goes on with step {len(losses(out))}" in said
  assert (out / "checkpoint.safetensors").exists() and "Traceback" not in said


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
  again = call("train_gpt2.py", "--out", out, "--resume", "--data", text, "--steps", len(before) + 2)
  assert again.returncode == 0, again.stderr
  after = losses(out)
  assert len(after) == len(before) + 2
  assert {step: after[step] for step in before} == before


# ---------------------------------------------------------------- a checkpoint of a stranger, and a folder

METADATA = {
  "settings": json.dumps({"model": "pico", "batch": 2, "lr": 0.5}),
  "tokenizer": '["byte", ""]',
  "step": "3",
  "position": "6",
  "generator": "[1, 2]",
  "machine": "x",
  "data": "0",
  "heads": "2",
}


def checkpoint(folder: Path, **metadata: str | None) -> Path:
  said = {name: text for name, text in {**METADATA, **metadata}.items() if text is not None}
  safe_save({"wte.weight": Tensor([[1.0]])}, folder / "checkpoint.safetensors", said)
  return folder / "checkpoint.safetensors"


def test_a_checkpoint_sets_numbers_and_no_paths(tmp_path):
  """What it says of other settings, such as where to write, is not heard."""
  hostile = {"log": "/etc/x", "data": ["/etc/passwd"], "weights": "/w", "out": "/", "prompt": "p", "dev": "CL",
             "keep": 9, "tokenizer": "gpt2:/", "resume": "/r", "nonsense": 1}  # fmt: skip
  mine = vars(train_gpt2.parse(["--out", str(tmp_path), "--steps", "7"])[0])
  settings = {"model": "pico", "batch": 3, "lr": 0.25, "seq": 16, "dropout": 0.5, "steps": 900, **hostile}
  path = checkpoint(tmp_path, settings=json.dumps(settings))
  args, said = train_gpt2.parse(["--out", str(tmp_path), "--resume", "--steps", "7"])
  assert (args.model, args.batch, args.lr, args.seq, args.dropout, args.steps) == (
    "pico",
    3,
    0.25,
    16,
    0.5,
    7,
  )
  assert {name: getattr(args, name) for name in hostile if name != "nonsense"} == {
    **{name: mine[name] for name in hostile if name != "nonsense"}, "resume": path
  }  # fmt: skip
  assert said is not None and (said.step, said.position, said.generator) == (3, 6, (1, 2))
  assert train_gpt2.parse(["--out", "elsewhere", "--resume", str(path)])[0].batch == 3


@pytest.mark.parametrize("name", [name for name in METADATA if name != "heads"])
def test_broken_metadata_are_a_state_error(tmp_path, name):
  bad = [
    None,
    "",
    "nonsense",
    "[" * 100_000,
    "9" * 5000,
    "-1",
    "[1, 2, 3]",
    '{"model": 3}',
    '{"batch": [1]}',
    "null",
  ]
  bad += ['{"batch": "-5"}', '{"batch": true}', '["byte", 1]', '["bpe", "{}"]', "[1, -2]", f"[1, {1 << 64}]"]
  for text in bad[:1] if name in ("machine", "data") else bad:
    checkpoint(tmp_path, **{name: text})
    try:
      train_gpt2.parse(["--out", str(tmp_path), "--resume"])
    except (StateError, Missing) as e:
      assert "checkpoint.safetensors" in str(e) or "tokenizers" in str(e)
    else:
      assert (name, text) in (("settings", "[1, 2, 3]"),) or pytest.fail(f"{name}={text} was taken")


def test_what_is_no_gpt2_is_a_state_error(tmp_path):
  wte, wpe = Tensor.zeros(4, 6), Tensor.zeros(3, 6)
  whole = {"wte.weight": wte, "wpe.weight": wpe, "h.0.x": wpe}
  for tensors, heads in (({}, "2"), (whole, "0"), (whole, "x"), (whole, "4"), ({**whole, "h.x": wte}, "2"),
                         ({**whole, "wte.weight": wte[0]}, "2"), ({**whole, "h.99999999.x": wte}, "2"),
                         (whole, "2")):  # fmt: skip
    safe_save(tensors, tmp_path / "m", {"heads": heads})
    with pytest.raises(StateError):
      gpt2.load(tmp_path / "m")


def test_checkpoints_rotate_and_a_failed_save_is_tried_again(tmp_path, capsys, monkeypatch):
  def save(path):
    with written(path) as f:
      f.write(b"%d" % step)

  def full(path, *_):
    raise OSError(28, "No space left on device", str(path))

  for step in (1, 2, 3):
    assert saved(tmp_path, step, 2, save)
  assert not saved(tmp_path, 4, 2, full)
  said = capsys.readouterr().err
  assert "step 4 is not saved" in said and "No space left" in said and "checkpoint.safetensors" in said
  assert (tmp_path / "checkpoint.safetensors").read_text() == "3"
  (tmp_path / "checkpoint-mine.safetensors").touch()
  monkeypatch.setattr(os, "link", full)  # a file system that has none
  step = 5
  assert saved(tmp_path, step, 2, save)
  assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
    "checkpoint.safetensors": "5", "checkpoint-00000003.safetensors": "3", "checkpoint-00000005.safetensors": "5",
    "checkpoint-mine.safetensors": "",
  }  # fmt: skip


def test_a_log_that_cannot_be_written_is_written_later(tmp_path, capsys):
  path = tmp_path / "folder" / "log.jsonl"
  path.parent.mkdir()
  log = Log(path)
  log.add({"step": 0, "loss": 3.0})
  shutil.rmtree(path.parent)
  log.add({"step": 1, "loss": 2.0})
  log.add({"step": 2, "loss": 1.0})
  assert capsys.readouterr().err.count("could not be written") == 1
  path.parent.mkdir()
  log.add({"step": 3, "loss": 0.0})
  assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 1, 2, 3]


def test_a_folder_has_one_run(tmp_path):
  with (
    locked(tmp_path / "out"),
    pytest.raises(Missing, match=f"another run works there .process {os.getpid()}"),
  ):
    locked(tmp_path / "out")
  locked(tmp_path / "out").close()


@pytest.mark.full
def test_a_full_disk(tmp_path, text):
  """No checkpoint fits: the one before stays, and resumes; the log has every step. A flipped bit in it is found."""
  out = tmp_path / "out"
  train(out, "--data", text, "--steps", 2)
  path = out / "checkpoint.safetensors"
  before = path.read_bytes()
  limited = ["bash", "-c", 'ulimit -f 380; exec "$@"', "-"]
  more = command("train_gpt2.py", "--out", out, "--resume", "--data", text, "--steps", 5, "--save-every", 1)
  done = subprocess.run([*limited, *more], capture_output=True, text=True, check=False)
  assert done.returncode == 1 and done.stderr.count("is not saved") == 3, done.stderr
  assert "its last steps are not saved" in done.stderr and "Traceback" not in done.stderr
  assert path.read_bytes() == before and len(losses(out)) == 5
  assert not [p.name for p in out.iterdir() if p.name.endswith(".part")]
  assert call("train_gpt2.py", "--out", out, "--resume", "--data", text, "--steps", 3).returncode == 0
  other = call("train_gpt2.py", "--out", out, "--resume", "--steps", 4)
  assert other.returncode and "--data is to be given again" in other.stderr
  bad = bytearray(path.read_bytes())
  bad[-1000] ^= 1
  path.write_bytes(bad)
  flipped = call("train_gpt2.py", "--out", out, "--resume", "--data", text, "--steps", 4)
  assert flipped.returncode == 1 and "are not those that were written" in flipped.stderr


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


@pytest.mark.full
def test_settings_that_make_no_sense_are_refused(capsys):
  for setting in ("--steps 0", "--batch 0", "--batch -1", "--seq 0", "--accumulate 0", "--eval-every -1",
                  "--save-every -2", "--warmup -1", "--lr nan", "--clip -1", "--seed -1", "--sample -1",
                  "--decay-steps 0", "--dropout -0.1"):  # fmt: skip
    with pytest.raises(SystemExit):
      parse(setting.split())
    assert f"argument {setting.split()[0]}: {setting.split()[1]} is not at least" in capsys.readouterr().err
  for setting in ("--tokens -1", "--top-k -1", "--temperature nan"):
    assert f"{setting.split()[1]} is not at least 0" in call("generate.py", *setting.split()).stderr


@pytest.mark.full
def test_at_the_end_alone(tmp_path, text):
  """What is done every 0 steps is done at the end."""
  train(tmp_path, "--data", text, "--steps", 2, "--eval-every", 0, "--save-every", 0)
  rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
  assert ["val_loss" in row for row in rows] == [False, True]
  assert (tmp_path / "checkpoint.safetensors").exists()
