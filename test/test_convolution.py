"""Convolutions and pooling beside PyTorch: values and gradients, errors, modules; and what they are compiled to."""

import itertools
import random
import re

import numpy as np
import pytest

from mini import Context, Device, Tensor, nn, stats
from mini.types import ShapeError


def close(a, b, what):
  assert a.shape == tuple(b.shape), what
  np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9, err_msg=str(what))


def beside(name, arrays, *args, device="INTERP", **kw):
  """The same call of tensors by both, in float64: values, and the gradients of all inputs."""
  torch = pytest.importorskip("torch")
  theirs = [torch.from_numpy(a).requires_grad_() for a in arrays]
  ours = [Tensor(a, requires_grad=True, device=device) for a in arrays]
  want, got = (
    getattr(torch.nn.functional, name)(*theirs, *args, **kw),
    getattr(ours[0], name)(*ours[1:], *args, **kw),
  )
  if isinstance(want, tuple):
    assert got[1].tolist() == want[1].tolist(), (name, args)
    want, got = want[0], got[0]
  seed = np.random.default_rng(1).standard_normal(tuple(want.shape))
  want.backward(torch.from_numpy(seed))
  got.backward(Tensor(seed, device=device))
  for a, b in [(got, want), *((t.grad, u.grad) for t, u in zip(ours, theirs))]:
    close(a, b, (name, args, kw))


def convolutions():
  """(name, shapes, options) for strides, paddings, dilations, groups, odd sizes."""
  sizes = {1: ((7,), (3,)), 2: ((7, 6), (3, 2)), 3: ((4, 4, 5), (2, 3, 1))}
  for n, s, p, d, g, more in itertools.product(sizes, (1, 2, 3), (0, 1, 2), (1, 2), (1, 2), (0, 1)):
    size, kernel = sizes[n]
    kw = {"stride": s, "padding": p, "dilation": d, "groups": g}
    if not more and all(m + 2 * p > d * (k - 1) for m, k in zip(size, kernel)):
      yield f"conv{n}d", ((2, 4, *size), (6, 4 // g, *kernel), (6,)), kw
    if more < max(s, d) and all((m - 1) * s - 2 * p + d * (k - 1) + more >= 0 for m, k in zip(size, kernel)):
      yield f"conv_transpose{n}d", ((2, 4, *size), (4, 6 // g, *kernel), (6,)), {**kw, "output_padding": more}


def run(case, device):
  name, shapes, kw = case
  rng = np.random.default_rng(0)
  arrays = [rng.standard_normal(s) for s in shapes]
  if name.startswith("conv_"):
    arrays[2] = arrays[2][: shapes[1][1] * kw["groups"]]
  beside(name, arrays, device=device, **kw)


def test_convolutions():
  cases = list(convolutions())
  for case in random.Random(0).sample(cases, 20):
    run(case, "INTERP")


@pytest.mark.full
def test_all_convolutions():
  for case in convolutions():
    run(case, "INTERP")
  for case in random.Random(1).sample(list(convolutions()), 30):
    run(case, "CPU")


def test_padding_in_words_and_without_a_batch():
  x, w = (
    np.random.default_rng(0).standard_normal((3, 5, 6)),
    np.random.default_rng(1).standard_normal((4, 3, 2, 3)),
  )
  beside("conv2d", [x, w], padding="same", dilation=(2, 1))
  beside("conv2d", [x, w], padding="valid", stride=(2, 3))
  beside("conv_transpose2d", [x, w.transpose(1, 0, 2, 3).copy()], stride=2, output_padding=(1, 0))


def test_gradients_of_gradients():
  torch = pytest.importorskip("torch")
  x, w = (
    np.random.default_rng(0).standard_normal((2, 2, 6)),
    np.random.default_rng(1).standard_normal((3, 2, 3)),
  )
  a, b = (torch.from_numpy(v).requires_grad_() for v in (x, w))
  y = (torch.nn.functional.conv1d(a, b, stride=2, padding=1) ** 3).sum()
  (gx, gw) = torch.autograd.grad(y, (a, b), create_graph=True)
  want = torch.autograd.grad((gx**2).sum() + (gw**2).sum(), (a, b))
  a, b = (Tensor(v, requires_grad=True, device="INTERP") for v in (x, w))
  y = (a.conv1d(b, stride=2, padding=1) ** 3).sum()
  gx, gw = y.gradient(a, b)
  got = ((gx**2).sum() + (gw**2).sum()).gradient(a, b)
  for g, h in zip(got, want):
    close(g, h, "second")


def test_the_gradient_of_what_views_have_joined():
  """A 1x1 kernel over channels that come last: no node but the product is left of the convolution."""
  x = np.random.default_rng(0).standard_normal((2, 3, 5))
  a, b = (Tensor(x, requires_grad=True) for _ in "ab")
  w = Tensor(np.random.default_rng(1).standard_normal((4, 5)))
  (a.reshape(1, 6, 5).transpose(1, 2).conv1d(w.unsqueeze(-1)) ** 2).sum().backward()
  ((b @ w.T) ** 2).sum().backward()
  np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-12)


def poolings():
  for n, size in {1: (9,), 2: (9, 7), 3: (5, 4, 6)}.items():
    for k, s, p, c in itertools.product((1, 2, 3), (None, 1, 2, 3), (0, 1), (False, True)):
      if 2 * p > k:
        continue
      for d in (1, 2):
        if all(m + 2 * p > d * (k - 1) + (0 if not c else 1) for m in size):
          yield f"max_pool{n}d", size, (k, s, p, d, c)
      yield f"max_pool{n}d", size, (k, s, p, 1, c, True)
      for include in (False, True):
        yield f"avg_pool{n}d", size, (k, s, p, c, include)
    for m in (1, 2, 3, 4, 5, 11):
      yield f"adaptive_avg_pool{n}d", size, (m,)
      yield f"adaptive_max_pool{n}d", size, (m,)


def pool(name, size, args):
  beside(name, [np.random.default_rng(0).standard_normal((2, 3, *size))], *args)


def test_pooling():
  for case in random.Random(0).sample(list(poolings()), 30):
    pool(*case)
  pool("adaptive_avg_pool2d", (7, 6), ((None, 4),))
  beside("avg_pool2d", [np.random.default_rng(0).standard_normal((5, 4))[None]], 2, divisor_override=3)


@pytest.mark.full
def test_all_pooling():
  for case in poolings():
    pool(*case)


LAST = [
  ("conv1d", (2, 4, 9), [(6, 2, 3)], {"groups": 2, "stride": 2}),
  ("conv2d", (2, 3, 6, 5), [(4, 3, 3, 3), (4,)], {"padding": 1}),
  ("conv2d", (4, 6, 5), [(6, 2, 3, 3)], {"groups": 2, "dilation": 2, "padding": "same"}),
  ("conv3d", (1, 2, 4, 3, 5), [(3, 2, 2, 2, 2)], {}),
  ("conv_transpose2d", (2, 3, 4, 5), [(3, 2, 3, 3), (2,)], {"stride": 2}),
  ("max_pool2d", (2, 3, 6, 7), [], {"kernel_size": 3, "stride": 2, "padding": 1, "return_indices": True}),
  ("avg_pool3d", (2, 3, 4, 4, 4), [], {"kernel_size": 2}),
  ("lp_pool1d", (2, 3, 8), [], {"norm_type": 2, "kernel_size": 2}),
  ("adaptive_avg_pool2d", (2, 3, 5, 6), [], {"output_size": (2, 3)}),
  ("adaptive_max_pool1d", (2, 3, 7), [], {"output_size": 3}),
]  # fmt: skip


@pytest.mark.parametrize("name, size, more, options", LAST)
def test_channels_last(name, size, more, options, rng):
  """Results and gradients are those of channels that come first; no kernel more is made for it."""
  n = int(name[-2])
  arrays = [rng.standard_normal(s) for s in (size, *more)]
  found, kernels = [], []
  for last in (False, True):
    first, *rest = arrays
    x = Tensor(np.moveaxis(first, -n - 1, -1) if last else first, requires_grad=True, device="INTERP")
    rest = [Tensor(a, requires_grad=True, device="INTERP") for a in rest]
    got = getattr(x, name)(*rest, **options, channels_last=last)
    got = got if isinstance(got, tuple) else (got,)
    back = got[0].square().sum().gradient(x, *rest)
    before = stats.kernels
    Tensor.realize(*got)
    kernels.append(stats.kernels - before)
    found.append([t.detach().numpy() for t in (*got, *back)])
    if last:
      for n_th in range(len(got) + 1):  # what it gives, and the gradient of x
        found[-1][n_th] = np.moveaxis(found[-1][n_th], -1, -n - 1)
  for a, b in zip(*found):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
  assert kernels[0] == kernels[1]


def test_modules_of_channels_last(rng):
  x = rng.standard_normal((2, 6, 5, 4))
  for make in (
    lambda **o: nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect", dtype="float64", **o),
    lambda **o: nn.ConvTranspose2d(4, 3, 3, stride=2, dtype="float64", **o),
    lambda **o: nn.MaxPool2d(2, **o),
    lambda **o: nn.AdaptiveAvgPool2d(2, **o),
  ):
    last, first = make(channels_last=True), make()
    first.load_state_dict(last.state_dict())
    want = np.moveaxis(first(Tensor(np.moveaxis(x, -1, 1))).detach().numpy(), 1, -1)
    np.testing.assert_allclose(last(Tensor(x)).detach().numpy(), want, rtol=1e-12, atol=1e-14)
  with pytest.raises(ShapeError, match="channels come behind 2 axes"):
    Tensor.ones(3, 3).max_pool2d(2, channels_last=True)


def test_errors():
  x, w = Tensor.ones(1, 3, 4, 4), Tensor.ones(2, 3, 3, 3)
  for error, message, call in (
    (ShapeError, "4 channels", lambda: Tensor.ones(1, 4, 4, 4).conv2d(w)),
    (ShapeError, "larger than x", lambda: x.conv2d(Tensor.ones(2, 3, 5, 5))),
    (ShapeError, "2 outputs do not fall into 3 groups", lambda: x.conv2d(w, groups=3)),
    (ShapeError, "4 axes, or 3", lambda: x[0, 0].conv2d(w)),
    (ValueError, "stride 1", lambda: x.conv2d(w, stride=2, padding="same")),
    (ValueError, "stride and dilation", lambda: x.conv2d(w, stride=(1, 2, 3))),
    (ValueError, "padding is", lambda: x.conv2d(w, padding="some")),
    (ValueError, "output_padding", lambda: x.conv_transpose2d(Tensor.ones(3, 2, 3, 3), output_padding=1)),
    (ShapeError, "half of the kernel", lambda: x.max_pool2d(2, padding=2)),
    (ValueError, "no variance", lambda: Tensor.ones(1, 3).batch_norm(None, None, training=True)),
  ):
    with pytest.raises(error, match=message):
      call()


@pytest.mark.parametrize("size", [(4, 3), (4, 3, 5), (2, 3, 2, 5)], ids=str)
def test_gradients_of_batch_norm(size, rng):
  """Of all that it is given, and gradients of the gradient."""
  torch = pytest.importorskip("torch")
  x, g, w, b = (rng.standard_normal(s) * 2 + 1 for s in (size, size, 3, 3))
  for affine in ((w, b), (w, None), (None, b), (None, None)):
    found = []
    for make, norm, gradient in (
      (
        lambda a: Tensor(a, device="INTERP", requires_grad=True),
        Tensor.batch_norm,
        lambda y, xs: y.gradient(*xs),
      ),
      (
        lambda a: torch.tensor(a, requires_grad=True),
        torch.nn.functional.batch_norm,
        lambda y, xs: torch.autograd.grad(y, xs, create_graph=True),
      ),
    ):
      x_, g_, *affine_ = (None if a is None else make(a) for a in (x, g, *affine))
      given = [x_, *(a for a in affine_ if a is not None)]
      loss = (norm(x_, None, None, *affine_, training=True) * g_).sum()
      first = gradient(loss, given)
      second = gradient(first[0].square().sum() + loss, [g_, *given])
      found.append([t.detach().numpy() for t in (*first, *second)])
    for ours, theirs in zip(*found):
      np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- what they are compiled to

SHAPES = {  # x, weight, options: what the recipes take apart
  "3x3": ((2, 5, 18, 20), (7, 5, 3, 3), {"padding": 1}),
  "narrow": ((3, 4, 7, 7), (13, 4, 3, 3), {"padding": 1}),
  "strided": ((2, 3, 19, 36), (6, 3, 3, 3), {"padding": 1, "stride": 2}),
  "strided, of many channels": ((3, 24, 15, 30), (40, 24, 3, 3), {"padding": 1, "stride": 2}),
  "of many channels": ((3, 5, 11, 13), (192, 5, 3, 3), {"padding": 1}),
  "5x5 of many channels": ((2, 7, 19, 9), (131, 7, 5, 5), {"padding": 2}),
  "5x5 in groups": ((2, 4, 17, 17), (6, 2, 5, 5), {"padding": 2, "groups": 2}),
  "dilated": ((2, 3, 20, 23), (4, 3, 3, 2), {"padding": 2, "dilation": 2}),
  "dilated, of many channels": ((2, 17, 20, 23), (4, 17, 3, 2), {"padding": 2, "dilation": 2}),
  "1x1": ((2, 6, 9, 9), (5, 6, 1, 1), {"stride": 2}),
  "depthwise": ((2, 6, 21, 18), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
  "one axis": ((2, 3, 70), (5, 3, 4), {"padding": 2}),
  "three axes": ((2, 2, 5, 6, 17), (3, 2, 2, 3, 3), {"padding": 1}),
}


def prepared(name):
  """x, weight, a gradient of the result, and the result."""
  (size, shape, kw), rng = SHAPES[name], np.random.default_rng(0)
  x, w = (
    Tensor(rng.standard_normal(s).astype(np.float32), requires_grad=True).realize() for s in (size, shape)
  )
  y = getattr(x, f"conv{len(size) - 2}d")(w, **kw)
  g = Tensor(rng.standard_normal(y.shape).astype(np.float32)).realize()
  return x, w, g, y


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SHAPES)
def test_recipes(name):
  """Float32 on the CPU, with vectors, beside PyTorch."""
  torch = pytest.importorskip("torch")
  x, w, g, y = prepared(name)
  a, b = (torch.from_numpy(t.numpy()).double().requires_grad_() for t in (x, w))
  want = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")(a, b, **SHAPES[name][2])
  want.backward(torch.from_numpy(g.numpy()).double())
  for got, of in ((y, want), *zip(y.gradient(x, w, gradient=g), (a.grad, b.grad))):
    np.testing.assert_allclose(got.numpy(), of.detach().numpy(), rtol=1e-4, atol=2e-4)


def empty(*size, **kw):
  return Tensor.empty(*size, **kw).realize()


def written(tensor, lanes, registers, capsys, l2="1280K", issue=4):
  """What a tensor is computed by on such a machine: (its one contraction's recipe, the kernels as text)."""
  machine = f"lanes={lanes},registers={registers},threads=2,issue={issue},l1=48K,l2={l2},stack=1536K"
  Device["CPU"].alike.clear()  # of several sizes each is the first
  with Context(MACHINE=machine, SHOW="kernel", SEARCH=0):
    tensor.realize()
  text = capsys.readouterr().err
  (recipe,) = re.findall(r"^# contract_\S+: (.*)$", text, re.MULTILINE)
  return recipe, text


@pytest.mark.parametrize("lanes, registers", [(8, 16), (16, 32)])
def test_the_gradient_of_what_a_stride_reads_leaves_out_the_zeros(lanes, registers, capsys):
  """An image's results are made together, whichever rest their place leaves; what a rest does not see is no product."""
  x, w = empty(8, 64, 28, 28, requires_grad=True), empty(64, 64, 3, 3)
  y = x.conv2d(w, stride=2, padding=1)
  (dx,) = y.gradient(x, gradient=empty(*y.shape))
  recipe, text = written(dx, lanes, registers, capsys)
  assert "; order i n p lo " in recipe and "; bound k1 finite; bound k2 finite" in recipe
  assert (
    "%k1 = range 2 from 0 to (%n + 1) // 2 + 1" in text
    and "%k2 = range 2 from 0 to (%p + 1) // 2 + 1" in text
  )


def test_infinity_meets_no_zeros_of_a_weight():
  """What a phase has no tap for is no product: 0 times infinity is none of the results."""
  x, w = np.zeros((1, 32, 64, 64), np.float32), np.ones((32, 32, 4, 4), np.float32)
  x[0, 0, 3, 3] = np.inf
  y = Tensor(x).conv_transpose2d(Tensor(w), stride=2, padding=1).numpy()
  assert not np.isnan(y).any() and np.isinf(y).sum() == 32 * 16


def test_a_strided_convolution_with_a_small_cache(capsys):
  """A padded image may take the whole of an L2; all places of a window in all channels are one loop."""
  x, w = empty(8, 64, 56, 56, requires_grad=True), empty(128, 64, 3, 3)
  y = x.conv2d(w, stride=2, padding=1)
  (dx,) = y.gradient(x, gradient=empty(*y.shape))
  recipe, _ = written(dx, 8, 16, capsys, "512K")
  assert "stage 0 over (k1 + m, k, k2 + o) stack" in recipe
  recipe, text = written(x.detach().conv2d(w, stride=2, padding=1), 8, 16, capsys, "512K")
  assert "collapse k k1 -> k; collapse k k2 -> k" in recipe and "%k = range 576" in text


def test_the_gradient_of_a_weight_whose_windows_move_in_steps(capsys):
  """What a window sees is copied with zeros around it: no guard stands in the inner loop."""
  x, w = empty(8, 3, 224, 224), empty(64, 3, 7, 7, requires_grad=True)
  y = x.conv2d(w, stride=2, padding=3)
  (dw,) = y.gradient(w, gradient=empty(*y.shape))
  recipe, text = written(dw, 8, 16, capsys, "512K")
  assert "; stage 0 over (o + k*2, p + k1*2) stack; " in recipe
  (guarded,) = [line for line in text.splitlines() if "load %a1" in line and "if" in line]
  assert " %p.0" in guarded  # in the loops that copy, not in those of the sum


@pytest.mark.parametrize(
  "options, axes",
  [
    ({"stride": 2}, "k, o + k1*2, p + k2*2"),
    ({"dilation": 3}, "k, k1 + o*3, k2 + p*3"),
    ({}, "k, k1 + o, k2 + p"),
  ],
  ids=["stride", "dilation", "neither"],
)
def test_the_gradient_of_a_weight_of_many_channels_has_vectors_along_them(options, axes, capsys):
  """Whatever the steps of a window, each element of an image is copied once."""
  x, w = empty(8, 64, 30, 30), empty(128, 64, 3, 3, requires_grad=True)
  y = x.conv2d(w, padding=1, **options)
  (dw,) = y.gradient(w, gradient=empty(*y.shape))
  recipe, _ = written(dw, 16, 32, capsys)
  assert f"; stage 0 over ({axes}, nv) stack; " in recipe


@pytest.mark.parametrize("lanes, registers", [(8, 16), (16, 32)])
def test_the_transpose_of_a_convolution_whose_windows_do_not_overlap(lanes, registers, capsys):
  """Two neighbours of an output are no vector; channels are, and each of their panels is packed once."""
  x, w = empty(8, 128, 14, 14), empty(128, 64, 2, 2)
  recipe, _ = written(x.conv_transpose2d(w, stride=2), lanes, registers, capsys)
  assert "vec lv; " in recipe and "order n p lo i m oo ou lv; stage 1 over (k, lv) stack; " in recipe
  assert recipe.endswith("collapse n p -> n; collapse n lo -> n; par n")


@pytest.mark.parametrize("lanes, registers", [(8, 16), (16, 32)])
def test_rows_of_two_phases_are_stored_in_turns(lanes, registers, capsys):
  """Vectors along a row go to every second place; those of the other phase lie between, and a line is written once. A
  gradient whose channels are two vectors has one panel of weights, for all rows: these are shared between threads."""
  x, w = empty(7, 16, 80, 80, requires_grad=True), empty(16, 64, 2, 2)
  y = x.conv_transpose2d(w, stride=2)
  (dx,) = y.gradient(x, gradient=empty(*y.shape))
  recipe, _ = written(dx, lanes, registers, capsys)
  assert lanes == 16 or ("vec l; " in recipe and recipe.endswith("collapse i p -> i; par i"))
  recipe, _ = written(x.detach().conv_transpose2d(w, stride=2), lanes, registers, capsys)
  assert "vec ov; " in recipe and recipe.endswith("collapse i m -> i; par i; unroll p")


@pytest.mark.parametrize("lanes, registers", [(8, 16), (16, 32)])
def test_the_transpose_of_a_convolution_computes_no_zeros(lanes, registers, capsys):
  """Each phase of a stride has two taps of the three at which some phase has one. A small image has no panels of its own;
  of a large one so many rows are copied as fit beside a panel."""
  for channels, outputs, size in ((256, 128, 4), (32, 32, 128), (64, 3, 32)):
    x, w = empty(16, channels, size, size), empty(channels, outputs, 4, 4)
    recipe, text = written(x.conv_transpose2d(w, stride=2, padding=1), lanes, registers, capsys)
    assert re.search(r"%k1 = range 3 from \(%n.* \+ 1\) // 2 to \(%n.* \+ 1\) // 2 \+ 2", text)
    order = re.findall("order ([a-z ]*)", recipe)[-1].split()
    if size == 4:
      assert order.index("i") > order.index("lo")
    elif size == 128:
      assert re.search(r"split m \d+ -> mo, m overlap", recipe) and order[:2] == ["i", "mo"]


@pytest.mark.parametrize("lanes, registers", [(8, 16), (16, 32)])
def test_what_many_channels_read_stands_in_a_panel(lanes, registers, capsys):
  """A plane of 14x14 has no full vectors in a row, and 196 neighbours. A tile of them is read in the order in which it
  stands, by all channels; few of these, or the end of a row at every vector, are not worth the copy."""
  x, few = empty(8, 256, 14, 14), empty(8, 16, 14, 14)
  recipe, text = written(x.conv2d(empty(256, 256, 3, 3), padding=1), lanes, registers, capsys, "512K")
  split = r"collapse p q -> (p\w*); split \1 \d+ -> \w+, (\w+) overlap; vec \2"
  lane = re.search(split, recipe)[2]
  first, second = re.findall(r"stage 0 over \((.*?)\) stack", recipe)
  assert first == "k, k2, k1 + p, q" and second == f"k, k1, k2, {lane}"
  assert len(re.findall("if", text)) == 1  # while it is copied for the first time
  recipe, _ = written(few.conv2d(empty(16, 16, 3, 3), padding=1), lanes, registers, capsys, "512K")
  assert recipe.count("stage 0") == 1


def test_a_wide_core_reads_an_image_where_it_stands(capsys):
  """It has time for guards, and for vectors across lines: no copy, or the first one alone. What is outside is no
  branch in the inner loop."""
  image, weight = empty(8, 256, 14, 14), empty(256, 256, 3, 3)
  recipe, _ = written(image.conv2d(weight, padding=1), 16, 32, capsys, issue=8)
  assert "vec lv" in recipe and "stage 1" in recipe and "stage 0" not in recipe
  image, weight = empty(8, 64, 56, 56), empty(64, 64, 3, 3)
  for issue, copies in ((4, 2), (8, 1)):
    recipe, _ = written(image.conv2d(weight, padding=1), 16, 32, capsys, "1M", issue)
    assert recipe.count("stage 0") == copies and "stage 1" not in recipe
  image, weight = empty(128, 32, 20, 20), empty(32, 32, 5, 5)
  recipe, _ = written(image.conv2d(weight, padding=4), 16, 32, capsys, issue=8)
  assert "bound k1 finite; bound qu finite" in recipe


@pytest.mark.sample(3)
@pytest.mark.parametrize("lanes, registers", [(8, 16), (16, 32)])
@pytest.mark.parametrize("size, channels", [(56, 16), (28, 32), (14, 64), (30, 48)])
def test_a_tile_and_its_operands_fit_the_registers(size, channels, lanes, registers, capsys):
  """Sums, as many as there are registers for, a vector or more of the one factor, and one of the other."""
  x, w = empty(2, channels, size, size), empty(channels, channels, 3, 3)
  recipe, _ = written(x.conv2d(w, padding=1), lanes, registers, capsys)
  columns = re.search(r"split \w+ (\d+) -> \w+, (\w+) overlap; vec \2", recipe)
  rows = re.search(r"split \w+ (\d+) -> \w+, (\w+) overlap; unroll \2", recipe)
  vectors, rows = (int(columns[1]) if columns else channels) // lanes, int(rows[1]) if rows else size
  assert registers // 2 <= rows * vectors < registers - vectors, recipe


def kernels(*tensors):
  before = stats["kernels"]
  Tensor.realize(*tensors)
  return stats["kernels"] - before


def test_kernel_counts():
  """One kernel, with what is done to each result; a gradient of x one more, for the weight turned round."""
  x, w, g, y = prepared("3x3")
  assert kernels((y + Tensor.ones(7, 1, 1)).relu()) == 1
  assert kernels(*y.gradient(x, gradient=g)) == 2
  assert kernels(*y.gradient(w, gradient=g)) == 1
  x, w, g, y = prepared("1x1")
  assert kernels(y.gradient(x, gradient=g)[0]) == 2  # a size that the stride does not divide: it is cut
  x = Tensor(np.ones((2, 3, 12, 12), np.float32))
  assert kernels(x.max_pool2d(2).relu()) == 1
  assert kernels(x.max_pool2d(3, 2, 1).relu()) == 1
  assert kernels(x.avg_pool2d(2)) == 1


def test_windows_are_not_in_memory():
  """What is in use at once besides the operands is the result, and a weight turned round."""
  x, w, g, y = prepared("3x3")
  for result in (y, *y.gradient(x, gradient=g), *y.gradient(w, gradient=g)):
    stats.reset()
    before = stats["bytes_live"]
    result.realize()
    assert stats["bytes_peak"] - before <= 4 * (result.numel() + w.numel()) + 4096
