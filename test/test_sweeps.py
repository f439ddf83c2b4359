"""Methods with numbers as arguments - axes, sizes, steps, widths, indices; factors, bounds, powers - beside PyTorch, at those
that are small, at some that are far outside, at infinities and NaN: the same values and shapes, or an error from both.

A row is an expression: {I} is any whole number, {P} one that is not negative, {D} an axis, {V} any number (the elements of x
are infinite or NaN then, too). With --full all rows take 160 draws of their numbers for each shape, else a few.
"""

import itertools
import random
import re
import warnings

import numpy as np
import pytest

import mini
from mini import MiniError, Tensor
from mini.nn import functional

torch = pytest.importorskip("torch")
import torch.nn.functional as F

NUMBERS = {
  "I": (-50, -3, -2, -1, 0, 1, 2, 3, 4, 5, 50),
  "P": (0, 1, 2, 3, 4, 7, 50),
  "D": (-3, -2, -1, 0, 1, 2),
  "V": ("float('-inf')", -2.5, -1.0, -0.0, 0.0, 1e-30, 0.5, 1.0, 2, 3.0, "float('inf')", "float('nan')"),
}
ELEMENTS = -4, -1.5, -1, -0.0, 0, 0.25, 1, 2, 3, np.inf, -np.inf, np.nan, 1e-40, 1e30
SHAPES = (3, 4), (2, 3), (1, 1), (0, 3), (3, 0), (5, 1)
ROWS = """
x.unfold({D},{P},{P})   x.narrow({D},{I},{P})   x.roll({I},{D})   x.roll({I})   x.roll(({I},{I}),(0,1))   x.diagonal({I},{D},{D})
x.tril({I})   x.triu({I})   x.diag({I})   x.split({P},{D})   x.chunk({P},{D})   x.tensor_split({I},{D})   x.tensor_split([{I},{I}],{D})
x.repeat({P},{P})   x.repeat({P})   x.tile({P})   x.repeat_interleave({P},{D})   x.repeat_interleave({P})   x.select({D},{I})
x.movedim({D},{D})   x.transpose({D},{D})   x.flip({D})   x.flip(({D},{D}))   x.squeeze({D})   x.unsqueeze({D})   x.flatten({D},{D})
x.unflatten({D},({I},{I}))   x.reshape({I},{I})   x.view({I},{I})   x.view({I})   x.expand({I},{I})   x.expand({I},{I},{I})
x.sum({D})   x.sum(({D},{D}))   x.cumsum({D})   x.cumprod({D})   x.cummax({D})[0]   x.logcumsumexp({D})   x.sort({D})[0]
x.topk({P},{D})[0]   x.topk({P},{D},largest=False)[0]   x.kthvalue({P},{D})[0]   x.median({D})[0]   x.nanmedian({D})[0]   x.mode({D})[0]
x.max({D})[1]   x.argmax({D})   x.softmax({D})   x.logsumexp({D})   x.norm(2,{D})   x.var({D},correction={P})   x.std({D},correction={P})
x.prod({D})   x.any({D})   x.all({D})   x.diff({P},{D})   x.unbind({D})   x.count_nonzero({D})   x.quantile(0.5,{D})   x.renorm(2,{D},{P})
F.pad(x,({I},{I}))   F.pad(x,({I},{I},{I},{I}))   F.pad(x[None],({I},{I}),mode='reflect')   F.pad(x[None],({I},{I}),mode='replicate')
F.pad(x[None],({P},{P}),mode='circular')   F.max_pool1d(x,{P},{P},{P},{P})   F.avg_pool1d(x,{P},{P},{P})
F.max_pool1d(x,{P},{P},{P},ceil_mode=True)   F.avg_pool1d(x,{P},{P},{P},True,False)   F.max_pool2d(x[None],{P},{P},{P})
F.avg_pool2d(x[None],{P},{P},{P},True)   F.lp_pool1d(x,2,{P},{P})   F.adaptive_avg_pool1d(x,{P})   F.adaptive_max_pool1d(x,{P})
F.conv1d(x[None,:1],x[None,:1,:2],None,{P},{P},{P})   F.conv1d(x[None],x[:,None,:2],None,{P},{P},1,{P})
F.conv_transpose1d(x[None,:1],x[None,:1,:2],None,{P},{P},{P})   F.fold(x[None],({P},{P}),{P})   F.unfold(x[None,None],{P},{P},{P},{P})
F.pixel_shuffle(x[:,:,None],{P})   F.pixel_unshuffle(x[None],{P})   F.glu(x,{D})   F.interpolate(x[None],{P})
F.interpolate(x[None],scale_factor={P})   F.one_hot(x.long().abs(),{I})   x.stft({P},{P},return_complex=True).abs()
T.arange({I},{I},{I})   T.linspace({I},{I},{P})   T.logspace(0,1,{P})   T.eye({P},{P})   T.full(({P},{P}),1.)   T.tril_indices({P},{P},{I})
T.triu_indices({P},{P},{I})   T.bartlett_window({P})   T.hann_window({P})   T.kaiser_window({P})   x.swapaxes({D},{D})   T.cat([x,x],{D})
T.stack([x,x],{D})   T.rot90(x,{I},({D},{D}))   x.index_select({D},T.tensor([{I}]))   x.take(T.tensor([{I}]))   x.gather({D},T.tensor([[{I}]]))
x[{I}:{I}]   x[{I}]   x[:,{I}]   x[::{P}]   x[T.tensor([{I}])]   T.trapezoid(x,dim={D})   x.unique_consecutive(dim={D})
x.bincount(minlength={I})   x.histc({P},{I},{I})   T.cdist(x,x,{P})   x.matrix_power({I})   x.diag_embed({I},{D},{D})   x.diagflat({I})
x.select_scatter(x.sum(0),{D},{I})   x.slice_scatter(x,{D},{I},{I},{P})   x.narrow_copy({D},{I},{P})   x.as_strided(({P},{P}),({P},{P}),{I})
x.hsplit({P})   x.vsplit({P})   T.channel_shuffle(x[None,:,:,None],{P})   T.vander(x.flatten(),{P})   T.combinations(x.flatten(),{P})
x.clamp({V},{V})   x.clamp(min={V})   x.clamp(max={V})   x.clamp(T.tensor({V}),T.tensor({V}))
F.leaky_relu(x,{V})   F.hardshrink(x,{V})   F.softshrink(x,{V})   F.threshold(x,{V},{V})   F.hardtanh(x,{V},{V})   F.elu(x,{V})
x.pow({V})   x**{V}   {V}**x   x.abs().pow({V})   x.float_power({V})   x/{V}   x//{V}   x%{V}   {V}//x   {V}%x   x.fmod({V})
x.remainder({V})   x.div({V},rounding_mode='floor')   x.div({V},rounding_mode='trunc')   x.add(x,alpha={V})   x.sub(x,alpha={V})
x.addcmul(x,x,value={V})   x.addcdiv(x,x,value={V})   x.lerp(x+1,{V})   x.nan_to_num({V},{V},{V})   T.linspace({V},{V},4)
T.logspace({V},{V},3)   T.arange({V},{V},{V})   F.rms_norm(x,(x.shape[1],),eps={V})

F.huber_loss(x,x+1,delta={V})   F.smooth_l1_loss(x,x+1,beta={V})   x.copysign({V})
x.nextafter(T.tensor({V}).float())   x.xlogy({V})   x.hypot(T.tensor({V}))   x.atan2(T.tensor({V}))   x.logaddexp(T.tensor({V}))
x.masked_fill(x>0,{V})   x.fill_({V})   x.clone().fill_diagonal_({V})   T.full((2,),{V})   T.full_like(x,{V})   x.eq({V})   x.lt({V})   x.ge({V})
x.maximum(T.tensor({V}))   x.fmax(T.tensor({V}))   x.where(x>0,{V})   T.where(x>0,{V},x)   F.interpolate(x[None],scale_factor={V})
F.margin_ranking_loss(x,x+1,x.sign(),margin={V})   F.hinge_embedding_loss(x,x.sign(),margin={V})   F.poisson_nll_loss(x,x.abs(),eps={V})
F.gaussian_nll_loss(x,x+1,x.abs(),eps={V})   x.bernoulli({V})*0   x.softmax(0)*{V}   F.prelu(x,T.tensor([{V}]).float())
"""
REFUSED = """
F.cosine_similarity(x,x,eps=-1.0) x.renorm(0,0,1) x.renorm(2,0,-1.0) x.renorm(float('nan'),0,1)
F.smooth_l1_loss(x,x,beta=-1.0) F.huber_loss(x,x,delta=float('nan')) x.histc(4,0,float('inf')) x.histc(4,float('nan'),1)
F.interpolate(x[None],scale_factor=float('inf')) T.arange(0,3,1e-30) x.bernoulli(2.0) x.bernoulli(float('nan'))
"""
# What is one library's alone: {a part of the row: (who refuses or which differs, why)}
APART = {
  "index_select": ("torch", "ours counts negative indices from the end, as indexing does"),
  "mode='re": (
    "torch",
    "ours cuts a tensor down to nothing, too, and repeats the edge of one with an axis of size 0",
  ),
  "combinations": ("torch", "PyTorch's numbers of combinations overflow"),
  "unique_consecutive": ("torch", "of nothing there is nothing that is unique"),
  "interpolate": ("torch", "images without channels"),
  "_pool": ("torch", "images without channels or places, of which PyTorch takes some"),
  "unfold(x": ("torch", "images without places, between zeros"),
  "fold(": ("torch", "images without channels"),
  "stft": ("torch", "signals without a batch"),
  "quantile": ("torch", "quantiles of rows, of which there are none"),
  "adaptive": ("mini", "no windows, or windows of nothing"),
  "conv1d": ("any", "no channels: PyTorch's shape is that of no other convolution"),
  "pixel_unshuffle": ("any", "PyTorch leaves nothing as it is"),
  "roll": ("mini", "PyTorch looks at no axis where nothing is rolled"),
  "cummax": ("mini", "PyTorch looks at no axis where nothing is added up"),
  "diff(0": ("mini", "PyTorch looks at no axis where nothing is subtracted"),
  "softshrink(x,float(": ("torch", "all of it is shrunk to 0, or NaN"),
  "elu(x,float(": ("any", "infinitely many of nothing"),
  "x.where(x>0": ("mini", "the condition comes first here, x.where(condition) is a method of the condition"),
}
EMPTY = {"interpolate", "_pool", "unfold(x", "fold(", "stft", "quantile", "conv1d", "pixel_unshuffle", "roll", "cummax",
         "unique_consecutive"}  # fmt: skip # only where there is nothing in x


class Ours:
  """Our functions by PyTorch's names."""

  tensor = Tensor

  def __getattr__(self, name):
    return getattr(Tensor, name, None) or getattr(mini, name)


def result(expression, x, names, functions, refusals):
  """The arrays of its results, or what was raised."""
  try:
    found = eval(expression, {"x": x, "T": names, "F": functions})
    return [np.asarray(t.numpy()) for t in (found if isinstance(found, tuple | list) else [found])]
  except refusals as e:
    return e


def apart(expression, shape, who):
  """Is it known that one of the two refuses this, or that they differ?"""
  return any(
    part in expression and refuses in (who, "any") and (part not in EMPTY or 0 in shape)
    for part, (refuses, _) in APART.items()
  )


def differing(expression, shape, any_number):
  elements = ELEMENTS if any_number else range(-4, 5)
  array = np.random.default_rng(len(expression)).choice(elements, shape).astype(np.float32)
  refusals = (
    RuntimeError,
    IndexError,
    ValueError,
    TypeError,
    OverflowError,
    ZeroDivisionError,
    NotImplementedError,
  )
  theirs = result(expression, torch.from_numpy(array.copy()), torch, F, refusals)
  ours = result(expression, Tensor(array), Ours(), functional, MiniError)
  if isinstance(ours, MiniError):
    if "does not take these arguments" in str(ours):
      return f"says nothing: {ours}"
    wrong = not isinstance(theirs, Exception) and not apart(expression, shape, "mini")
    return f"{ours}, and PyTorch gives {[t.shape for t in theirs]}" if wrong else ""
  if isinstance(theirs, Exception):
    shapes = [t.shape for t in ours]
    return "" if apart(expression, shape, "torch") else f"is of shapes {shapes}, and PyTorch says {theirs}"
  alike = len(ours) == len(theirs) and all(
    a.shape == b.shape and np.allclose(a, b, 1e-4, 1e-37 if any_number else 1e-5, equal_nan=True)
    for a, b in zip(ours, theirs)
  )
  return "" if alike or apart(expression, shape, "values") else f"is {ours}, and in PyTorch {theirs}"


@pytest.mark.parametrize("row", filter(None, re.split(r"   |\n", ROWS)))
def test_numbers_of_all_kinds(row, request, seed):
  draw = random.Random(seed)
  slots = re.findall(r"\{(\w)\}", row)
  drawn = [*itertools.product(*(NUMBERS[s] for s in slots))]
  most = 160 if request.config.option.full else 2
  wrong = []
  with mini.Context(DEV="INTERP"), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for shape in SHAPES:
      for numbers in draw.sample(drawn, min(most, len(drawn))):
        expression = re.sub(r"\{\w\}", "{}", row).format(*numbers)
        if difference := differing(expression, shape, "V" in slots):
          wrong.append(f"x: {shape}  {expression}: {difference}")
  assert not wrong, "\n".join(wrong[:5])


@pytest.mark.parametrize("expression", REFUSED.split())
def test_numbers_that_both_refuse(expression):
  x = np.ones((2, 3), np.float32)
  refusals = RuntimeError, ValueError, OverflowError
  assert isinstance(result(expression, torch.from_numpy(x), torch, F, refusals), refusals)
  ours = result(expression, Tensor(x), Ours(), functional, MiniError)
  assert isinstance(ours, MiniError) and "does not take these arguments" not in str(ours)
