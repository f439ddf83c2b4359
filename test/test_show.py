"""SHOW, DEBUG, PROFILE, CHECK: what a program prints of itself is a file that reads back, runs, and gives the same."""

import functools
import os
import re
import subprocess
import sys
from importlib import import_module
from math import prod
from pathlib import Path

import numpy as np
import pytest

import mini
from mini import Device, Tensor, jit, nn, stats
from mini import __main__ as command
from mini.config import Context
from mini.engine import limits, plan, profile, program
from mini.engine.cache import open_cache
from mini.engine.launch import Launchable, interface, interpret
from mini.engine.passes import kernels_of, passes, run_pass
from mini.engine.program import machine_of
from mini.engine.show import STAGES, CheckError
from mini.ir.uop import const, uop
from mini.text.parser import parse_file
from mini.text.printer import text
from mini.text.verifier import VerifyError
from mini.types import dtypes
from runtime import cpu

ROOT = Path(__file__).parent.parent
SCRIPT = """
import numpy as np
from mini import Tensor, jit
x = Tensor(np.linspace(-1, 1, 5 * 40, dtype=np.float32).reshape(5, 40))
w = Tensor(np.linspace(-1, 1, 40 * 30, dtype=np.float32).reshape(40, 30))
total = Tensor.zeros(30).realize()
@jit
def step(x):
  total.assign(total + (x * 2.5).sum(0))
  return total.max()
for _ in range(3):
  y = ((x @ w).relu() * 1.0).realize()
  step(y)
y.softmax(1).numpy()
"""


@pytest.fixture
def shown(capfd):
  """What a block prints to stderr."""
  capfd.readouterr()
  return lambda: capfd.readouterr().err


def run_script(code, **settings):
  found = subprocess.run(
    [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
    env={**os.environ, "PYTHONPATH": str(ROOT), **settings})  # fmt: skip
  assert found.returncode == 0, found.stderr
  return found.stderr


@pytest.mark.sample(2)
@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
def test_a_script_shows_a_file_that_runs(dev, tmp_path, capsys, monkeypatch):
  """Cached or not: the second time its kernels come from disk, and it prints the same."""
  settings = {"SHOW": ",".join(STAGES), "DEV": dev, "CACHE": str(tmp_path / "cache")}
  err = run_script(SCRIPT, **settings)
  programs = parse_file(err)
  assert [p.op for p in programs if p.op in ("graph", "source")] == ["graph", "source"] * 4
  assert {p.op for p in programs} == set(STAGES)
  assert all(parse_file(text(p)) == [p] for p in programs)
  assert run_script(SCRIPT, **settings) == err
  monkeypatch.setattr(Launchable, "fastest", lambda *_: 1.0)  # it repeats for 0.2 s
  path = tmp_path / "shown.mini"
  path.write_text(err)
  for args in ([], ["--test"], ["--test", "--dev=INTERP"]):
    assert command.main([str(path), *args]) == 0
  tested = [line for line in capsys.readouterr().out.splitlines() if line.endswith(("ok", "DIFFERS"))]
  assert len(tested) == 2 * len([p for p in programs if p.op != "source"])
  assert all(line.endswith("ok") for line in tested)


@pytest.mark.full
def test_everything_at_once_still_parses():
  err = run_script(SCRIPT, SHOW=",".join(STAGES), DEBUG="6", PROFILE="1", TRACE="1")
  assert {p.op for p in parse_file(err)} == set(STAGES)
  assert "# rule " in err and "GFLOP/s" in err and " launches" in err and "# g0: 1 kernel" in err


def test_each_stage_gives_the_same(shown):
  x = np.random.default_rng(0).standard_normal((6, 20)).astype(np.float32)
  with Context(SHOW=",".join(STAGES[:4])):
    got = Tensor(x).softmax(1).numpy()
  for p in parse_file(shown()):
    p = p.src[0] if p.op == "uops" else p
    names = interface(p)
    data = {m.name: x if m.where == "in" else np.zeros(m.shape, np.float32) for m in names}
    (out,) = interpret(p, data).values()
    np.testing.assert_allclose(out, got, rtol=1e-5)


# ---------------------------------------------------------------- the text that prints is the program that runs


def mlp_step(devices=()):
  """A training step: weights and the optimizer's state are updated in place, gradients lie in one row."""
  Tensor.manual_seed(1)
  model = nn.Sequential(
    nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 12), nn.GELU(), nn.Linear(12, 5)
  )
  x = Tensor(np.linspace(-1, 1, 96, dtype=np.float32).reshape(8, 12))
  if devices:
    model.to(devices)
    x = x.shard(devices, 0)
  optimizer = nn.optim.AdamW(model.parameters(), lr=1e-3)

  @jit
  def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss

  return lambda: step(x)


def function(f, *shapes):
  xs = [Tensor(np.linspace(-1, 1, prod(s), dtype=np.float32).reshape(s)).realize() for s in shapes]
  jitted = jit(f)
  return lambda: jitted(*xs)


PROGRAMS = {
  "softmax": lambda: function(lambda x: x.softmax(1), (6, 20)),
  "the same twice": lambda: function(lambda x: (x.exp(), x.exp() + 1, x.exp()), (4, 3)),
  "attention": lambda: function(lambda q: q.scaled_dot_product_attention(q, q), (2, 4, 24, 16)),
  "parts of a memory": lambda: function(lambda x, y: Tensor.cat(x.sin(), y.cumsum(0), x[:3]), (9, 4), (5, 4)),
  "convolutions": lambda: function(
    lambda x, w, v: x.conv2d(w, padding=1).relu().max_pool2d(2).conv2d(v), (2, 3, 12, 12), (8, 3, 3, 3), (4, 8, 3, 3)
  ),
  "scatter": lambda: function(
    lambda x: x.index_add(0, Tensor([1, 0, 1]), x[:3]).softmax(0), (6, 20)
  ),
  "a step": mlp_step,
  "a step of two devices": lambda: mlp_step(("CPU", "CPU:1")),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_shown_is_what_the_list_of_passes_makes(name, shown, monkeypatch):
  """Of its graph, byte for byte, at each stage; and nothing is scheduled to be shown."""
  call = PROGRAMS[name]()
  for _ in range(3):
    call()
  monkeypatch.setattr(plan, "schedule", None)
  with Context(SHOW="graph,schedule,kernel,source"):
    call()
  monkeypatch.undo()
  printed = {
    stage: [p for p in parsed if p.op == stage] for parsed in [parse_file(shown())] for stage in STAGES
  }
  table = passes(machine_of(Device["CPU"].shim.info))
  found = printed["graph"]
  for stage in ("simplify", "schedule"):
    found = run_pass(table[stage], found)
  assert [text(p) for p in found] == [text(p) for p in printed["schedule"]]
  if "devices" not in name:  # whose sources are those of each device
    found = run_pass(table["recipe"], found)
    assert [text(k) for p in found for k in kernels_of(p)] == [text(k) for k in printed["kernel"]]
    assert [text(p) for p in run_pass(table["source"], found)] == [text(p) for p in printed["source"]]


def test_a_program_is_shown_once_in_a_block(shown):
  a = Tensor([1.0, 2.0, 3.0])
  for _ in range(2):  # a new block shows it again, though it is known by then
    with Context(SHOW="graph"):
      for _ in range(3):
        (a + 1.0).realize()
    assert [p.op for p in parse_file(shown())] == ["graph"]
  (a + 1.0).realize()
  assert shown() == ""


def test_a_routine_is_shown_once_and_updates_in_place(shown):
  w = Tensor([1.0, 2.0]).realize()

  @jit
  def step(x):
    w.assign(w * x)

  with Context(SHOW="schedule,graph"):
    for _ in range(3):
      step(Tensor([2.0, 2.0]))
  g, s = parse_file(shown())
  assert g.op == "graph" and [m.where for m in s.arg.memory] == ["inout", "in"]


def test_a_routine_that_changes_nothing_is_shown(shown):
  """No kernel touches the state that it writes."""
  w = Tensor([1.0, 2.0]).realize()

  @jit
  def step(x):
    w[0:0] = 9.0
    return x

  with Context(SHOW="graph,schedule,kernel,uops,source"):
    assert step(Tensor([2.0])).tolist() == [2.0] and w.tolist() == [1.0, 2.0]
  _, s, *_ = parse_file(shown())
  assert s.op == "schedule" and [m.where for m in s.arg.memory] == ["inout"] and not s.src


def test_a_recipe_says_who_wrote_it(shown):
  """By which estimates, and with DEBUG=3 which steps were refused."""
  a, image, w = (Tensor(np.ones(s, np.float32)).realize() for s in ((48, 48), (1, 8, 16, 16), (8, 8, 3, 3)))
  both = jit(lambda a, image, w: (a @ a, a.softmax(1), image.conv2d(w)))
  whose = lambda: re.findall(r"^#   by (\w+) in mini/codegen/(\w+)\.py(.*)", shown(), re.MULTILINE)
  with Context(SHOW="kernel"):
    both(a, image, w)
  found = {name: (file, rest) for name, file, rest in whose()}
  assert {name: file for name, (file, _) in found.items()} == {
    "tile": "contraction", "stream": "stream", "windows": "convolution"}  # fmt: skip
  assert re.fullmatch(
    r": \w+ of \d+ by \d+, [\d,]+ cycles; else \w+ of \d+ by \d+, [\d,]+ cycles", found["tile"][1]
  )
  assert "vectors along" in found["windows"][1] and found["stream"][1] == ""
  with Context(SHOW="kernel"):
    (a + 1).realize()
  assert whose() in (
    [("even", "even", "")],
    [("stream", "stream", "")],
  )  # the latter where recipes were searched for
  with mini.recipes({"map_*": "par i"}), Context(SHOW="kernel"):
    (a + 2).realize()
  assert "#   by RECIPES" in shown()
  with Context(DEBUG=3):
    jit(lambda a: a.reshape(2, 24, 48).cumsum(1))(a)
  assert re.search(r"^#   refused: \w+ .*: .*", shown(), re.MULTILINE)


def test_recipes_can_be_used_again(shown, tmp_path):
  """The comment over a kernel is what --recipe takes, and what a kernel's head takes."""
  a, b = Tensor(np.ones((70, 20), np.float32)), Tensor(np.ones((20, 50), np.float32))
  with Context(SHOW="schedule,kernel"):
    (a @ b).realize()
  err = shown()
  schedule, tuned = parse_file(err)
  (recipe,) = re.findall(r"^# \S+: (.*;.*)$", err, re.MULTILINE)
  steps = ", ".join(f'"{s}"' for s in recipe.split("; "))
  plain = text(schedule.src[0])
  (again,) = parse_file(plain.replace(") {", f") recipe({steps}) {{", 1))
  assert again is tuned
  path = tmp_path / "k.mini"
  path.write_text(plain)
  assert command.main([str(path), f"--recipe={recipe}", "--test"]) == 0


def test_noopt_makes_a_kernel_of_each_operation():
  rng = np.random.default_rng(0)
  a, b = (Tensor(rng.standard_normal((30, 30)).astype(np.float32)).realize() for _ in range(2))

  def f():
    return ((a @ b) * 2.5 + a.sum()).exp()  # a sum of products is one operation

  def step():
    w = Tensor(b.numpy(), requires_grad=True)
    ((a @ w).gelu().softmax(1) @ w.T).layer_norm(30).square().mean().backward()
    return w.grad

  want, before = f().numpy(), stats.kernels
  with Context(NOOPT=1):
    np.testing.assert_allclose(f().numpy(), want, rtol=1e-4)
    assert stats.kernels - before == 5
    plain, between = step().numpy(), stats.kernels
    assert between - before > 40
  np.testing.assert_allclose(step().numpy(), plain, rtol=1e-3, atol=1e-5)
  assert stats.kernels - between < 20


def test_noopt_has_no_recipes(shown):
  a = Tensor(np.ones((64, 64), np.float32))
  with Context(NOOPT=1, SHOW="kernel"):
    plain = (a @ a).numpy()
  assert " vec" not in shown()
  with Context(SHOW="kernel"):
    np.testing.assert_allclose(plain, (a @ a).numpy())
  assert " vec" in shown()


@pytest.mark.parametrize("level, words", [
  (1, "kernels,"), (2, "GFLOP/s"), (3, "; vec jv; "), (4, "source g"), (5, "kernel rows_4_100"),
  (6, "uops rows_4_100")])  # fmt: skip
def test_debug_adds_to_what_the_levels_before_print(level, words, shown):
  a = Tensor(np.ones((4, 100), np.float32))
  for n in range(7):
    with Context(DEBUG=n):
      a.softmax(1).realize()
    err = shown()
    assert (words in err) == (n >= level), (n, err)
    parse_file(err)


def test_profile_sums_up_at_the_end():
  err = run_script(SCRIPT, PROFILE="1", LIMITS="gflops=100,gbs=10,us=1")
  assert re.search(r"^# .* % .* 3 x .* contract_5_30_.* GB/s .* % of \w+: 1", err, re.MULTILINE)
  for row in ("capture a jitted function", "schedule", "launch", "download", "the program's own Python"):
    assert row in err
  assert re.search(r"^# the slowest kernel, \w+: \d+ % of (compute|memory|latency): ", err.splitlines()[-1])
  assert parse_file(err) == []


def test_profile_adds_up_to_the_wall_time():
  """All of it, with 5 % to spare; and a jitted step has nothing in it that is no kernel and has no row."""
  err = run_script("""
import sys, time
from mini import Tensor, jit
from mini.engine import profile
w = Tensor.rand(700, 700).realize()
@jit
def step(x):
  for _ in range(8):
    x = (x @ w).softmax(1)
  return x
for round in range(8):
  profile.reset()
  start = time.perf_counter()
  for _ in range(4):
    w = step(w)
  wall, rows = time.perf_counter() - start, profile.rows()
  total = sum(r.sum.seconds for r in rows)
  named = total - next(r.sum.seconds for r in rows if r.what == profile.PYTHON)
  if round > 1 and 0.95 < total / wall < 1.05 and 0.95 < named / wall < 1.01:
    sys.exit()
sys.exit(f"{wall} {total} {named}")
""", PROFILE="1", LIMITS="gflops=100,gbs=10,us=1")  # fmt: skip
  assert "contract_700_700" in err


def test_sections_name_functions_where_they_are_defined():
  """One that a class inherits would become its own: the reference, and whoever lists methods, would see another class."""
  for _, module, name in profile.SECTIONS:
    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, import_module(module))
    assert last in vars(owner), name


def test_a_report_begins_anew(capsys):
  """A program that reports twice sees each kernel once."""
  profile.reset()
  with Context(PROFILE=1):
    (Tensor.ones(3) + Tensor.ones(3).realize()).realize()
    profile.report()
    assert "map_" in capsys.readouterr().err  # of 3, or of n elements: as other tests have left it
    profile.report()
  assert capsys.readouterr().err == ""


def test_the_limits_of_a_machine_are_measured_once(tmp_path):
  shim = cpu.open(cache=open_cache(str(tmp_path / "cache")), threads=2)
  found = limits.of(shim)
  assert 1 < found.gflops < 1e5 and 0.1 < found.gbs < 1e4 and 0.01 < found.us < 1e5
  again = cpu.open(cache=open_cache(str(tmp_path / "cache")), threads=2)
  assert limits.of(again) == found
  with Context(LIMITS="gflops=50"):
    assert limits.of(again) == found._replace(gflops=50)
  share, words = limits.Limits(100, 10, 1).nearest(1e-3, 50e6, 1e6)
  assert share == 0.5 and words == "50 % of compute: 100 GFLOP/s"
  assert "memory: 10 GB/s" in limits.Limits(100, 10, 1).nearest(1e-3, 1e6, 1e6)[1]
  assert "latency: 1.0 us" in limits.Limits(100, 10, 1).nearest(2e-6, 1e3, 1e3)[1]


# ---------------------------------------------------------------- CHECK


@pytest.mark.parametrize("dev", ["CPU", "INTERP"])
def test_check_names_the_kernel_that_makes_a_nan(dev):
  with Context(DEV=dev, CHECK=1):
    x = Tensor([1.0, -1.0, 4.0])
    with pytest.raises(
      CheckError,
      match="sqrt made NaNs" if dev == "INTERP" else r"kernel map_3_\w+ wrote 1 NaNs to out0.*element 1",
    ):
      x.sqrt().realize()
    assert np.isnan(Tensor([1.0, float("nan")]).sqrt().numpy()).tolist() == [False, True]  # it came in
    assert x.relu().sqrt().tolist() == [1.0, 0.0, 2.0]


def test_check_changes_no_result():
  """Temporaries, several outputs, cat (kernels that write parts of one memory), updates in place."""
  rng = np.random.default_rng(0)
  a = Tensor(rng.standard_normal((60, 80)).astype(np.float32))
  w = Tensor.ones(60).realize()

  @jit
  def step(x):
    y = x.softmax(1) @ x.T
    w.assign(w + y.sum(1))
    return Tensor.cat(y.amax(1), w * 2.0), y.mean()

  plain = [t.numpy() for t in step(a)]
  w.assign(Tensor.ones(60)).realize()
  with Context(CHECK=1):
    checked = [t.numpy() for t in step(a)]
  for p, q in zip(plain, checked):
    np.testing.assert_array_equal(p, q)


def test_check_verifies_between_passes(monkeypatch):
  def wrong(outputs):
    return [uop("add", dtypes.float32, (u, const(True, dtypes.bool))) for u in outputs]

  monkeypatch.setattr(program, "simplify", wrong)
  x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0])
  with Context(CHECK=1), pytest.raises(VerifyError, match="after simplify: add: inputs are f32, bool"):
    (x * 3.0).realize()


# ---------------------------------------------------------------- files of stages


EDITABLE = """
import numpy as np
from mini import Tensor, jit
x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
w = Tensor(np.ones(4, np.float32)).realize()
@jit
def step(x):
  w.assign(w * 0.5)
  return (x * w).sum(1)
print([step(x).tolist() for _ in range(3)][-1], (x + 1.25).tolist()[0])
"""


def test_stages_are_written_to_files_and_taken_from_there(tmp_path):
  """Schedules by their graph, kernels by their name; what does not fit says where it stands."""
  folder = tmp_path / "all.stages"  # a name with a dot

  def printed(**settings):
    found = subprocess.run(
      [sys.executable, "-c", EDITABLE], capture_output=True, text=True, timeout=120, check=False,
      env={**os.environ, "PYTHONPATH": str(ROOT), "CACHE": str(tmp_path / "cache"), **settings})  # fmt: skip
    return found.stdout.strip(), found.stderr

  plain, err = printed(SHOW=f"graph,schedule,kernel:{folder}")
  assert plain == "[0.75, 2.75, 4.75] [1.25, 2.25, 3.25, 4.25]" and not err
  names = sorted(os.listdir(folder))
  assert len(names) == 6 and len({re.sub(r"\w+\.mini$", "", n) for n in names}) == 2
  assert printed(EDIT=str(folder)) == (plain, "")
  paths = {
    stage: [folder / n for n in names if n.endswith(f".{stage}.mini")] for stage in ("schedule", "kernel")
  }
  for path in paths["kernel"]:
    path.rename(tmp_path / path.name)
  step, alone = paths["schedule"]  # g0-CPU-..., g1-CPU-...
  step.write_text(step.read_text().replace("0.5", "1.0"))
  assert printed(EDIT=str(folder))[0] == "[6.0, 22.0, 38.0] [1.25, 2.25, 3.25, 4.25]"
  step.unlink()
  for path in paths["kernel"]:
    (tmp_path / path.name).rename(path)
  path = paths["kernel"][1]
  path.write_text(re.sub(r"add (%\d+), (%\d+)", r"mul \1, \2", path.read_text()))
  assert printed(EDIT=str(folder))[0].endswith("[0.0, 1.25, 2.5, 3.75]")
  for change, message in (
    (("[%i, %j]", "[%i, %j + 1]"), rf"{path.name}:\d+:\d+: .*not proved"),
    (("f32[3, 4]", "f32[4, 4]"), f"{path.name}: map_.* takes other memory"),
    (("store", "stare"), rf"{path.name}:\d+:\d+"),
  ):
    was = path.read_text()
    path.write_text(was.replace(*change))
    assert re.search(message, err := printed(EDIT=str(folder))[1]), err
    path.write_text(was)
  alone.write_text(alone.read_text().replace("%in0", "%in7"))
  assert re.search(f"{alone.name}: .* differs in %in0, %in7", printed(EDIT=str(folder))[1])
  both = alone.read_text()
  alone.write_text(both + "\n" + both)
  assert f"{alone.name} holds schedule, schedule; one schedule would fit" in printed(EDIT=str(folder))[1]
  alone.write_text("")
  assert f"{alone.name} holds nothing" in printed(EDIT=str(folder))[1]
  alone.unlink()
  again = folder / "g7-CPU-0123456789.kernel.mini"
  again.write_text(was.replace("mul", "add"))
  assert f"{path.name} and {again}: two texts of one kernel, map_" in printed(EDIT=str(folder))[1]
  again.write_text("kernl")
  assert f"{again}:1:1: expected" in printed(EDIT=str(folder))[1]
  again.write_text(re.sub(r"kernel \w+", "kernel other", was))
  assert printed(EDIT=str(folder))[1] == f"EDIT: no program that ran takes {again}: kernel other\n"
  assert printed(EDIT=str(folder), DEV="INTERP")[1].count("no program that ran takes") == 4
  again.rename(folder / "mine.mini")
  assert "mine.mini: of which program is it?" in printed(EDIT=str(folder))[1]


def test_files_of_a_program_on_two_devices_are_those_of_its_kernels(tmp_path):
  """Its schedule is as it was made, and another one is refused; the other kind of device has kernels of its own."""
  code = """
import numpy as np
from mini import Tensor
x = Tensor(np.arange(8, dtype=np.float32).reshape(4, 2)).shard(("CPU", "CPU:1"), 0)
print((x * 3 + 1.25).sum(0).tolist(), (Tensor([1.0], device="CPU") * 5).tolist(), (Tensor([1.0], device="CUDA") * 5).tolist())
"""

  def printed(**settings):
    env = {
      **os.environ,
      "PYTHONPATH": str(ROOT),
      "CACHE": str(tmp_path / "cache"),
      "EMULATE": "1",
      **settings,
    }
    found = subprocess.run(
      [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=env
    )
    return found.stdout.strip(), found.stderr

  folder = tmp_path / "stages"
  plain = printed(SHOW=f"schedule,kernel:{folder}")[0]
  assert plain == "[41.0, 53.0] [5.0] [5.0]" and printed(EDIT=str(folder)) == (plain, "")
  shared, host, gpu = (next(folder.glob(f"g{n}-*.schedule.mini")) for n in range(3))
  shared.write_text(shared.read_text().replace(" mul ", " add "))
  assert "a schedule over several devices runs as it was made" in printed(EDIT=str(folder))[1]
  for path in (shared, host, gpu):
    path.unlink()
  kernel = next(folder.glob("g2-CUDA-*.kernel.mini"))
  kernel.write_text(kernel.read_text().replace(" mul ", " add "))
  assert printed(EDIT=str(folder)) == ("[41.0, 53.0] [5.0] [6.0]", "")
  assert "a folder that SHOW" in printed(EDIT=str(tmp_path / "nothing"))[1]
  assert "path of a folder" in printed(SHOW="graph:")[1]
