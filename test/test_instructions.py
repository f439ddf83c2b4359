"""Speed without a clock: what the inner loops of kernels are made of."""

import numpy as np
import pytest
from instructions import instructions

from mini import Device, Tensor

pytestmark = pytest.mark.usefixtures("optimized")


def data(*shape):
  return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32)).realize()


def test_a_matrix_product_is_vector_fmas():
  """All its products are; and in its densest loop half of the instructions: 12 of 24 with the 16 registers of AVX2."""
  (code,) = instructions(lambda a, b: a @ b, data(256, 256), data(256, 256)).values()
  loop = max(code.loops(), key=lambda loop: loop.fmas() / len(loop))
  lanes, registers = Device["CPU"].shim.info.lanes, Device["CPU"].shim.info.registers
  assert code.fmas(vector=False) == 0 == len(code.calls())
  assert loop.fmas() >= registers // 2 and 2 * loop.fmas() >= len(loop), [i.name for i in loop]
  wide = {4: "xmm", 8: "ymm", 16: "zmm"}[lanes]
  assert all(wide in i.operands for i in loop if i.is_fma)


@pytest.mark.parametrize("fn", [Tensor.exp, Tensor.tanh, Tensor.gelu, Tensor.silu, lambda x: x.softmax(1)])
def test_functions_are_vectors_too(fn):
  """No call of the C library, and no arithmetic on single floats, in the loop that does most."""
  for code in instructions(fn, data(64, 256)).values():
    assert not code.calls()
    loop = max(code.loops(), key=len)
    floats = [i for i in loop if i.name.startswith(("vadd", "vmul", "vdiv", "vf"))]
    assert floats and all(i.is_vector for i in floats), [i.name for i in floats]


def test_a_sum_of_rows_adds_vectors():
  (code,) = instructions(lambda x: x.sum(1), data(64, 4096)).values()
  loop = max(code.loops(), key=lambda loop: sum(i.name.startswith("vadd") for i in loop))
  assert sum(i.name in ("vaddps", "vaddpd") for i in loop) > 0
  assert not any(i.name in ("vaddss", "vaddsd") for i in loop)


@pytest.mark.parametrize(
  "fn", [Tensor.exp, lambda x: x.minimum(x + 1), lambda x: x.amax(1), lambda x: x.relu() * 2]
)
def test_limits_are_instructions(fn):
  """The larger and the smaller of two numbers are an instruction each, beside which only a NaN is looked for."""
  for code in instructions(fn, data(64, 256)).values():
    loop = max(code.loops(), key=len)
    extremes = sum(i.name.endswith(("maxps", "minps")) for i in loop)
    compared = sum("cmp" in i.name and i.name.endswith("ps") for i in loop)
    assert extremes and compared <= extremes, [i.name for i in loop]
