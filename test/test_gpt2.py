"""The GPT-2 of examples/ computes what PyTorch's does: logits, gradients, training, generation, published weights."""

import json

import gpt2
import gpt2_reference as ref
import numpy as np
import pytest
from generate import Generator, choose, generate

from mini import Context, Tensor, dtypes, jit, nn, stats

TOLERANCE = 1e-4


def small(w, heads=ref.HEADS):
  layers = sum(name.endswith("ln_1.weight") for name in w)
  vocabulary, width = w["wte.weight"].shape
  model = gpt2.GPT2(gpt2.Config(layers, heads, width, w["wpe.weight"].shape[0], vocabulary))
  nn.state.load_state_dict(model, {name: Tensor(a) for name, a in w.items()})
  return model


def check(w, tokens, targets, expected, heads=ref.HEADS):
  """Ours against the reference: logits and gradients of the first batch, and the losses of all."""
  model = small(w, heads)
  x, y = Tensor(tokens[0]), Tensor(targets[0])
  np.testing.assert_allclose(model(x).numpy(), expected["logits"], atol=TOLERANCE, rtol=TOLERANCE)
  model.loss(x, y).backward()
  for name, p in nn.state.get_state_dict(model).items():
    np.testing.assert_allclose(
      p.grad.numpy(), expected[f"grad.{name}"], atol=TOLERANCE, rtol=TOLERANCE, err_msg=name
    )

  optimizer = nn.optim.AdamW(model.groups(ref.DECAY), **ref.ADAMW)

  @jit
  def step(x, y):
    optimizer.zero_grad()
    loss = model.loss(x, y)
    loss.backward()
    nn.optim.clip_grad_norm(model.parameters(), 1.0)
    optimizer.step()
    return loss

  losses = [step(Tensor(x), Tensor(y)).item() for x, y in zip(tokens, targets)]
  np.testing.assert_allclose(losses, expected["losses"], atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.sample(2)
@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_as_in_the_fixture(device):
  f = np.load(ref.FIXTURE)
  w = {name[2:]: f[name] for name in f.files if name.startswith("w.")}
  with Context(DEV=device):
    check(w, f["tokens"].astype(np.int64), f["targets"].astype(np.int64), f)


def test_as_pytorch(rng):
  pytest.importorskip("torch")
  w = ref.weights(rng, layers=3, width=48, block=20, vocabulary=101)
  tokens, targets = ref.batches(rng, vocabulary=101, batch=2, seq=17)
  check(w, tokens, targets, ref.reference(w, tokens, targets, heads=3), heads=3)


def test_parameters_are_those_of_the_original():
  sizes = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
  }
  for name, count in sizes.items():
    c = gpt2.MODELS[name]
    block = 12 * c.width**2 + 13 * c.width
    assert c.layers * block + (c.vocabulary + c.block + 2) * c.width == count
  c = gpt2.Config(2, 2, 16, block=12, vocabulary=61)
  assert sum(p.numel() for p in gpt2.GPT2(c).parameters()) == 2 * (12 * 16**2 + 13 * 16) + (61 + 12 + 2) * 16


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_published_weights(tmp_path, rng, prefix):
  """A file of the layout that is published: causal masks in it, and with the prefix also the tied output."""
  w = ref.weights(rng)
  mask = np.tril(np.ones((1, 1, ref.BLOCK, ref.BLOCK), np.float32))
  extra = {f"h.{n}.attn.bias": mask for n in range(ref.LAYERS)}
  published = {prefix + name: Tensor(a) for name, a in {**w, **extra}.items()}
  if prefix:
    published["lm_head.weight"] = Tensor(w["wte.weight"])
  nn.state.safe_save(published, tmp_path / "model.safetensors")
  (tmp_path / "config.json").write_text(json.dumps({"n_head": ref.HEADS}))

  model = gpt2.load(tmp_path / "model.safetensors")
  assert model.config == gpt2.Config(ref.LAYERS, ref.HEADS, ref.WIDTH, ref.BLOCK, ref.VOCABULARY)
  tokens = Tensor(ref.batches(rng)[0][0])
  np.testing.assert_array_equal(model(tokens).numpy(), small(w)(tokens).numpy())

  gpt2.save(model, tmp_path / "again.safetensors")
  again = nn.state.safe_load(tmp_path / "again.safetensors")
  assert {name: a.shape for name, a in again.items()} == {name: a.shape for name, a in w.items()}


def test_a_cache_changes_nothing(rng):
  model = small(ref.weights(rng))
  prompt = [int(n) for n in rng.integers(0, ref.VOCABULARY, 4)]
  tokens = prompt + list(generate(model, prompt, 8, temperature=0))
  at_once = model(Tensor([tokens[:-1]])).numpy()[0].argmax(-1)
  assert at_once[len(prompt) - 1 :].tolist() == tokens[len(prompt) :]


@pytest.mark.sample(2)
@pytest.mark.parametrize("kept", [dtypes.float32, dtypes.bfloat16])
def test_a_step_copies_no_cache_and_widens_no_weights(rng, kept):
  config = gpt2.sized("nano", layers=2, vocabulary=1000)
  model = gpt2.GPT2(config).to(kept)
  generator = Generator(model)
  tokens = [int(n) for n in rng.integers(0, 1000, 60)]
  generator.logits(tokens[:2])
  before: list[int] = []
  for n in range(2, 60):
    generator.logits(tokens[n : n + 1])
    cache = generator.cache
    addresses = [t.uop.arg[0].memory.address for t in cache.layers]
    assert n < 4 or addresses == before
    before = addresses
    stats.reset()
  logits = generator.logits(tokens[:1])
  assert stats.bytes_allocated == 0 and stats.schedules == 0
  assert (
    stats.bytes_peak - stats.bytes_live < config.width * config.width
  )  # bytes: less than the smallest matrix
  want = model(Tensor([[*tokens, tokens[0]]])).numpy()[0, -1]
  np.testing.assert_allclose(logits, want, atol=1e-4 * np.abs(want).max())


def test_tokens_are_drawn_by_their_logits():
  logits, rng = np.array([0.0, 3.0, -1.0, 2.0], np.float32), np.random.default_rng(0)
  assert choose(logits, 0, 2, rng) == 1
  drawn = np.bincount([choose(logits, 1.0, 2, rng) for _ in range(2000)], minlength=4) / 2000
  p = np.exp([3.0, 2.0]) / np.exp([3.0, 2.0]).sum()
  np.testing.assert_allclose(drawn, [0, p[0], 0, p[1]], atol=0.03)
  drawn = np.bincount([choose(logits, 1.0, 0, rng) for _ in range(2000)], minlength=4) / 2000
  np.testing.assert_allclose(drawn, np.exp(logits) / np.exp(logits).sum(), atol=0.03)


def test_generation_goes_on_beyond_the_block(rng):
  tokens = list(generate(small(ref.weights(rng)), [1, 2, 3], 3 * ref.BLOCK, top_k=5))
  assert len(tokens) == 3 * ref.BLOCK and all(0 <= t < ref.VOCABULARY for t in tokens)
