"""Images, pools and distances beside PyTorch: values, gradients, errors."""

import numpy as np
import pytest

from mini import Tensor
from mini.types import DTypeError, ShapeError

torch = pytest.importorskip("torch")
F = torch.nn.functional
R = np.random.default_rng(0)


def close(ours, theirs, what, tolerance=1e-9):
  assert ours.shape == tuple(theirs.shape), what
  np.testing.assert_allclose(
    ours.numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance, err_msg=str(what)
  )


def beside(name, arrays, *args, device="INTERP", theirs=None, gradients=True, **kw):
  """A method of ours and PyTorch's function, in float64: values, and the gradients of all inputs."""
  function = theirs or getattr(F, name, None) or getattr(torch, name)
  xs, ys = (
    [torch.from_numpy(a).requires_grad_() for a in arrays],
    [Tensor(a, requires_grad=True, device=device) for a in arrays],
  )
  want, got = function(*xs, *args, **kw), getattr(ys[0], name)(*ys[1:], *args, **kw)
  close(got, want, (name, args, kw))
  if gradients:
    seed = np.random.default_rng(1).standard_normal(tuple(want.shape))
    want.backward(torch.from_numpy(seed))
    got.backward(Tensor(seed, device=device))
    for n, (a, b) in enumerate(zip(ys, xs)):
      close(a.zeros_like() if a.grad is None else a.grad, b.grad, (name, args, kw, "gradient", n))


def normal(*s):
  return R.standard_normal(s)


SIZES = {1: ((7,), ("nearest", "nearest-exact", "linear", "area")),
         2: ((7, 5), ("nearest", "nearest-exact", "bilinear", "bicubic", "area")),
         3: ((4, 3, 5), ("nearest", "nearest-exact", "trilinear", "area"))}  # fmt: skip
SCALES = [*({"size": m} for m in (1, 3, 10, 14)), *({"scale_factor": f} for f in (2, 0.5, 1.7, 3.0)),
          {"scale_factor": 1.7, "recompute_scale_factor": True}]  # fmt: skip


@pytest.mark.parametrize("mode, n", [(mode, n) for n, (_, modes) in SIZES.items() for mode in modes])
def test_interpolate(mode, n):
  x = normal(2, 3, *SIZES[n][0])
  for scale in SCALES:
    if "size" in scale and n == 2:
      scale = {"size": (scale["size"], 4)}
    for corners in (None, True) if "linear" in mode or mode == "bicubic" else (None,):
      for smooth in (False, True) if mode in ("bilinear", "bicubic") else (False,):
        beside("interpolate", [x], mode=mode, align_corners=corners, antialias=smooth, **scale)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode, padding):
  grid = R.uniform(-2.5, 2.5, (2, 5, 3, 2))
  for corners in (False, True):
    beside("grid_sample", [normal(2, 3, 4, 6), grid], mode=mode, padding_mode=padding, align_corners=corners)
    beside("grid_sample", [normal(2, 3, 1, 2), grid], mode=mode, padding_mode=padding, align_corners=corners)
    if mode != "bicubic":
      deep = R.uniform(-2, 2, (2, 3, 2, 4, 3))
      beside(
        "grid_sample", [normal(2, 2, 3, 4, 5), deep], mode=mode, padding_mode=padding, align_corners=corners
      )


@pytest.mark.filterwarnings("ignore:Since version")
def test_affine_grid():
  for size in ((2, 1, 3, 4), (2, 1, 1, 4), (2, 1, 3, 2, 4)):
    for corners in (False, True):
      beside("affine_grid", [normal(2, len(size) - 2, len(size) - 1)], size, align_corners=corners)


PATCHES = [((3, 2), 1, 0, 1), (2, 1, 0, 2), ((2, 3), (2, 1), (1, 2), (1, 2)), (3, 1, 1, 2), (1, 1, 0, 3)]


@pytest.mark.parametrize("kernel, dilation, padding, stride", PATCHES)
def test_patches(kernel, dilation, padding, stride):
  args = (kernel, dilation, padding, stride)
  beside("im2col", [normal(2, 3, 7, 6)], *args, theirs=F.unfold)
  beside("im2col", [normal(3, 7, 6)], *args, theirs=F.unfold)
  columns = F.unfold(torch.zeros(2, 3, 7, 6), *args).shape
  beside("fold", [normal(*columns)], (7, 6), *args)
  beside("fold", [normal(*columns[1:])], (7, 6), *args)


CALLS = [
  ("pixel_shuffle", [(2, 12, 3, 4)], (2,)),
  ("pixel_shuffle", [(9, 2, 1)], (3,)),
  ("pixel_unshuffle", [(2, 3, 6, 4)], (2,)),
  ("pixel_unshuffle", [(2, 1, 3, 3, 9)], (3,)),
  ("channel_shuffle", [(2, 6, 3)], (3,)),
  ("channel_shuffle", [(2, 6, 3, 2)], (2,)),
  ("local_response_norm", [(2, 5, 3)], (3,)),
  ("local_response_norm", [(2, 5, 3, 2)], (4, 0.5, 0.6, 2.0)),
  *(("cdist", [(2, 4, 3), (5, 3)], (p,)) for p in (0.5, 1.0, 2.0, 3.0, float("inf"))),
  *(("pairwise_distance", [(4, 3), (4, 3)], (p, 1e-3)) for p in (1.0, 2.0, 3.0)),
  ("pairwise_distance", [(4, 3), (3,)], (2.0, 1e-6, True)),
  ("cosine_similarity", [(4, 3), (4, 3)], ()),
  ("cosine_similarity", [(4, 1, 3), (2, 3)], (-1,)),
]


@pytest.mark.parametrize("name, shapes, args", CALLS)
def test_call(name, shapes, args):
  beside(name, [normal(*s) for s in shapes], *args)


def test_distances_of_equal_vectors():
  """The slope there is 0."""
  x = normal(3, 2)
  for p in (1.0, 2.0, 3.0):
    beside("cdist", [x, x.copy()], p)
  beside("norm", [np.zeros(3)], theirs=torch.norm)


def pools():
  """(name, size, arguments): windows that overlap, with gaps, cut off; adaptive ones that divide the size or not."""
  for n, size in {1: (9,), 2: (9, 7), 3: (5, 4, 6)}.items():
    yield from (
      (f"lp_pool{n}d", size, (p, *args)) for p in (1, 2, 3) for args in ((2,), (3, 2), (3, 2, True))
    )
    yield from ((f"adaptive_max_pool{n}d", size, (m,)) for m in (1, 2, 3, 4, 5, 11))
    yield f"max_pool{n}d", size, (2, 3, 1, 2, True)
  yield "adaptive_max_pool2d", (9, 7), ((None, 3),)


def test_pools_and_their_places():
  """Values that are equal often: the first counts, and it alone gets the gradient."""
  for name, size, args in pools():
    x = R.integers(1, 4, (2, 3, *size)).astype(np.float64)
    beside(name, [x], *args)
    if name.startswith("adaptive"):
      values, places = getattr(Tensor(x, device="INTERP"), name)(*args, return_indices=True)
      want = getattr(F, name)(torch.from_numpy(x), *args, return_indices=True)
      close(values, want[0], (name, args))
      assert places.tolist() == want[1].tolist(), (name, args)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpool(n):
  for size, kernel, stride, padding in (((7, 6, 5), 2, None, 0), ((7, 7, 7), 3, 2, 1), ((8, 5, 8), 2, 3, 0)):
    x, options = normal(2, 3, *size[:n]), (kernel, stride, padding)
    values, places = getattr(F, f"max_pool{n}d")(torch.from_numpy(x), *options, return_indices=True)
    theirs, ours = getattr(F, f"max_unpool{n}d"), f"max_unpool{n}d"
    for output_size in (size[:n], None) if padding else (size[:n],):
      a, b = values.detach().requires_grad_(), Tensor(values.numpy(), requires_grad=True, device="INTERP")
      want = theirs(a, places, *options, output_size=output_size)
      got = getattr(b, ours)(Tensor(places.numpy(), device="INTERP"), *options, output_size=output_size)
      close(got, want, options)
      if not padding:  # else two windows may have one place
        want.square().sum().backward()
        got.square().sum().backward()
        close(b.grad, a.grad, options)


EMPTY = [
  ("max_pool2d", (0, 3, 4, 4), (2,), {}),
  ("avg_pool1d", (0, 3, 4), (3, 2, 1), {}),
  ("adaptive_avg_pool2d", (0, 3, 5, 4), (3,), {}),
  ("adaptive_max_pool2d", (0, 3, 5, 4), (3,), {}),
  ("lp_pool2d", (0, 3, 4, 4), (2, 2), {}),
  ("max_unpool2d", (0, 3, 2, 2), (Tensor.zeros(0, 3, 2, 2, dtype="int64"), 2), {}),
  ("conv2d", (0, 3, 4, 4), (Tensor.zeros(2, 3, 3, 3),), {}),
  ("conv_transpose2d", (0, 3, 4, 4), (Tensor.zeros(3, 2, 3, 3),), {}),
  ("interpolate", (0, 3, 4, 4), (8,), {}),
  ("interpolate", (0, 3, 4, 4), (3,), {"mode": "bilinear"}),
  ("pixel_shuffle", (0, 4, 2, 2), (2,), {}),
  ("cdist", (0, 4, 3), (Tensor.zeros(5, 3),), {}),
  ("im2col", (0, 2, 4, 4), (2,), {}),
  ("fold", (0, 8, 9), ((4, 4), 2), {}),
  ("local_response_norm", (0, 4, 3), (3,), {}),
  ("grid_sample", (0, 1, 3, 4), (Tensor.zeros(0, 2, 2, 2),), {}),
]


@pytest.mark.parametrize("name, shape, args, kw", EMPTY, ids=[e[0] for e in EMPTY])
def test_without_a_batch(name, shape, args, kw):
  x = Tensor(np.zeros(shape, np.float32), requires_grad=True)
  y = getattr(x, name)(*args, **kw)
  assert y.numpy().size == 0 and 0 in y.shape
  if y.requires_grad:  # what scatters nothing depends on nothing
    y.backward(Tensor.zeros(y.shape))
    assert x.grad.shape == shape


def test_errors():
  x, line = Tensor.ones(1, 3, 4, 4), Tensor.ones(1, 3, 4)
  for error, message, call in (
    (ShapeError, "output_size be >= 1 for each, not 0", lambda: x.adaptive_max_pool2d(0)),
    (ShapeError, "x must have 2 axes or more", lambda: Tensor.ones(3).adaptive_avg_pool2d(2)),
    (ShapeError, "an integer for each value", lambda: x.max_unpool2d(Tensor.zeros(1, 3, 2, 2, dtype="int64"), 2)),
    (ShapeError, r"output_size is \(8, 8\), or differs", lambda: x.max_unpool2d(x.long(), 2, output_size=(6, 8))),
    (ShapeError, "larger than x", lambda: x.lp_pool2d(2, 5)),
    (ValueError, "mode is one of nearest, nearest-exact, bilinear", lambda: x.interpolate(8, mode="linear")),
    (ValueError, "3 to 5 axes", lambda: Tensor.ones(3, 4).interpolate(8)),
    (ValueError, "one of them", lambda: x.interpolate()),
    (ValueError, "align_corners goes with", lambda: x.interpolate(8, align_corners=True)),
    (ValueError, "antialias goes with", lambda: x.interpolate(8, antialias=True)),
    (ShapeError, r"size=\(8, 8, 8\) is no size >= 1 for each of the axes \(4, 4\)", lambda: x.interpolate((8, 8, 8))),
    (ShapeError, "scale_factor=0.1", lambda: x.interpolate(scale_factor=0.1)),
    (DTypeError, r"x.float\(\) would fit", lambda: x.long().interpolate(8, mode="bilinear")),
    (ShapeError, r"for this x it is \(1, H, W, 2\)", lambda: x.grid_sample(Tensor.ones(2, 4, 4, 2))),
    (ValueError, "padding_mode is", lambda: x.grid_sample(Tensor.ones(1, 4, 4, 2), padding_mode="edge")),
    (ValueError, "mode is nearest", lambda: x.grid_sample(Tensor.ones(1, 4, 4, 2), "linear")),
    (DTypeError, "same float type", lambda: x.grid_sample(Tensor.ones(1, 4, 4, 2, dtype="float64"))),
    (ShapeError, "theta is", lambda: x.affine_grid((1, 1, 4, 4))),
    (ShapeError, "larger than the image", lambda: x.im2col(5)),
    (ValueError, "one or two of them", lambda: x.im2col((1, 2, 3))),
    (ShapeError, r"there must be x of shape \(N, C \* 4, 9\)", lambda: line.fold(4, 2)),
    (ShapeError, r"groups of 2 \* 2", lambda: x.pixel_shuffle(2)),
    (ShapeError, "not multiples of 3", lambda: x.pixel_unshuffle(3)),
    (ShapeError, "2 groups", lambda: x.channel_shuffle(2)),
    (ShapeError, "lists of vectors of one length", lambda: x.cdist(Tensor.ones(4, 3))),
    (ShapeError, "do not repeat", lambda: line.cosine_similarity(x[..., :3])),
  ):  # fmt: skip
    with pytest.raises(error, match=message):
      call()
