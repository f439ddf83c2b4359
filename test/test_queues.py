"""Launches in several queues: what must come first does, and no edge is there that another implies."""

import random

import pytest
import toy
from fuzz_graph import Maker

from mini.config import Context
from mini.engine.buffer import Buffer
from mini.engine.queues import Span, assign
from mini.engine.realize import Numbered
from mini.ir import graph as g
from mini.ir.graph import numel, shape
from mini.ir.uop import toposort, uop

# ---------------------------------------------------------------- assign, against brute force


def reached(edges):
  """For each launch all that it comes after."""
  found = []
  for mine in edges:
    found.append(set(mine).union(*(found[d] for d in mine)))
  return found


def given(placed):
  """The edges that queues and waits make."""
  edges, last = [], {}
  for n, (queue, waits) in enumerate(placed):
    edges.append({*waits, *([last[queue]] if queue in last else ())})
    last[queue] = n
  return edges


def random_spans(rng):
  launches = []
  for _ in range(rng.randrange(1, 25)):
    spans = []
    for _ in range(rng.randrange(1, 4)):
      start = rng.randrange(20)
      spans.append(Span(rng.randrange(3), start, start + rng.randrange(1, 10), rng.random() < 0.4))
    launches.append(spans)
  return launches


def conflict(a, b):
  return any(
    s.slot == t.slot and s.start < t.stop and t.start < s.stop and (s.writes or t.writes)
    for s in a
    for t in b
  )


@pytest.mark.parametrize("queues", [1, 2, 3, 4, 7])
def test_every_conflict_is_ordered_and_every_edge_is_needed(queues, seed):
  rng = random.Random(seed)
  for _ in range(60):
    launches = random_spans(rng)
    wanted = reached([{m for m in range(n) if conflict(launches[m], s)} for n, s in enumerate(launches)])
    placed = assign(launches, queues)
    assert {q for q, _ in placed} <= set(range(queues))
    assert all(w <= has for w, has in zip(wanted, reached(given(placed))))
    for n, (queue, waits) in enumerate(placed):
      assert all(d < n and placed[d][0] != queue for d in waits)
      for d in waits:
        fewer = [*placed[:n], (queue, tuple(w for w in waits if w != d)), *placed[n + 1 :]]
        assert not all(w <= has for w, has in zip(wanted, reached(given(fewer)))), "this wait is implied"


def test_what_has_nothing_in_common_overlaps():
  launches = [[Span(0, 0, 8, False), Span(1, 8 * n, 8 * n + 8, True)] for n in range(4)]
  assert assign(launches, 4) == [(0, ()), (1, ()), (2, ()), (3, ())]
  joined = [*launches, [Span(1, 0, 32, False)]]
  assert assign(joined, 4)[4] == (3, (0, 1, 2))
  again = [*joined, [Span(1, 0, 8, True)]]  # written over: after who read it, which is after who wrote it
  assert assign(again, 4)[5] == (3, ())


# ---------------------------------------------------------------- programs


DEVICES = ("TOY", "TOY:1")


def busy_graph(seed):
  """(roots, the data of leaves by name, a random generator):
  much that does not depend on each other, in many kernels."""
  m = Maker(seed)
  for _ in range(45):
    m.rng.shuffle(m.pool)
    m.step()
    if m.pool[-1].op != "buffer" and m.rng.random() < 0.8:
      m.pool[-1] = g.stage(m.pool[-1])
  inner = [u for u in m.pool if u.op != "buffer"]
  sums = [
    g.reshape(g.reduce(u, "add", tuple(range(len(shape(u))))), (1,))
    for u in m.rng.sample(inner, min(25, len(inner)))
  ]
  return [*m.rng.sample(inner, 4), g.cat(tuple(sums), 0)], m.data, m.rng


def on_two_devices(roots, data, rng):
  """The graph with random copies from one device to the other; leaves are where they are read."""
  memory, memo = {}, {}

  def at(u, device):
    if u.op != "buffer":
      node, home = memo[u]
      return node if home in ("", device) else g.copy(node, device)
    if (u, device) not in memory:
      memory[u, device] = g.buffer(Buffer.of(data[u.arg[0]], u.dtype, device), shape(u), u.dtype)
    return memory[u, device]

  for u in toposort(*roots):
    if u.op != "buffer":
      near = [d for s in u.src if s.op != "buffer" and (d := memo[s][1])]
      device = near[0] if near else rng.choice(DEVICES) if u.src else ""
      memo[u] = uop(u.op, u.dtype, tuple(at(s, device) for s in u.src), u.arg), device
      if device and rng.random() < 0.03:
        other = DEVICES[device == DEVICES[0]]
        memo[u] = g.copy(memo[u][0], other), other
  return [memo[u][0] for u in roots]


class Runnable:
  """A random graph over two devices with 4 queues each, as a program that runs again and again."""

  def __init__(self, seed):
    self.shims = [toy.opened(n).shim for n in range(2)]
    numbered = Numbered(on_two_devices(*busy_graph(seed)), lift=False)
    self.roots = list(dict.fromkeys(numbered.roots))
    with Context(NOOPT=True):
      self.program = numbered.program(self.roots)
    self.inputs = [u.arg[0] for u in numbered.leaves]

  def run(self, how):
    """The bytes of the results."""
    for shim in self.shims:
      shim.how, shim.launched = how, []
    p = self.program
    outputs = [Buffer(d, u.dtype, numel(u)) for d, u in zip(p.devices, self.roots)]
    p.run(self.inputs, [outputs[m] for m in p.same])
    return [outputs[m].bytes().tobytes() for m in p.same]


def check_graph(seed):
  r = Runnable(seed)
  want = r.run(toy.in_order)
  for shim in r.shims:
    for calls, handles in shim.launched:
      assert not toy.races(calls, handles), f"seed {seed}"
  for delays in range(2):
    assert r.run(toy.in_queues(f"{seed} {delays}")) == want, f"seed {seed}"
  return sum(len(call.waits) for shim in r.shims for calls, _ in shim.launched for call in calls)


@pytest.mark.full
def test_random_graphs_give_what_they_give_in_order(seed):
  """4 queues, two devices, random delays: bitwise the serial result."""
  waits = sum(check_graph(seed + n) for n in range(12))
  assert waits > 60  # there is something to go wrong


@pytest.mark.full
def test_more_random_graphs_give_what_they_give_in_order(seed):
  assert sum(check_graph(seed + 1000 + n) for n in range(150)) > 750


def without(calls, n, wait):
  """The calls, of which the n-th does not wait for this one."""
  calls = list(calls)
  calls[n] = calls[n]._replace(waits=tuple(w for w in calls[n].waits if w != wait))
  return calls


def dropped_edges(seed):
  """(edges, those without which results differ) of a random graph: without each of them there is a race."""
  r = Runnable(seed)
  want = r.run(toy.in_order)
  edges = differ = 0
  for shim in r.shims:
    for calls, handles in list(shim.launched):
      for n, wait in [(n, w) for n, call in enumerate(calls) for w in call.waits]:
        edges += 1
        fewer = without(calls, n, wait)
        assert toy.races(fewer, handles), f"seed {seed}: call {n} need not wait for {wait}"

        def how(these, memory, calls=calls, fewer=fewer, n=n):
          toy.as_early_as_allowed(n)(fewer, memory) if these is calls else toy.in_order(these, memory)

        try:
          differ += r.run(how) != want
        except (AssertionError, IndexError):  # an index that was not there yet
          differ += 1
  return edges, differ


@pytest.mark.full
def test_without_an_edge_something_goes_wrong(seed):
  found = [dropped_edges(seed + n) for n in range(5)]
  edges, differ = map(sum, zip(*found))
  assert edges > 20
  assert differ > edges / 2  # the others wrote what stood there, or what nobody reads
