"""What a tensor is, and its values."""


def back(t):
  t = t.detach().requires_grad_()
  (t * t).sum().backward()
  return t.grad


INPUTS = {"back": back}

ROWS = """
*: x.ndim   x.dim()   x.numel()   x.nbytes   x.element_size()   x.is_floating_point()   x.tolist()   x.realize() => x   x.detach()   x.data   len(x)   int(x[0,0,0] > 0)   bool(x[0,0,0] > 0)
*: tuple(x.shape)   tuple(x.size())   x.size(-1)   x.dtype.itemsize   x[0,0,0].item()   x.requires_grad   x.grad is None   x.is_leaf   [t for t in y] => list(y)
f: float(s)
y.requires_grad_().grad_dtype.name => str(y.dtype)[6:]   T.result_type(y,i).name => str(torch.result_type(y,i))[6:]   T.result_type(h,y[0,0],2).name => str(torch.result_type(h,y[0,0]))[6:]   T.result_type(i,0.5).name => str(torch.result_type(i,0.5))[6:]
f~: y.requires_grad_().is_leaf   y.assign(p) => p   y.replace(p) => p   back(y)   (y.requires_grad_()*y).sum().gradient(y) => 2*y
x.contiguous().realize().is_realized => True   bool((y.numpy() == y.tolist()).all()) => True   x.device in ('CPU','INTERP','CL','CUDA','METAL') => True
"""

MISTAKES = """
y.realize(3)              !   realize: others is 3, not a tensor
y.assign(v)               !   a.assign(b): a has shape (3, 4), b has (4,)
y.replace(3)              !   replace: x is 3, not a tensor
y.type_as(3)              !   type_as: other is 3, not a tensor
y.gradient(v)             !   x.gradient(w): y has 12 elements; a loss has one
y.sum().gradient(v, gradient=y)   !   what is passed back does not have the shape of y
y.sum().gradient(3)       !   gradient: wrt is 3, not a tensor
y.register_hook(print)    !   register_hook(f): x does not require a gradient
y.cuda('a')               !   cuda: index is 'a', not an integer
"""
