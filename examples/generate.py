"""Samples text from a checkpoint of train_gpt2.py, or from published GPT-2 weights.

python examples/generate.py --prompt "def "
python examples/generate.py --weights gpt2/model.safetensors --prompt "The meaning of life is"
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from checkpoints import tokenizer_of
from data import Missing, tokenizer
from gpt2 import GPT2, INTEGERS, Cache, load
from report import at_least, mistakes_in_a_line

from mini import Context, Variable, dtypes, jit, nn, no_grad


def choose(logits: np.ndarray, temperature: float, top_k: int, rng: np.random.Generator) -> int:
  """A token drawn by its logits. logits: f[V]"""
  if temperature == 0:
    return int(logits.argmax())
  if 0 < top_k < len(logits):
    likely = np.argpartition(logits, -top_k)[-top_k:]
  else:
    likely = np.arange(len(logits))
  scaled = logits[likely].astype(np.float64) / temperature
  p = np.exp(scaled - scaled.max()).cumsum()
  return int(likely[np.searchsorted(p, rng.random() * p[-1], side="right")])


class Generator:
  """A model with a cache: tokens in, the logits of the next one out.

  How many tokens were seen is an argument of the step: it is captured once, and reads what there is of the cache.
  """

  def __init__(self, model: GPT2):
    model.eval()
    self.cache, self.seen = Cache(model.config, 1, model.dtype), 0
    self.most = Variable("seen", 1, model.config.block)
    self.step = jit(lambda tokens, seen: model.next(tokens, self.cache, seen)[0])

  def logits(self, tokens: list[int]) -> np.ndarray:
    """Of the token after these, which follow those of the calls before.   -> f32[V]"""
    self.seen += len(tokens)
    with no_grad():
      return self.step(np.array([tokens], np.int32), self.most.bind(self.seen)).numpy()

  def forget(self) -> None:
    """Begin anew."""
    self.seen = 0


def generate(model: GPT2, prompt: list[int], n: int, temperature=0.8, top_k=50, seed=0) -> Iterator[int]:
  """n tokens after the prompt, each from a pass over the one before it and a cache.

  When the model's block is full, it goes on from the later half of what it has seen.
  """
  block, rng = model.config.block, np.random.default_rng(seed)
  generator = Generator(model)
  seen = list(prompt)[-block:]
  fresh = seen
  for _ in range(n):
    fresh = [choose(generator.logits(fresh), temperature, top_k, rng)]
    yield fresh[0]
    seen += fresh
    if len(seen) > block:
      seen = fresh = seen[-block // 2 :]
      generator.forget()


def main(argv: list[str] | None = None) -> None:
  p = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
  p.add_argument(
    "--out", default="out", metavar="DIR", help="where train_gpt2.py left its checkpoint (%(default)s)"
  )
  p.add_argument(
    "--weights",
    metavar="FILE",
    help="instead: published weights, model.safetensors as Hugging Face names them",
  )
  p.add_argument(
    "--tokenizer", help="with --weights: byte, gpt2 or gpt2:FOLDER (gpt2's, in the folder of the weights)"
  )
  p.add_argument("--prompt", default="\n")
  p.add_argument("--tokens", type=at_least(0), default=200)
  p.add_argument(
    "--temperature", type=at_least(0.0), default=0.8, help="0 takes the likeliest token (%(default)s)"
  )
  p.add_argument(
    "--top-k", type=at_least(0), default=50, help="draw from the k likeliest; 0 is all (%(default)s)"
  )
  p.add_argument("--seed", type=at_least(0), default=0)
  types = ("float32", "bfloat16", "float16")
  p.add_argument("--dtype", default="float32", choices=types, help="of activations (%(default)s)")
  kept = (*types, *INTEGERS)
  p.add_argument("--keep", choices=kept, help="the type in which weights are in memory (that of --dtype)")
  p.add_argument("--dev", help="CPU, INTERP, ...")
  args = p.parse_args(argv)
  path = Path(args.weights or Path(args.out) / "checkpoint.safetensors")
  with mistakes_in_a_line(), Context(**({"DEV": args.dev} if args.dev else {})):
    if not path.exists():
      raise Missing(f"{path} is not there: run train_gpt2.py first, or give --weights FILE")
    if args.weights:
      words = tokenizer(args.tokenizer or f"gpt2:{path.parent}")
    else:
      words = tokenizer_of(path, nn.state.safe_load_metadata(path))
    keep = args.keep or args.dtype
    model = load(path, getattr(dtypes, args.dtype), keep if keep in INTEGERS else getattr(dtypes, keep))
    prompt = words.encode(args.prompt.encode()).tolist()
    start = time.perf_counter()
    tokens = list(generate(model, prompt or [0], args.tokens, args.temperature, args.top_k, args.seed))
    seconds = time.perf_counter() - start
  print(args.prompt + words.decode(tokens).decode("utf-8", "replace"))
  print(f"{args.tokens} tokens, {args.tokens / seconds:.0f} per second with compiling", file=sys.stderr)


if __name__ == "__main__":
  main()
