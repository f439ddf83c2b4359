"""Recipes for devices with groups of threads: each is verified, means what the kernel means, and is of the family that
its shape asks for. What the rendered sources compute is tested by the emulation (test_local.py, test_emulate.py)."""

import golden_sources as golden
import numpy as np
import pytest
from fuzz_graph import program as random_program
from fuzz_graph import scheduled as random_kernels

from mini import Tensor
from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.gpu import beneath
from mini.codegen.recipe import RecipeError, apply
from mini.codegen.threads import threads
from mini.engine.launch import interface, interpret, random_array
from mini.engine.plan import nameless, scheduled
from mini.engine.realize import Numbered
from mini.ir.kernel import load, param
from mini.ir.rules import simplify
from mini.ir.uop import range_, uop
from mini.render import render_for
from mini.text.parser import parse
from mini.text.printer import graph_program, text
from mini.text.verifier import verify
from mini.types import dtypes

MACHINE = Machine(lanes=4, kind="gpu", group=1024, shared_bytes=48 << 10, units=4)


def zeros(*shape):
  return Tensor(np.zeros(shape, np.float32))


def tuned(expression, gpu=True):
  """[(kernel, the same with its recipe, the recipe)] of a tensor expression. gpu: is it scheduled for one, too?"""
  graph = graph_program("g", tuple(simplify(Numbered([expression.uop]).roots)))
  kernels = [nameless(k).kernel for k in scheduled(graph, gpu).kernels]
  return [(k, *write_recipe(k, MACHINE)) for k in kernels]


def check(kernel, with_recipe):
  verify(with_recipe)
  assert parse(text(with_recipe)) is with_recipe
  rng = np.random.default_rng(0)
  data = {m.name: random_array(m, interface(kernel), rng) for m in interface(kernel)}
  want, got = interpret(kernel, data), interpret(with_recipe, data)
  for name, x in want.items():
    np.testing.assert_allclose(got[name], x, rtol=2e-5, atol=1e-4)


CASES = {
  "matmul": (lambda: zeros(128, 64) @ zeros(64, 192), 256),
  "matmul, nothing divides": (lambda: zeros(130, 50) @ zeros(50, 197) + 1, 256),
  "matmul, transposed": (lambda: zeros(256, 40).T @ zeros(256, 300), 128),
  "matmul, batched": (lambda: zeros(4, 100, 40) @ zeros(4, 40, 300), 256),
  "matmul, a short sum": (lambda: zeros(64, 3) @ zeros(3, 64), 128),
  "too small for a block": (lambda: zeros(10, 4) @ zeros(4, 5), 0),
  "softmax": (lambda: zeros(64, 1000).softmax(), 256),
  "a sum of means": (lambda: (zeros(5, 300) - zeros(5, 300).mean(1, keepdim=True)).amax(1), 128),
  "rows": (lambda: zeros(300, 257).sum(1), 128),
  "columns": (lambda: zeros(64, 768).sum(0), 0),
  "a chain": (lambda: zeros(1000) * 2 + 1, 0),
  "a transpose": (lambda: zeros(37, 65).T + zeros(65, 37), 0),
  "a running sum": (lambda: zeros(37, 65).cumsum(1), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_recipe(name):
  make, group = CASES[name]
  found = tuned(make())
  for kernel, with_recipe, recipe in found:
    check(kernel, with_recipe)
    assert "par" in recipe
  assert max(threads(with_recipe) for _, with_recipe, _ in found) == group


def test_blocks_pass_through_shared_memory():
  ((_, _, recipe),) = tuned(zeros(128, 64) @ zeros(64, 192))
  assert recipe.count("shared") == 2
  ((_, _, recipe),) = tuned(zeros(130, 50) @ zeros(50, 197))
  assert recipe.count("shared") == 2 and "peel" in recipe and "overlap" in recipe


def test_rows_are_kept_in_the_group_or_computed_again():
  ((kernel, with_recipe, recipe),) = tuned(zeros(3, 1000).softmax())
  assert "shared" in recipe and "stack" not in text(with_recipe)
  ((kernel, with_recipe, recipe),) = tuned(zeros(3, 20000).softmax(), gpu=False)
  assert "inline" in recipe and "stage" not in text(with_recipe)
  check(kernel, with_recipe)


def test_steps_on_stages_that_do_not_apply():
  ((kernel, _, _),) = tuned(zeros(3, 1000).softmax())
  for step, why in (
    ("move 5 shared", "%5 is no stage"),
    ("move 6 registers", "not in registers"),
    ("inline 0", "%0 is no stage"),
    ("move 6 shared\nsplit s 256 -> so, sl overlap\nlocal sl\nmove 6 stack", "share no stack"),
    ("split s 250 -> so, sl\ninline 6", "order of its ranges"),
  ):
    with pytest.raises(RecipeError, match=why):
      apply(kernel, step)


def test_columns_are_cut_until_there_are_threads_enough():
  assert len(tuned(zeros(4096, 256).sum(0))) == 2 and len(tuned(zeros(64, 256).sum(0))) == 1


def test_sums_of_sums_are_peeled_each_by_itself():
  """The rest of the outer one holds a copy of the inner one, and of its range, which is peeled next."""
  kernel = parse("""
    kernel k(%a0: out f32[3], %a1: in f32[3, 300, 290]) {
      %i = range 3
      %k = range 300
      %m = range 290
      %0 = load %a1[%i, %k, %m]      : f32
      %1 = reduce.max %0 over (%m)   : f32
      %2 = mul %1, %1                : f32
      %3 = reduce.add %2 over (%k)   : f32
      store %a0[%i], %3
      end over (%i)
    }""")
  with_recipe, recipe = write_recipe(kernel, MACHINE)
  assert "m.rest_" in recipe
  check(kernel, with_recipe)


def test_an_operand_that_is_the_same_in_every_tile():
  """The threads beside each other read the same four rows, whichever tile is theirs."""
  kernel = parse("""
    kernel k(%a0: out f32[16, 16], %a1: in f32[4, 6]) {
      %i = range 16
      %j = range 16
      %k = range 6
      %0 = load %a1[%i % 4, %k]    : f32
      %1 = load %a1[%j % 4, %k]    : f32
      %2 = mul %0, %1              : f32
      %3 = reduce.add %2 over (%k) : f32
      store %a0[%i, %j], %3
      end over (%i, %j)
    }""")
  with_recipe, _ = write_recipe(kernel, MACHINE)
  verify(with_recipe)
  check(kernel, with_recipe)


@pytest.mark.parametrize("seed", range(25))
def test_random_kernels(seed, request):
  outputs, _, _ = random_program(seed + request.config.option.seed)
  for kernel in random_kernels(outputs)[0]:
    verify(write_recipe(kernel, MACHINE)[0])
    check(kernel, write_recipe(kernel, MACHINE)[0])


@pytest.mark.skipif(golden.CXX is None, reason="no C++ compiler found")
@pytest.mark.parametrize("dev, instruction", [("METAL", "8x8 f32"), ("CUDA", "m16n8k8 tf32")])
def test_arguments_keep_their_order_where_a_matrix_instruction_reads_them_in_another(dev, instruction):
  kernel = parse("""
    kernel k(%a0: out f32[32, 96], %a1: in f32[3, 2, 2, 16, 16], %a2: in f32[2, 16, 32]) {
      %l = range 96
      %m = range 32
      %k = range 2
      %k1 = range 16
      %0 = load %a1[%l // 32, %k, (%l // 16) % 2, %k1, %l % 16] : f32
      %1 = load %a2[%k, %k1, %m]                               : f32
      %2 = mul %0, %1                                          : f32
      %3 = reduce.add %2 over (%k, %k1)                        : f32
      store %a0[%m, %l], %3
      end over (%l, %m)
    }""")
  with_recipe, recipe = write_recipe(kernel, MACHINE._replace(matrices=frozenset({instruction}), fast=True))
  assert instruction in recipe
  data = golden.random_inputs(kernel, 0, laced=False)
  got, _ = golden.Emulated(render_for(dev, {"k": with_recipe}), dev).run(with_recipe, data)
  np.testing.assert_allclose(got["a0"], interpret(kernel, data)["a0"], rtol=1e-2, atol=2e-2)


def test_what_rounds_is_part_of_a_factor():
  """Of matrix instructions: float32 is rounded to float16 before it is multiplied; what widens loses nothing."""
  cells = {d: load(param("x", (8,), d), (range_("i", 8),)) for d in (dtypes.float16, dtypes.float32)}
  narrow, wide = cells.values()
  assert beneath(uop("cast", dtypes.float32, (narrow,))) is narrow
  rounded = uop("cast", dtypes.float16, (wide,))
  assert beneath(rounded) is rounded and beneath(uop("cast", dtypes.float32, (rounded,))) is rounded
