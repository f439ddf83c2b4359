"""Trains GPT-2 on text: by default on the source of Python's standard library, as bytes.

  python examples/train_gpt2.py                                     # about three minutes on two cores
  python examples/train_gpt2.py --resume                            # goes on where it stopped
  python examples/train_gpt2.py --model gpt2 --tokenizer gpt2 --data FILE...

What it leaves in --out: checkpoint.safetensors, log.jsonl and loss.png. A checkpoint is written under another name and
renamed, so there is always a whole one, and with its settings, seed and position `--resume` repeats the run to the bit;
--data, which is a path, is given again. Ctrl-C and SIGTERM finish the step, save, and end with a line.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import signal
import sys
import zlib
from pathlib import Path

from checkpoints import NAME, SETTINGS, Said, locked, saved, with_settings
from checkpoints import read as read_metadata
from data import Missing, Windows, read, standard_library, tokenizer
from generate import generate
from gpt2 import GPT2, MODELS, load_weights, sized
from report import Log, Progress, at_least, mistakes_in_a_line, picture

from mini import Context, Device, Tensor, dtypes, jit, nn, no_grad
from mini.config import config

# batch and seq in tokens, lr at its peak, steps
DEFAULTS = {
  "pico": {"batch": 8, "seq": 64, "lr": 3e-3, "steps": 500},
  "nano": {"batch": 16, "seq": 128, "lr": 2e-3, "steps": 2400},
  "micro": {"batch": 8, "seq": 256, "lr": 1e-3, "steps": 3000},
  "gpt2": {"batch": 4, "seq": 256, "lr": 6e-4, "steps": 10000},
  "gpt2-medium": {"batch": 2, "seq": 256, "lr": 3e-4, "steps": 10000},
  "gpt2-large": {"batch": 1, "seq": 256, "lr": 2.5e-4, "steps": 10000},
  "gpt2-xl": {"batch": 1, "seq": 256, "lr": 2e-4, "steps": 10000},
}


def parse(argv: list[str]) -> tuple[argparse.Namespace, Said | None]:
  """(settings, what the checkpoint to resume says). A checkpoint's settings hold unless given anew."""
  p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("--model", default="nano", choices=tuple(MODELS))
  p.add_argument(
    "--data", nargs="+", metavar="FILE", help="text to train on (the standard library's sources)"
  )
  p.add_argument("--tokenizer", default="byte", metavar="T", help="byte, bpe:N, gpt2 or gpt2:FOLDER (byte)")
  p.add_argument("--weights", metavar="FILE", help="begin with published weights, as Hugging Face names them")
  p.add_argument(
    "--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of activations"
  )
  p.add_argument("--batch", type=at_least(1), help="windows a step")
  p.add_argument("--seq", type=at_least(1), help="tokens a window")
  p.add_argument("--accumulate", type=at_least(1), default=1, metavar="N", help="batches a step")
  p.add_argument("--steps", type=at_least(1))
  p.add_argument(
    "--decay-steps",
    type=at_least(1),
    help="where the cosine ends (the larger of --steps and the model's default)",
  )
  p.add_argument("--lr", type=at_least(0.0), help="after the warm-up")
  p.add_argument("--warmup", type=at_least(0), default=100, help="steps")
  p.add_argument("--decay", type=at_least(0.0), default=0.1, help="weight decay, of matrices")
  p.add_argument("--clip", type=at_least(0.0), default=1.0, help="norm to which gradients are clipped")
  p.add_argument("--dropout", type=at_least(0.0), default=0.0)
  p.add_argument("--seed", type=at_least(0), default=0)
  p.add_argument("--dev", help="CPU, INTERP, ... (what DEV says)")
  p.add_argument("--out", default="out", metavar="DIR")
  p.add_argument("--log", metavar="FILE", help="JSON lines (log.jsonl in --out)")
  p.add_argument("--save-every", type=at_least(0), default=100, metavar="STEPS", help="0: at the end")
  p.add_argument("--eval-every", type=at_least(0), default=100, metavar="STEPS", help="0: at the end")
  p.add_argument("--sample", type=at_least(0), default=300, metavar="TOKENS", help="at the end")
  p.add_argument("--prompt", default="\ndef ", help="of the sample")
  p.add_argument("--keep", type=at_least(1), default=1, metavar="N", help="checkpoints, the last N")
  p.add_argument(
    "--resume", nargs="?", const="", metavar="FILE", help="go on from a checkpoint (the one in --out)"
  )
  args = p.parse_args(argv)
  said = None
  if args.resume is not None:
    path = Path(args.resume or Path(args.out) / NAME)
    if not path.exists():
      p.exit(1, f"nothing to resume: {path} is not there\n")
    said = read_metadata(path)
    args = with_settings(p, path, said, argv)
    args.resume = path
  for name, value in DEFAULTS[args.model].items():
    if getattr(args, name) is None:
      setattr(args, name, value)
  args.decay_steps = args.decay_steps or max(args.steps, DEFAULTS[args.model]["steps"])
  if args.seq > MODELS[args.model].block:
    p.error(f"--seq {args.seq}: {args.model} sees {MODELS[args.model].block} tokens")
  return args, said


def is_due(step: int, every: int) -> bool:
  return every > 0 and (step + 1) % every == 0


def learning_rate(step: int, args: argparse.Namespace) -> float:
  """Up in a line, then down to a tenth along a cosine."""
  warm = min(1.0, (step + 1) / max(1, args.warmup))
  t = min(1.0, max(0.0, (step - args.warmup) / max(1, args.decay_steps - args.warmup)))
  return args.lr * warm * (0.55 + 0.45 * math.cos(math.pi * t))


class Training:
  """The model, its optimizer, and the two functions that are compiled whole."""

  def __init__(self, args: argparse.Namespace, vocabulary: int):
    Tensor.manual_seed(args.seed)
    self.model = model = GPT2(
      sized(args.model, vocabulary=vocabulary, dropout=args.dropout), getattr(dtypes, args.dtype)
    )
    if args.weights:
      load_weights(model, args.weights)
    self.optimizer = optimizer = nn.optim.AdamW(
      model.groups(args.decay), lr=args.lr, betas=(0.9, 0.95), eps=1e-8
    )
    Tensor.realize(*model.parameters())

    @jit
    def step(tokens: Tensor, targets: Tensor) -> Tensor:
      # tokens, targets: i32[accumulate, batch, seq]   ->   f32[], the mean loss before the step
      model.train()
      optimizer.zero_grad()
      total = Tensor(0.0)
      for n in range(args.accumulate):
        loss = model.loss(tokens[n], targets[n]) / args.accumulate
        loss.backward()
        total = total + loss.detach()
      nn.optim.clip_grad_norm(model.parameters(), args.clip)
      optimizer.step()
      return total

    @jit
    def validate(tokens: Tensor, targets: Tensor) -> Tensor:
      model.eval()
      with no_grad():
        return model.loss(tokens, targets)

    self.step, self.validate = step, validate

  def save(self, path: Path, said: dict[str, str]) -> None:
    """All that a run is, in one file; safe_save leaves it whole or as it was."""
    state = {**nn.state.get_state_dict(self.model), **nn.state.get_state_dict(self.optimizer, "optimizer")}
    nn.state.safe_save(state, path, {**said, "generator": json.dumps(Tensor.generator.get_state())})

  def load(self, path: Path, said: Said) -> None:
    load_weights(self.model, path)
    state = nn.state.safe_load(path)
    names = [*nn.state.get_state_dict(self.optimizer)]
    if missing := [name for name in names if f"optimizer.{name}" not in state]:
      raise nn.state.StateError(f"{path} is no checkpoint of train_gpt2.py: it has no optimizer.{missing[0]}")
    nn.state.load_state_dict(self.optimizer, {name: state[f"optimizer.{name}"] for name in names})
    Tensor.generator.set_state(said.generator)


def machine() -> str:
  """What a run repeats on, to the bit."""
  return f"{platform.machine()} {Device.DEFAULT} {config.THREADS or os.cpu_count()} threads"


def train(args: argparse.Namespace, said: Said | None) -> None:
  out = Path(args.out)
  text = read([Path(f) for f in args.data] if args.data else standard_library())
  words = said.tokenizer if said else tokenizer(args.tokenizer, text)
  tokens = words.encode(text)
  kept = max(len(tokens) // 20, args.seq + 1)  # the last twentieth is for validation
  windows = Windows(tokens[:-kept], args.seq, args.seed)
  held = Windows(tokens[-kept:], args.seq, 0)

  training = Training(args, words.size)
  first = position = 0
  about = {"machine": machine(), "data": f"{zlib.crc32(tokens):08x}"}
  if said:
    if said.data != about["data"] and not args.data:
      raise Missing(f"the checkpoint was trained on other data: --data is to be given again ({said.files!a})")
    training.load(args.resume, said)
    first, position = said.step, said.position
    for name, was, now in (("machine", said.machine, about["machine"]), ("data", said.data, about["data"])):
      if was != now:
        print(f"warning: the checkpoint is of another {name}: {was!a}, and this is {now}", file=sys.stderr)
  n = sum(p.numel() for p in training.model.parameters())
  print(
    f"{args.model}: {n:,} parameters, {len(tokens):,} tokens of {len(text):,} bytes, {machine()}",
    file=sys.stderr,
  )

  def save(step: int) -> bool:
    state = {
      "settings": json.dumps({name: getattr(args, name) for name in SETTINGS}),
      "tokenizer": json.dumps([words.kind, words.text()]),
      "step": str(step),
      "position": str(position),
      "files": " ".join(args.data or ()),
      "heads": str(training.model.config.heads),
    }
    return saved(out, step, args.keep, lambda path: training.save(path, {**about, **state}))

  stopped: list[int] = []  # Ctrl-C finishes the step and saves; a second one ends at once

  def stop_soon(number: int, _: object) -> None:
    stopped.append(number)
    signal.signal(signal.SIGINT, before)

  before = signal.signal(signal.SIGINT, stop_soon)
  signal.signal(signal.SIGTERM, stop_soon)
  log = Log(Path(args.log) if args.log else out / "log.jsonl", first)
  per_step = args.accumulate * args.batch
  progress = Progress(first, args.steps, per_step * args.seq)
  for step in range(first, args.steps):
    shape = (args.accumulate, args.batch, args.seq)
    x, y = (Tensor(a.reshape(shape)) for a in windows.at(position, per_step))
    training.optimizer.lr = learning_rate(step, args)
    row = {"step": step, "loss": training.step(x, y).item()}
    position += per_step
    stop = bool(stopped)  # looked at once: what comes later ends the next step
    last = stop or step + 1 == args.steps
    if last or is_due(step, args.eval_every):
      batches = [held.at(k * args.batch, args.batch) for k in range(8)]
      losses = [training.validate(Tensor(a), Tensor(b)).item() for a, b in batches]
      row["val_loss"] = sum(losses) / len(losses)
    log.add(row)
    progress.step(step, row["loss"], row.get("val_loss"))
    if (last or is_due(step, args.save_every)) and not save(step + 1) and last:
      sys.exit("the run is over, and its last steps are not saved")
    if stop:
      print(f"\nstopped; --resume goes on with step {step + 1}", file=sys.stderr)
      sys.exit(128 + stopped[0])

  print(picture(log.rows, out / "loss.png"), file=sys.stderr)
  print(f"checkpoint: {out / NAME}", file=sys.stderr)
  prompt = words.encode(args.prompt.encode()).tolist()
  sample = list(generate(training.model, prompt, args.sample, seed=args.seed)) if args.sample else []
  print(args.prompt + words.decode(sample).decode("utf-8", "replace"))


def main(argv: list[str] | None = None) -> None:
  with mistakes_in_a_line():
    args, said = parse(sys.argv[1:] if argv is None else argv)
    with Context(**({"DEV": args.dev} if args.dev else {})), locked(Path(args.out)):
      train(args, said)


if __name__ == "__main__":
  main()
