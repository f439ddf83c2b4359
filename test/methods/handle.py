"""What a tensor is, and its values."""


def back(t):
  t = t.detach().requires_grad_()
  (t * t).sum().backward()
  return t.grad


INPUTS = {"back": back}

ROWS = """
*: x.ndim   x.dim()   x.numel()   x.nbytes   x.element_size()   x.is_floating_point()   x.tolist()   x.realize() => x   x.detach()   len(x)   int(x[0,0,0] > 0)   bool(x[0,0,0] > 0)
*: tuple(x.shape)   tuple(x.size())   x.size(-1)   x.dtype.itemsize   x[0,0,0].item()   x.requires_grad   x.grad is None   x.is_leaf   [t for t in y] => list(y)
f: float(s)
f~: y.requires_grad_().is_leaf   y.assign(p) => p   y.replace(p) => p   back(y)   (y.requires_grad_()*y).sum().gradient(y) => 2*y
x.contiguous().realize().is_realized => True   bytes(y.data()) => np.array(y).tobytes()   bool((y.numpy() == y.tolist()).all()) => True   x.device in ('CPU','INTERP','CL','CUDA','METAL') => True
"""
