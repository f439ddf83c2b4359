"""The verifier: each rule that a program may break, by a program that breaks it."""

import functools
import itertools
import random

import numpy as np
import pytest

from mini.codegen.recipe import RecipeError, apply
from mini.ir import graph as G
from mini.ir import kernel as K
from mini.ir.interp import run_kernel
from mini.ir.races import is_digit, is_injective
from mini.ir.uop import TRUE, add, both, const, div, less, mod, mul, range_, rsize, uop
from mini.text.parser import TextError, parse
from mini.text.printer import graph_program
from mini.text.verifier import VerifyError, nbytes, provable, verify
from mini.types import dtypes

F = dtypes.float32
I, J = range_("i", 8), range_("j", 4)
X, Y = K.param("x", (8,), F), K.param("y", (8,), F)


def kernel(*stores, over=(I,)):
  return K.kernel("f", stores, over)


def good():
  return K.load(X, (I,))


def vec(name, size):
  return range_(name, size, "vec")


def scatter(kind):
  """Adds into a cell that the data choose."""
  i, n = range_("i", 8, kind), K.param("n", (8,), dtypes.int32)
  index = uop("cast", dtypes.index, (K.load(n, (i,)),))
  return kernel(
    K.store(
      Y, (index,), K.load(X, (i,)), uop("and", dtypes.bool, (less(mul(index, -1), 1), less(index, 8))), "add"
    ),
    over=(i,),
  )


def stage(space="stack", size=8, index=None):
  s = range_("s", size)
  m = K.stage_at(
    K.load(K.param("w", (size,), F), (s,)), (s if index is None else index,), (s,), space, (size,)
  )
  return K.load(m, (const(0),))


def two_owners():
  return kernel(
    K.store(
      Y,
      (I,),
      K.reduce_over("add", uop("add", F, (good(), K.reduce_over("add", K.load(X, (J,)), (J,)))), (J,)),
    )
  )


def two_vectors():
  a, b = vec("a", 4), vec("b", 8)
  w = K.param("w", (4, 8), F)
  return kernel(K.store(w, (a, b), uop("exp2", F, (K.load(w, (a, b)),))), over=(a, b))


def shared_in_parallel():
  i = range_("i", 8, "par")
  s = range_("s", 8)
  m = K.stage_at(uop("add", F, (K.load(X, (s,)), K.load(X, (i,)))), (s,), (s,), "scratch", (8,))
  return kernel(K.store(Y, (i,), K.load(m, (i,))), over=(i,))


WRONG = {
  "nothing closes %j": lambda: kernel(K.store(Y, (J,), K.load(X, (J,)))),
  "has stores, and conditions on indices": lambda: kernel(good()),
  "%i names two ranges or parameters": lambda: kernel(K.store(K.param("i", (8,), F), (I,), good())),
  "'1' is no name": lambda: kernel(K.store(K.param("1", (8,), F), (I,), good())),
  "two owners": two_owners,
  "2 indices for memory of shape": lambda: kernel(K.store(Y, (I, I), good())),
  "store: %i + 1 is not proved": lambda: kernel(K.store(Y, (add(I, 1),), good())),
  "load: %i - 1 is not proved to be in 0..7 by %i < 7": lambda: kernel(
    K.store(Y, (I,), K.load(X, (add(I, -1),), less(I, 7)))
  ),
  "the value is f32, the memory i32": lambda: kernel(K.store(K.param("z", (8,), dtypes.int32), (I,), good())),
  "the guard is no condition": lambda: kernel(
    K.store(Y, (I,), K.load(X, (I,), uop("lt", dtypes.bool, (good(), good()))))
  ),
  "store knows add, mul, max": lambda: kernel(K.store(Y, (I,), good(), TRUE, "min")),
  "reduce knows add, mul, max": lambda: kernel(K.store(Y, (I,), K.reduce_over("min", K.load(X, (J,)), (J,)))),
  "a lane that its index lacks": lambda: kernel(
    K.store(Y, (I,), K.load(X, (vec("v", 8),))), over=(I, vec("v", 8))
  ),
  "depends on two vec ranges": two_vectors,
  "lanes; at most": lambda: kernel(
    K.store(
      K.param("z", (9999,), F),
      (vec("v", 9999),),
      uop("exp2", F, (K.load(K.param("w", (9999,), F), (vec("v", 9999),)),)),
    ),
    over=(vec("v", 9999),),
  ),
  "bytes of stack": lambda: kernel(K.store(Y, (I,), stage(size=1 << 21))),
  "stage: %s + 1 is not proved": lambda: kernel(K.store(Y, (I,), stage(index=add(range_("s", 8), 1)))),
  "threads share the memory of this stage": shared_in_parallel,
  "a scan runs along a range that is a plain loop": lambda: kernel(
    K.store(Y, (vec("v", 8),), K.scan_over("add", K.load(X, (vec("v", 8),)), vec("v", 8))),
    over=(vec("v", 8),),
  ),
  "%x is read at another index": lambda: kernel(K.store(X, (I,), K.load(X, (add(mul(I, -1), 7),)))),
  "two iterations may share a cell": lambda: kernel(K.store(X, (div(I, 2),), K.load(X, (div(I, 2),)))),
  "threads accumulate into the same cell": lambda: scatter("par"),
  "is no operation of a kernel": lambda: kernel(K.store(Y, (I,), uop("permute", F, (good(),), (0,)))),
  "sqrt does not take i32": lambda: kernel(
    K.store(
      K.param("z", (8,), dtypes.int32), (I,), uop("sqrt", dtypes.int32, (uop("cast", dtypes.int32, (I,)),))
    )
  ),
}


@pytest.mark.parametrize("reason", WRONG)
def test_a_wrong_kernel_is_refused(reason):
  with pytest.raises(VerifyError) as e:
    verify(WRONG[reason]())
  assert reason in str(e.value)


def test_right_kernels_pass():
  verify(kernel(K.store(Y, (I,), good())))
  verify(kernel(K.store(X, (I,), uop("exp2", F, (good(),)))))  # in place
  verify(scatter("loop"))
  rows = K.param("r", (2, 4), F)
  verify(
    kernel(K.store(rows, (div(I, 4), mod(I, 4)), uop("exp2", F, (K.load(rows, (div(I, 4), mod(I, 4))),))))
  )


def test_bounds_by_guards():
  shifted = add(I, -1)
  assert provable(I, 8, TRUE) and not provable(I, 7, TRUE) and not provable(shifted, 8, TRUE)
  assert provable(shifted, 8, less(mul(shifted, -1), 1)) and provable(I, 7, less(I, 7))
  assert provable(add(mul(I, 2), 1), 16, TRUE) and not provable(add(mul(I, 2), 2), 16, TRUE)
  wide = range_("wide", 144)  # a quotient says what the others may be
  second, last = less(mul(div(wide, 36), -1), 0), less(div(wide, 36), 3)
  assert provable(add(div(wide, 18), -2), 6, second) and not provable(add(div(wide, 18), -3), 6, second)
  assert (
    provable(wide, 108, last) and not provable(wide, 107, last) and provable(mod(div(wide, 3), 36), 36, last)
  )


def test_injective():
  assert is_injective((I, J), (8, 4), (I, J))
  assert is_injective((div(I, 4), mod(I, 4)), (2, 4), (I,))
  assert not is_injective((I,), (8,), (I, J)) and not is_injective((add(I, J),), (11,), (I, J))
  # ranges of one round, and what data say once for all rounds, change nothing
  one, cell, cells = range_("one", 1), K.param("n", (), dtypes.int64), K.param("n", (8,), dtypes.int64)
  assert is_injective((add(I, one), J), (8, 4), (I, one, J))
  assert is_injective((uop("cast", dtypes.index, (K.load(cell, ()),)), I, J), (9, 8, 4), (I, J))
  assert not is_injective((uop("cast", dtypes.index, (K.load(cells, (I,)),)), J), (9, 4), (I, J))


def test_wrong_graphs():
  x = G.buffer("x", (4,), F)
  for bad in [
    uop("reshape", F, (x,), (5,)),
    uop("expand", F, (x,), (4, 4)),
    uop("reduce", F, (x,), ("add", (1,))),
    uop("reduce", F, (x,), ("sub", (0,))),
    uop("add", F, (x,)),
    uop("add", dtypes.int32, (x, x)),
    uop("sin", dtypes.int32, (uop("cast", dtypes.int32, (x,)),)),
    uop("where", F, (x, x, x)),
    uop("bitcast", dtypes.int8, (x,)),
    uop("cat", F, (x, x), 1),
    uop("shard", F, (x,), (1, ("CPU", "CPU:1"))),
    uop("shard", F, (x,), (0, ("CPU", "CPU"))),
    uop("shard", F, (x,), (0, ("CPU", "CPU:1", "CPU:2", "CPU:3", "CPU:4"))),
    uop("load", F, (x,)),
  ]:
    with pytest.raises(VerifyError):
      verify(graph_program("f", (bad,)))


SCHEDULE = """schedule f(%x: in f32[8], %y: out f32[8]) {{
  %t0 = arena 0 : f32[8]
  %t1 = arena {at} : f32[8]
  kernel k(%a: out f32[8], %b: in f32[8]) {{
    %i = range 8
    %0 = load %b[%i] : f32
    store %a[%i], %0
    end over (%i)
  }}
  run k(%t0, %x)
  run k(%t1, {second})
  run k({third})
}}"""


def test_schedules():
  assert parse(SCHEDULE.format(at=32, second="%t0", third="%y, %t1"))
  for reason, at, second, third in [
    ("%t1 and %t0 share memory while both are in use", 16, "%t0", "%y, %t1"),
    (
      "%t1 and %t0 share memory while both are in use",
      '16 on "CPU"',
      "%t0",
      "%y, %t1",
    ),  # %t0 may be there, too
    ("%t1 is not aligned", 33, "%t0", "%y, %t1"),
    ("%y is read before it is written", 32, "%y", "%y, %t1"),
    ("%x is an input, and written", 32, "%t0", "%x, %t1"),
    ("it takes 2 different memories", 32, "%t0", "%y, %y"),
  ]:
    with pytest.raises(TextError, match=reason):
      parse(SCHEDULE.format(at=at, second=second, third=third))


def test_memory_is_compared_in_the_order_of_its_use():
  kernel = SCHEDULE.format(at=0, second="", third="").split("\n")[3:9]
  memory = ["  %t2 = arena 0 : f32[8]", "  %t0 = arena 32 : f32[8]", "  %t1 = arena 0 : f32[8]"]
  runs = ["  run k(%t1, %x)", "  run k(%t0, %t1)", "  run k(%t2, %t0)", "  run k(%y, %t2)"]
  head = "schedule f(%x: in f32[8], %y: out f32[8]) {"
  assert parse("\n".join([head, *memory, *kernel, *runs, "}"]))
  with pytest.raises(TextError, match="%t2 and %t1 share memory while both are in use"):
    parse(
      "\n".join([head, *memory, *kernel, runs[0], *runs[2:3], *runs[1:2], runs[3], "}"]).replace(
        "%t2, %t0", "%t2, %x"
      )
    )


def test_an_error_lists_what_there_is_if_it_is_little():
  kernel = SCHEDULE.format(at=0, second="", third="").split("\n")[3:9]
  for count, said in (
    (19, r"expected a kernel \(k0, .*, k18\), found nobody"),
    (20, "expected a kernel, found nobody"),
  ):
    kernels = [line.replace("kernel k(", f"kernel k{n}(") for n in range(count) for line in kernel]
    with pytest.raises(TextError, match=said):
      parse("\n".join(["schedule f(%x: in f32[8], %y: out f32[8]) {", *kernels, "  run nobody(%y, %x)", "}"]))


TWO_KERNELS = """schedule both(%x: in f32[50], %y: out f64[5]) {{
  %t = arena {at} : f32[50]
  kernel first(%a: out f32[50], %b: in f32[50]) {{
    %i = range 50
    %s = range 50
    %0 = load %b[%s] : f32
    %1 = stage %0 at [%s] over (%s) stack : f32[50]
    %2 = load %1[%i] : f32
    store %a[%i], %2
    end over (%i)
  }}
  kernel all(%a: out f64[5], %b: in f32[50]) {{
    %i = range 5
    %0 = load %b[%i] : f32
    %1 = cast %0 : f64
    store %a[%i], %1
    end over (%i)
  }}
  run first(%t, %x)
  run all(%y, %t)
}}"""


def test_the_bytes_of_a_program():
  """All memory that has a name, or as far as the arena goes, and what kernels keep on the stack."""
  for at, most in ((64, 440), (1000, 1200)):
    schedule = parse(TWO_KERNELS.format(at=at))
    assert nbytes(schedule) == most + 200
    assert [nbytes(k) for k in schedule.src] == [600, 240]


@pytest.mark.parametrize(
  "index, parts",
  [
    ("%x*64 + %j", True),
    ("%x*64 + %j + 7", True),
    ("%x*128 + %j*2", True),
    ("%x*64 + (63 - %j)", True),
    ("%j*64 + %x", False),  # a neighbour's
    ("%x*63 + %j", False),
    ("%x*64 + %j*2", False),
    ("%x*64 + %j // 2", False),
    ("%x*64 + %y*96 + %j", False),  # 32 divides both
    ("%x*128 + %y*64 + %j", True),
    ("(%x + %j)*64 + 63 - %j", False),  # they are, but %j leads to 64 rows
    ("%x", False),
  ],
)
def test_threads_add_to_columns_of_rows_that_data_choose(index, parts):
  """What is left of an index modulo what its data are multiplied with tells two columns apart."""
  source = f"""kernel k(%a: inout f32[100000], %b: in i64[10], %c: in i64[10], %v: in f32[10, 64]) {{
    %i = range 10
    %j = range 64
    %x = load %b[%i] : i64
    %y = load %c[%i] : i64
    %0 = load %v[%i, %j] : f32
    store.add %a[{index}], %0 if %x >= 0 && %x < 500 && %y >= 0 && %y < 500
    end over (%i, %j)
  }}"""
  k = parse(source)
  try:
    tuned = apply(apply(k, "order j i"), "par j") if parts else apply(k, "par j")
    assert parts
  except RecipeError:
    assert not parts
    return
  rng = np.random.default_rng(0)
  data = {"a": np.zeros(100000, np.float32), "v": rng.integers(0, 9, (10, 64)).astype(np.float32)}
  data |= {n: rng.integers(0, 4, 10) for n in "bc"}
  results = []
  for kernel in (k, tuned):
    memory = {n: x.copy() for n, x in data.items()}
    run_kernel(kernel, memory)
    results.append(memory["a"])
  assert np.array_equal(*results)


def adding_at(index):
  """A kernel that adds to cells that data and two ranges choose."""
  return parse(f"""kernel k(%a: inout f32[64000], %b: in i64[10], %v: in f32[10, 64, 8]) {{
    %i = range 10
    %j = range 64
    %k = range 8
    %x = load %b[%i] : i64
    %0 = load %v[%i, %j, %k] : f32
    store.add %a[{index}], %0 if %x >= 0 && %x < 60
    end over (%i, %j, %k)
  }}""")


@pytest.mark.parametrize(
  "index", ["%j + %k", "%x*128 + %j + %k", "%x*72 + %j*2 + %k*2", "%x*1024 + %j*7 + %k", "%j*8 + %k*8"]
)
@pytest.mark.parametrize(
  "steps",
  [["order j i k", "par j"], ["par j"], ["order k j i"], ["order i k j", "vec j"], ["collapse j k -> l"]],
)
def test_two_ranges_that_lead_to_one_cell_stay_in_their_order(index, steps):
  k = adding_at(index)
  with pytest.raises(RecipeError):
    for step in steps:
      k = apply(k, step)


@pytest.mark.parametrize("index", ["%x*512 + %j*8 + %k", "%x*1024 + %k*100 + %j", "%k*64 + %j"])
def test_digits_of_an_index_are_ranges_that_may_be_ordered(index):
  apply(apply(adding_at(index), "order k j i"), "par k")


def value_of(e, known):
  if e in known or e.op == "const":
    return known.get(e, e.arg)
  a, b = (value_of(s, known) for s in e.src)
  return {"add": a + b, "mul": a * b, "div": a // (b or 1), "mod": a % (b or 1)}[e.op]


def test_what_is_said_to_be_a_digit_tells_cells_apart(seed):
  """Random indices, all values of their ranges, some of their data."""
  rng, said = random.Random(seed), 0
  data = uop("cast", dtypes.index, (K.load(K.param("b", (9,), dtypes.int64), (const(0),)),))
  for _ in range(600):
    ranges = [range_(n, rng.choice([1, 2, 3, 4, 5, 8])) for n in "ijk"]
    index = const(rng.randint(-3, 9))
    for _ in range(rng.randint(1, 5)):
      term = rng.choice([*ranges, *ranges, data])
      if rng.random() < 0.3:
        term = rng.choice([div, mod])(add(term, rng.choice([const(2), *ranges])), rng.choice([2, 3, 4]))
      index = add(index, mul(term, rng.choice([1, 1, 2, 3, 4, 8, 12, 16, 32, -1, -8, 64])))
    for n, r in enumerate(ranges):
      if is_digit(index, r):
        said += 1
        cells = {}
        for at in itertools.product(*(range(rsize(x)) for x in ranges), (0, 1, 2, 5, -2)):
          cell = value_of(index, dict(zip([*ranges, data], at)))
          assert cells.setdefault(cell, at[n]) == at[n], (index, r)
  assert said > 100


def some_digit(rng, r):
  unit, count = rng.choice([1, 1, 2, 3, 6]), rng.choice([2, 3, 4, 6, 0])
  return mod(div(r, unit), count) if count else div(r, unit)


def test_what_is_proved_of_digits_holds(seed):
  """Of indices and guards of random digits of two ranges, for all their values; and that cells are apart."""
  rng, proved, apart = random.Random(seed), 0, 0
  for _ in range(400):
    ranges = [range_("i", rng.choice([12, 24, 36, 30])), range_("j", rng.choice([1, 2, 3]))]
    rounds = [dict(zip(ranges, at)) for at in itertools.product(*(range(rsize(r)) for r in ranges))]
    terms = [
      mul(some_digit(rng, rng.choice([ranges[0], *ranges])), rng.choice([1, 1, -1, 2, 3, 6])) for _ in "abcde"
    ]
    gates = [
      less(terms[0], rng.randint(-2, 3)),
      less(add(*terms[1:3]) if rng.random() < 0.3 else terms[1], rng.randint(-2, 3)),
    ]
    gates = [g for g in gates if g.op == "lt"]
    index = add(add(terms[3], terms[4]), rng.randint(-4, 1))
    gate = functools.reduce(both, gates, TRUE)
    if provable(index, 8, gate):
      proved += 1
      for known in rounds:
        if all(value_of(g.src[0], known) < g.src[1].arg for g in gates):
          assert 0 <= value_of(index, known) < 8, (index, gate)
    cut = [some_digit(rng, ranges[0]) for _ in "ab"] + ranges[1:]
    sizes = tuple(max(value_of(e, known) for known in rounds) + 1 for e in cut)
    if is_injective(tuple(cut), sizes, tuple(ranges)):
      apart += 1
      assert len({tuple(value_of(e, known) for e in cut) for known in rounds}) == len(rounds)
  assert proved > 20 and apart > 20
