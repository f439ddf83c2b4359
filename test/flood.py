"""Trains a small model under a flood of Ctrl-C: `python test/flood.py jitted|eager [SEED] [SIGNALS]`.

What an interrupted step leaves is what was there before it or what it makes, of all parameters and the optimizer's
state together; and when the flood is over, training goes on. The exit status tells.
"""

import os
import random
import signal
import sys
import threading
import time

import numpy as np

from mini import Tensor, jit, nn

how, seed, signals = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
Tensor.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)
x, y = Tensor.rand(8, 4).realize(), Tensor.rand(8, 2).realize()
hits = 0


def step():
  optimizer.zero_grad()
  loss = (model(x) - y).square().mean()
  loss.backward()
  optimizer.step()
  return loss


def attempt():
  for _ in range(1000):
    train()


def interrupt(number, frame):
  """KeyboardInterrupt within `attempt` alone: what checks is not what is tested."""
  global hits
  while frame is not None:
    if frame.f_code is attempt.__code__:
      hits += 1
      raise KeyboardInterrupt
    frame = frame.f_back


def flood():
  r = random.Random(seed)
  for _ in range(signals):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(r.choice([0, 0, 1e-5, 1e-3, 2e-2]) * r.random())


def state():
  """The number of steps made, and what they made: the same number, the same bits."""
  found = {name: t.detach().numpy() for name, t in optimizer.named_state().items()}
  made = {int(t) for name, t in found.items() if name.endswith("step")}
  assert len(made) == 1, f"the optimizer has made {made} steps"
  arrays = [p.detach().numpy() for p in model.parameters()] + [t for n, t in found.items() if "exp_avg" in n]
  return made.pop(), b"".join(a.tobytes() for a in arrays)


train = jit(step) if how == "jitted" else step
for _ in range(3):  # what is compiled while signals come is not done between two of them
  train()
shapes = [p.shape for p in model.parameters()]
known = dict([state()])  # number of steps -> what they make
signal.signal(signal.SIGINT, interrupt)
sender = threading.Thread(target=flood)
sender.start()
while sender.is_alive():
  try:
    attempt()
  except KeyboardInterrupt:
    pass
  assert [p.shape for p in model.parameters()] == shapes and all(p.requires_grad for p in model.parameters())
  made, what = state()
  assert known.setdefault(made, what) == what
sender.join()
assert all(np.isfinite(p.detach().numpy()).all() for p in model.parameters())
assert hits > signals // 50, hits
flooded = known
train()  # it goes on
assert state()[0] == max(flooded) + 1

print(f"{hits} interrupts, {len(flooded)} states")
