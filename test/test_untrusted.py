"""Text from a stranger: whatever it says, it reaches no memory but its own."""

import random
import re
import shutil
from types import SimpleNamespace

import hostile
import pytest
from fuzz_text import SMALL_BYTES, corpus, mutant, steps
from sanitized import found_wrong

from mini.engine import program
from mini.engine.device import Code, in_units
from mini.engine.launch import Launchable
from mini.engine.passes import kernels_of
from mini.ir import kernel as K
from mini.ir.uop import add, const, less, mul, range_, uop
from mini.render.cstyle import link
from mini.render.spelling import RenderError
from mini.text.parser import TextError, parse, parse_file
from mini.text.printer import text, uops_program
from mini.text.verifier import nbytes
from mini.types import dtypes
from runtime.base import DeviceError

# ---------------------------------------------------------------- which code runs

FILL = """kernel fill(%a: out i32[{n}]) {{
  %i = range {n}
  store %a[%i], {value}
  end over (%i)
}}"""


def test_kernels_whose_names_collide_are_two(monkeypatch):
  """A name has 40 bits of a digest: a pair that shares it takes seconds to find."""
  same = SimpleNamespace(sha1=lambda data: SimpleNamespace(hexdigest=lambda: "c0111510ff" * 4))
  monkeypatch.setattr(program, "hashlib", same)
  for n, value in [(4, 1), (8, 2), (4, 3)]:
    got, _ = Launchable(parse(FILL.format(n=n, value=value)), "CPU").run({}, 0)
    assert got["a"].tolist() == [value] * n


SCHEDULE = """schedule both(%x: out i32[4], %y: out i32[8]) {{
  {}
  {}
  run fill(%x)
  run more(%y)
}}"""


def test_kernels_of_one_source_whose_names_collide_are_two(monkeypatch):
  same = SimpleNamespace(sha1=lambda data: SimpleNamespace(hexdigest=lambda: "c0111510ff" * 4))
  monkeypatch.setattr(program, "hashlib", same)
  kernels = FILL.format(n=4, value=5), FILL.format(n=8, value=6).replace("fill", "more")
  got, _ = Launchable(parse(SCHEDULE.format(*kernels)), "CPU").run({}, 0)
  assert got["x"].tolist() == [5] * 4 and got["y"].tolist() == [6] * 8


def test_in_one_source_a_name_is_that_of_one_text():
  one = Code("f", "int f() { return g(); }", (("g", "int g() { return 1; }"),), "")
  other = one._replace(helpers=(("g", "int g() { return 2; }"),))
  third = Code("h", "int h() { return g(); }", one.helpers, "")
  assert one != other and in_units([one, other, third, one._replace(prelude="#define INT")], 1) == [
    [one, third],
    [other],
    [one._replace(prelude="#define INT")],
  ]
  with pytest.raises(RenderError, match="two functions of one source are called g"):
    link([(c.source, c.helpers) for c in (one, other)], "")


# ---------------------------------------------------------------- what is proved, as machines compute it

needs_gcc = pytest.mark.skipif(
  not shutil.which("gcc"), reason="no gcc found, whose sanitizers these tests take"
)

WRAPS = "is not proved to stay within 62 bits on the way"
UNWRITTEN = "it may read what its stage did not write"
KERNEL = """kernel k(%o: out f32[8], %x: in f32[8], %u: in u32[8], %b: in u64[8], %n: in i64[1]) {{
  %i = range 8
  %v = load %u[%i] : u32
  %w = load %b[%i] : u64
  %z = load %n[0] : i64
  {}
  end over (%i)
}}"""
FILLED = (
  "%m = stage 1.0 at [{}] over ({}) stack : f32{}; %c = load %m[{}] : f32; store %o[%i], %c"  # and read
)
# fmt: off
REFUSED = {  # lines, divided by semicolons
  "a guard that a product wraps": (WRAPS,
    "store %o[%v * 1099511627776 + %i], 1.0 if %v * 1099511627776 + %i < 8 && %v * 1099511627776 + %i >= 0"),
  "a guard that a sum wraps": (WRAPS, "store %o[%w + 9], 1.0 if %w + 9 < 8 && %w + 9 >= 0"),
  "a guard that a number wraps": (WRAPS, "store %o[%i], 1.0 if %i * 4611686018427387904 < 8"),
  "a difference that wraps": (WRAPS, "store %o[%w - %z], 1.0 if %w - %z < 8 && %w - %z >= 0"),
  "a negative that wraps": (WRAPS, "store %o[1 - %z], 1.0 if 1 - %z < 8 && 1 - %z >= 0"),
  "the least number, divided": (WRAPS, "store %o[%z // 7 % 8], 1.0"),
  "what is divided": (WRAPS, "store %o[(%w * 3) % 7], 1.0"),
  "a remainder in a guard": (WRAPS, "store %o[%i], 1.0 if (%w * 3) % 8 < 7"),
  "the least in a guard": (WRAPS, "store %o[min(%w * 4 - 1, 7)], 1.0 if min(%w * 4 - 1, 7) >= 0"),
  "an index that is a value": (WRAPS, "%c = cast %v * 4611686018427387904 : f32; store %o[%i], %c"),
  "a condition that is a value": (WRAPS, "%c = where %w * 2 < 8, 1.0, 2.0 : f32; store %o[%i], %c"),
  "a limit": (WRAPS,
    "%j = range 4 from idx(%z) to 4; %c = load %x[%j] : f32; %r = reduce.add %c over (%j) : f32; store %o[%i], %r"),
  "a stage of which one cell is written": (UNWRITTEN, "%s = range 1; " + FILLED.format("%s", "%s", [8], "%i")),
  "a stage with holes": (UNWRITTEN, "%s = range 4; " + FILLED.format("%s * 2", "%s", [8], "%i")),
  "a stage with a hole at 0": (UNWRITTEN, "%s = range 8; " + FILLED.format("%s + 1", "%s", [9], "%i")),
  "a stage that is filled twice over": (UNWRITTEN, "%s = range 8; " + FILLED.format("%s // 2", "%s", [8], "%i")),
  "a stage that has a diagonal": (UNWRITTEN, "%s = range 8; " + FILLED.format("%s, %s", "%s", [8, 8], "%i, 0")),
  "a stage at a place of data": (UNWRITTEN, "%s = range 8; " + FILLED.format("%v % 8", "%s", [8], "%i")),
  "a stage whose loop may not run": ("limits are for a loop over one axis",
    "%s = range 8; %t = range 2 from 0 to %i; " + FILLED.format("%s", "%s, %t", [8], "%i")),
  "lanes that fill the stack": ("bytes; at most 1048576",
    "%j = range 1024 unroll; %c = load %x[%j % 8] : f32; %c0 = add %c, 1.0 : f32; "
    + "; ".join(f"%c{n + 1} = add %c, %c{n} : f32" for n in range(300)) + "; %r = reduce.add %c300 over (%j) : f32; store %o[%i], %r"),
  "an inout of which two iterations share a cell": ("two iterations may share a cell",
    "%c = load %o[%i // 2] : f32; %d = add %c, 1.0 : f32; store %o[%i // 2], %d"),
  "an inout that is read, and added to": ("two iterations may share a cell",
    "%c = load %o[%i] : f32; store.add %o[%i], %c"),
}
# fmt: on


def written(lines):
  return KERNEL.format(lines.replace("; ", "\n  "))


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_proved_is_refused_where_it_stands(what):
  reason, lines = REFUSED[what]
  program = written(lines)
  with pytest.raises(TextError, match=re.escape(reason)) as e:
    parse(program.replace("%o: out", "%o: inout") if "inout" in what else program, "x.mini")
  assert re.match(r"x.mini:\d+:\d+: ", str(e.value))


ALLOWED = [  # at the bounds
  "store %o[%w], 1.0 if %w < 8 && %w >= 0",
  "store %o[0 - %z], 1.0 if 0 - %z >= 0 && 0 - %z < 8",
  "store %o[%v * 1073741823 - 1073741823], 1.0 if %v < 2 && %v >= 1",  # an index is computed where its guard holds
  "store %o[%i], 1.0 if %i * 576460752303423487 < 4611686018427387903",
  "%c = load %x[%i - 2] if %i + 2147483648 >= 2147483650 : f32; store %o[%i], %c",  # not in 32 bits
  "%c = load %x[%i - 2] if %i + 4294967296 >= 4294967298 && %i < 8 : f32; store %o[%i], %c",
  "%c = cast %w : bool; %d = load %x[%c] : f32; store %o[%i], %d",  # true in a vector is -1
  "%s = range 8; " + FILLED.format("%s // 4, %s % 4", "%s", [2, 4], "%i % 2, %i // 2"),
  "%s = range 3; %t = range 4; " + FILLED.format("min(%s * 4, 5) + %t", "%s, %t", [16], "%i"),
  "%s = range 8; " + FILLED.format("7 - %s", "%s", [9], "%i"),
  "%s = range 8 from 0 to %i + 1; " + FILLED.format("%s", "%s", [8], "%i"),
]


@needs_gcc
def test_what_is_allowed_at_the_bounds_stays_within_them():
  kinds = [(lines, kind) for lines in ALLOWED for kind in ("", " vec") if not kind or " from " not in lines]
  kernels = [parse(written(lines).replace("%i = range 8", f"%i = range 8{kind}")) for lines, kind in kinds]
  assert found_wrong(kernels) == {}


def planted():
  """Kernels that no verifier has seen, each with a hole."""
  o, u = K.param("o", (8,), dtypes.float32), K.param("u", (8,), dtypes.uint32)
  i, s, one = range_("i", 8), range_("s", 1), const(1.0, dtypes.float32)
  far = mul(uop("cast", dtypes.index, (K.load(u, (i,)),)), 1 << 40)
  stage = K.stage_at(one, (s,), (s,), "stack", (8,))
  stored = {
    "beyond": K.store(o, (add(i, 1),), one),
    "before": K.store(o, (add(i, -1),), one),
    "wraps": K.store(o, (i,), one, less(add(far, i), 8)),
    "unwritten": K.store(o, (i,), K.load(stage, (i,))),
    "beyond_stage": K.store(o, (i,), K.load(stage, (add(i, 1),))),
  }
  return [K.kernel(name, (store,), (i,)) for name, store in stored.items()]


@needs_gcc
def test_sanitizers_find_what_they_are_for():
  assert len(found_wrong(planted(), widths=(1,))) == len(planted())


@needs_gcc
def test_data_wraps_and_is_no_finding():
  """In vectors, too; and so do positions that are cast to a type which does not hold them."""
  loads = "%0 = load %b[%i] : {t}; %1 = load %c[%i] : {t}; %2 = {op} %0, %1 : {t}"
  bodies = [
    (t, loads.format(t=t, op=op)) for t in ("i8", "i16", "i32", "i64") for op in ("add", "mul", "max")
  ]
  bodies += [("i32", "%2 = cast idx(%i + 2147483640) : i32")]
  of = "kernel k(%a: out {t}[16], %b: in {t}[16], %c: in {t}[16]) {{; %i = range 16 vec; {body}; store %a[%i], %2; end over (%i); }}"
  sources = [of.format(t=t, body=body).replace("; ", "\n") for t, body in bodies]
  assert found_wrong([parse(source) for source in sources], seeds=2) == {}


@pytest.mark.full
def test_emulated_devices_find_what_they_are_for():
  found = [text(k) for k in planted() if k.arg.what != "unwritten"]
  assert len(hostile.wrong_emulated(planted(), "CUDA")) == len(found)


@needs_gcc
def test_hostile_kernels(request, seed):
  """Those that are accepted do nothing wrong in C."""
  first, full = seed % 10**9, request.config.option.full
  count = 400 if full else 40
  found, ran = hostile.wrong(range(first, first + count), (1, 8) if full else (8,))
  assert not found, "\n".join(found)
  assert ran > count // 5


@needs_gcc
def test_the_least_integer_beneath_a_lower_end_alone():
  """It has no negative, which the error of an index must not ask for either."""
  kernel = parse("""
    kernel k(%o: out f32[16], %d: in i64[16]) {
      %i = range 16 par
      %0 = load %d[%i] : i64
      %1 = cast %0     : f32
      store %o[%i], %1 if %0 >= 1
      end over (%i)
    }""")
  for dev in ("CL", "CUDA", "METAL"):
    assert hostile.wrong_emulated([kernel], dev) == []


@pytest.mark.full
@pytest.mark.parametrize("dev", ["CL", "CUDA", "METAL"])
def test_hostile_kernels_on_emulated_devices(dev, seed):
  first = seed % 10**9
  seeds = range(first, first + 100)
  kernels = [k for groups in (False, True) for k in hostile.accepted(seeds, groups).values()]
  assert not (found := hostile.wrong_emulated(kernels, dev)), "\n".join(found)


@needs_gcc
@pytest.mark.full
def test_mutants_of_the_golden_programs(seed):
  """Those that are accepted do nothing wrong in C."""
  sources, kernels = corpus(), []
  for n in range(20000):
    try:
      programs = parse_file(mutant(random.Random(seed + n), sources))
    except TextError:
      continue
    bodies = [k for p in programs if p.op in ("kernel", "schedule", "uops") for k in kernels_of(p)]
    kernels += [k for k in bodies if nbytes(k) <= SMALL_BYTES and steps(k) <= 1 << 16]
  kernels = list(dict.fromkeys(kernels))
  assert len(kernels) > 40
  wrong = found_wrong(kernels, seeds=2)
  assert not wrong, "\n".join(f"{why}\n{text(kernels[n])}" for n, why in wrong.items())


# ---------------------------------------------------------------- what nobody has written

PARTLY = """schedule partly(%y: out f32[4096]) {
  %t = arena 0 : f32[4096]
  kernel first(%a: out f32[4096]) {
    %i = range 1
    store %a[%i], 1.0
    end over (%i)
  }
  kernel all(%a: out f32[4096], %b: in f32[4096]) {
    %i = range 4096
    %0 = load %b[%i] : f32
    store %a[%i], %0
    end over (%i)
  }
  run first(%t)
  run all(%y, %t)
}"""


def test_temporaries_begin_as_zeros():
  """Memory of the heap holds what others left there."""
  Launchable(parse(FILL.format(n=4096, value=77)), "CPU").run({}, 0)
  got, _ = Launchable(parse(PARTLY), "CPU").run({}, 0)
  assert got["y"].tolist() == [1.0] + [0.0] * 4095


# ---------------------------------------------------------------- long and deep text, and what has no end

SUMMED = "%j = range 4; %c = load %x[%j] : f32; %r = reduce.add %c over (%j) : f32; store %o[%i], %r"


def test_uops_want_every_end():
  lines = text(uops_program(parse(written(SUMMED)))).split("\n")
  ends = [n for n, line in enumerate(lines) if line.split()[:1] == ["end"]]
  assert len(ends) == 3 and parse("\n".join(lines))
  for n in ends:
    with pytest.raises(TextError, match="has no end|is not the innermost open loop|uops end with"):
      parse("\n".join(lines[:n] + lines[n + 1 :]))


def chain(line, count):
  lines = "\n".join(line.format(n, n + 1) for n in range(count))
  return f"kernel k(%a: out i32[8], %b: in i32[8]) {{\n%i = range 8\n%0 = load %b[%i] : i32\n{lines}\nstore %a[%i], %{count}\nend over (%i)\n}}"


def test_long_text_takes_time_for_each_line():
  count = 2000
  for line in ("%{1} = add %{0}, %{0} : i32", "%{1} = load %b[%{0}] if %{0} >= 0 && %{0} < 8 : i32"):
    assert parse(chain(line, count)).op == "kernel"
  with pytest.raises(TextError, match="a kernel has at most 1024 ranges"):
    parse(
      chain("%r{0} = range 2\n%s{0} = add %{0}, 1 : i32\n%{1} = reduce.add %s{0} over (%r{0}) : i32", count)
    )


@pytest.mark.parametrize("way", ["({})", "min({}, 3)", "idx({})", "({}) // 3 + 1", "-({})"])
def test_deep_text_is_an_error_with_its_place(way):
  before, after = way.split("{}")
  made = before * 3000 + "%i" + after * 3000
  with pytest.raises(TextError, match=r"^x.mini:3:\d+: brackets are nested too deeply"):
    parse(f"kernel k(%a: out f32[8]) {{\n%i = range 8\nstore %a[{made}], 1.0\nend over (%i)\n}}", "x.mini")


# ---------------------------------------------------------------- stages that loops with limits fill

LIMITED = """kernel k({params}) {{
{ranges}
  %m = stage 1.0 at [{at}] over ({over}) stack : f32[{shape}]
  %c = load %m[{read}] : f32
  store %o[%i], %c
  end over ({outer})
}}"""


@pytest.mark.parametrize(
  "params, ranges, at, over, shape, read, outer",
  [  # 64 bits wrap: of all the data z * 2 + 2 would be 0..2
    ("%o: out f32[3], %n: in i64[3]", "%i = range 3; %s = range 8 from 0 to %i + 3; %z = load %n[%i] : i64", "%s", "%s",
     "8", "%z * 2 + 2] if (%z >= 0 && %z < 3", "%i"),
    # what data leave over of a division rises and falls with them
    ("%o: out f32[8], %n: in i32[1]", "%i = range 8; %z = load %n[0] : i32; %s = range 8 from 0 to (%z + 4) % 7 * 4", "%s", "%s",
     "8", "6", "%i"),
    # so does a difference of minima; and one of two data stays where it is while the other does not
    ("%o: out f32[8], %n: in i32[1]", "%i = range 8; %z = load %n[0] : i32; %s = range 8 from 0 to min(%z, 4) * 8 - min(%z, 1000)", "%s", "%s", "8", "6", "%i"),
    # cells between the steps are filled by a loop around the stage: one at a time
    ("%o: out f32[8, 8]", "%p = range 8; %i = range 8; %s = range 8 from 0 to %p + 1", "%s * 8 + %i", "%s", "64", "%i", "%p, %i"),
    # every second cell between the steps
    ("%o: out f32[8]", "%i = range 8; %s = range 8 from 0 to %i + 1; %t = range 4", "%s * 8 + %t * 2", "%s, %t", "64", "%i", "%i"),
    # the same range fills two axes: a diagonal
    ("%o: out f32[8]", "%i = range 8; %s = range 8 from 0 to %i + 1; %r = range 8 from 0 to %i + 1; %t = range 8",
     "%s * 8 + %t, %r * 8 + %t", "%s, %r, %t", "64, 64", "0, 1", "%i"),
  ],
)  # fmt: skip
def test_a_stage_is_filled_before_it_is_read(params, ranges, at, over, shape, read, outer):
  lines = "\n".join(f"  {line.strip()}" for line in ranges.split(";"))
  source = LIMITED.format(params=params, ranges=lines, at=at, over=over, shape=shape, read=read, outer=outer)
  source = source.replace("store %o[%i]", "store %o[%p, %i]" if "%p" in outer else "store %o[%i]")
  source = re.sub(r"load %m\[(.*)\] if \((.*)\]", r"load %m[\1] if \2", source)
  with pytest.raises(TextError, match="what its stage did not write|too many values|limits are for"):
    parse(source)


# ---------------------------------------------------------------- conditions on indices have types, too


@pytest.mark.parametrize(
  "line",
  [
    "lt %i, %i",
    "lt %i, idx(%v)",
    "lt %i",
    "lt %i, %i, %i",
    "lt",
    "and",
    "and %i < 3",
    "and %i < 3, %i < 4, %i < 5",
    "lt %i, f32(2.5)",
    "lt %i, %v",
  ],
)
def test_a_condition_has_the_operands_that_it_takes(line):
  source = f"""kernel k(%o: out f32[8], %n: in i32[8]) {{
  %i = range 8
  %v = load %n[%i] : i32
  %c = {line} : bool
  %d = where %c, 1.0, 2.0 : f32
  store %o[%i], %d
  end over (%i)
}}"""
  with pytest.raises(TextError):
    parse(source)
  for bad in ("cast %i, %v : f32", "cast %i, %i, %i : f32"):
    with pytest.raises(TextError, match="cast has 1 input"):
      parse(source.replace(f"{line} : bool", "lt %v, 3 : bool").replace("where %c, 1.0, 2.0 : f32", bad))


# ---------------------------------------------------------------- devices that a schedule names

TWO_DEVICES = """schedule s(%y: out f32[8] on "{first}", %z: out f32[8] on "CPU") {{
  %t = arena 0{of} : f32[8]
  kernel one(%a: out f32[8], %b: out f32[8]) {{
    %i = range 8
    store %a[%i], 1.0
    store %b[%i], 3.0
    end over (%i)
  }}
  kernel two(%a: out f32[8], %b: in f32[8]) {{
    %i = range 8
    %0 = load %b[%i] : f32
    store %a[%i], %0
    end over (%i)
  }}
  run one(%y, %t)
  run two(%z, %t)
}}"""


def test_memory_of_no_device_is_used_on_one():
  with pytest.raises(TextError, match="%t is on no device, and used on CPU and on CPU:1"):
    parse(TWO_DEVICES.format(first="CPU:1", of=""))
  with pytest.raises(TextError, match="run two: its memory is on CPU and on CPU:1"):
    parse(TWO_DEVICES.format(first="CPU:1", of=' on "CPU:1"'))
  assert parse(TWO_DEVICES.format(first="CPU", of=""))
  for name in ("cpu", "CPU:01", "CPU:٣", "CPU:0", ""):
    with pytest.raises(TextError):
      parse(TWO_DEVICES.format(first=name, of=' on "cpu"'))
  with pytest.raises(DeviceError, match="--dev=INTERP"):
    Launchable(parse(TWO_DEVICES.format(first="INTERP", of="").replace('"CPU"', '"INTERP"')), "CPU")
