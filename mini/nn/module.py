"""Module: a part of a model, with tensors and other modules as attributes.

Nothing needs it: nn.state and nn.optim take plain classes with `__call__` and tensors as attributes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mini.engine.device_of import place
from mini.ir import graph
from mini.ir.uop import UOp
from mini.nn.state import Matched, get_state_dict, load_state_dict, members, walk
from mini.tensor import Tensor
from mini.tensor.autograd import no_grad
from mini.tensor.concat import wanted_of
from mini.tensor.errors import fail
from mini.tensor.handle import on_device, untagged
from mini.tensor.trace import local
from mini.tensor.views import let_go
from mini.types import DType, DTypeError, MiniError, dtypes, real_of


def Parameter(data: Any, requires_grad: bool = True) -> Tensor:
  """A tensor that is trained: a leaf that requires a gradient.

  >>> Parameter(Tensor.zeros(2)).requires_grad
  True
  """
  t = data if isinstance(data, Tensor) else Tensor(data)
  return without_base(t.detach().requires_grad_(requires_grad))


def without_base(t: Tensor) -> Tensor:
  """A view that does not keep its base: of values that were made for it nobody else asks."""
  let_go(t)
  return t


def brought(x: Any, home: str, near: dict[Tensor, Tensor]) -> Any:
  """What is given to a module, on its device; what has no memory goes along anyway."""
  if not isinstance(x, Tensor) or place(x._parts()[0]._uop) in ("", home) or not isinstance(x.device, str):
    return x
  if x not in near:
    near[x] = x.to(home)
  return near[x]


def placed(u: UOp, device: Any, kind: DType | None) -> UOp:
  u = u if kind is None or u.dtype.kind != "f" else graph.cast(u, kind)
  return u if device is None else on_device(u, device)


def _names(x: Any) -> list[str]:
  """The names of the modules that are directly in a module, list or dict."""
  return [name for name, v in members(x) if isinstance(v, (Module, list, dict))]


def _item(x: Any, name: str) -> list[Any]:
  """[the module of this name in x], or nothing."""
  return [v for n, v in members(x) if n == name and n in _names(x)]


class ModuleHook:
  """A function that a module calls before or after `forward`."""

  changed = 0  # how often hooks of any module came or went

  @staticmethod
  def changes() -> int:
    """What was captured before the last of them is captured again."""
    return ModuleHook.changed

  def __init__(self, f: Callable[..., Any], before: bool, with_kwargs: bool, module: Module):
    self.f, self.before, self.with_kwargs, self.module = f, before, with_kwargs, module

  def remove(self) -> None:
    """End it."""
    self.module._set_hooks(tuple(h for h in self.module._hooks if h is not self))


class Module:
  """A part of a model, as PyTorch's: define `forward`; attributes that require a gradient are its parameters.

  >>> class Net(Module):
  ...   def __init__(self):
  ...     self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
  ...   def forward(self, x):
  ...     return self.second(self.first(x).relu())
  >>> Net()(Tensor.ones(3, 4)).shape
  (3, 2)
  """

  _training: bool = True
  _trained: frozenset[str] = frozenset()  # attributes that are parameters, frozen or not
  _transient: frozenset[str] = frozenset()  # buffers that are not persistent
  _hooks: tuple[ModuleHook, ...] = ()

  @property
  def training(self) -> bool:
    """Is it being trained? What a jitted function captured is looked up by that."""
    if local.current is not None:
      local.current.relies(self._mode)
    return self._training

  @training.setter
  def training(self, mode: bool) -> None:
    self._training = mode

  def _mode(self) -> bool:
    return self._training

  def __setattr__(self, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
      object.__setattr__(self, "_trained", self._trained | {name})
    object.__setattr__(self, name, value)

  def forward(self, *args: Any, **kwargs: Any) -> Any:
    """What the module computes; calling the module calls this."""
    raise MiniError(f"{type(self).__name__} has no forward()")

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    if local.current is not None:
      local.current.relies(ModuleHook.changes)
    home = self._home()
    if home:
      near: dict[Tensor, Tensor] = {}  # one copy of what is given twice
      args = tuple(brought(x, home, near) for x in args)
      kwargs = {name: brought(x, home, near) for name, x in kwargs.items()}
    try:
      return self._hooked(args, kwargs) if self._hooks else self.forward(*args, **kwargs)
    except AttributeError as e:
      if isinstance(e.obj, (np.ndarray, list, int, float)) and any(e.obj is x for x in args):
        kind = type(e.obj).__name__
        fail(DTypeError, f"{type(self).__name__}(x): x is of type {kind}, not a tensor; Tensor(x) would fit")
      raise

  def _hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for hook in [h for h in self._hooks if h.before]:
      found = hook.f(self, args, kwargs) if hook.with_kwargs else hook.f(self, args)
      if found is not None and hook.with_kwargs:
        args, kwargs = found
      elif found is not None:
        args = found if isinstance(found, tuple) else (found,)
    out = self.forward(*args, **kwargs)
    for hook in [h for h in self._hooks if not h.before]:
      found = hook.f(self, args, kwargs, out) if hook.with_kwargs else hook.f(self, args, out)
      out = out if found is None else found
    return out

  def register_forward_pre_hook(
    self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
  ) -> ModuleHook:
    """Call hook(module, args) before every forward; what it returns, unless None, takes the place of args.

    with_kwargs: hook(module, args, kwargs), which returns both. prepend: before the other hooks. `.remove()` of what
    this returns ends it.
    """
    return self._hook(ModuleHook(hook, True, with_kwargs, self), prepend)

  def register_forward_hook(
    self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
  ) -> ModuleHook:
    """Call hook(module, args, output) after every forward; what it returns, unless None, takes the output's place.

    with_kwargs: hook(module, args, kwargs, output). `.remove()` of what this returns ends it.

    >>> layer, seen = nn.ReLU(), []
    >>> hook = layer.register_forward_hook(lambda module, args, output: seen.append(output.shape))
    >>> y = layer(Tensor.ones(2, 3)); hook.remove(); y = layer(y)
    >>> seen
    [(2, 3)]
    """
    return self._hook(ModuleHook(hook, False, with_kwargs, self), prepend)

  def _hook(self, hook: ModuleHook, prepend: bool) -> ModuleHook:
    self._set_hooks((hook, *self._hooks) if prepend else (*self._hooks, hook))
    return hook

  def _set_hooks(self, hooks: tuple[ModuleHook, ...]) -> None:
    ModuleHook.changed += local.current is None
    self._hooks = hooks

  def _home(self) -> str:
    """The device of the tensors that are attributes of this module; "" where there are none, or not all are on one."""
    found = {place(t._parts()[0]._uop) for t in vars(self).values() if isinstance(t, Tensor)} - {""}
    return home if len(found) == 1 and isinstance(home := found.pop(), str) else ""

  def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
    """A tensor that is state, but not trained; one that is not persistent is moved with the module, but is not in its
    `state_dict`.

    >>> layer = nn.Linear(2, 3)
    >>> layer.register_buffer("mask", Tensor.ones(3), persistent=False)
    >>> [*layer.state_dict()], [name for name, _ in layer.named_buffers()]
    (['weight', 'bias'], ['mask'])
    """
    self._transient = self._transient - {name} if persistent else self._transient | {name}
    setattr(self, name, None if tensor is None else without_base(tensor.detach()))

  def register_parameter(self, name: str, param: Tensor | None) -> None:
    """An attribute by name, as is `add_module`: PyTorch's names of `setattr`."""
    setattr(self, name, param)

  def add_module(self, name: str, module: Module | None) -> None:
    """A module as an attribute by name."""
    setattr(self, name, module)

  # ---------------------------------------------------------------- what is in it

  def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
    """This module and those in it, each once, with their paths."""
    seen: set[int] = set()
    for name, m in walk(self, prefix):
      if isinstance(m, Module) and id(m) not in seen:
        seen.add(id(m))
        yield name, m

  def modules(self) -> Iterator[Module]:
    """This module and those in it, each once."""
    return (m for _, m in self.named_modules())

  def named_children(self) -> Iterator[tuple[str, Module]]:
    """The modules that are attributes of this one."""
    return ((name, m) for name, m in vars(self).items() if isinstance(m, Module))

  def children(self) -> Iterator[Module]:
    """The modules that are attributes of this one."""
    return (m for _, m in self.named_children())

  def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """The parameters with their paths. A shared one comes once, under its first name.

    >>> [name for name, p in nn.Sequential(nn.Linear(2, 3), nn.ReLU()).named_parameters()]
    ['0.weight', '0.bias']
    """
    trained = {id(getattr(m, name, None)) for m in self.modules() for name in m._trained}
    seen: set[int] = set()
    for name, t in get_state_dict(self, prefix).items():
      if (t.requires_grad or id(t) in trained) and id(t) not in seen:
        seen.add(id(t))
        yield name, t

  def parameters(self) -> Iterator[Tensor]:
    """The parameters, each once."""
    return (t for _, t in self.named_parameters())

  def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """What is state and no parameter, with its path, each once.

    >>> [name for name, _ in nn.BatchNorm1d(2).named_buffers()]
    ['running_mean', 'running_var', 'num_batches_tracked']
    """
    seen = {id(p) for p in self.parameters()}
    for name, t in get_state_dict(self, prefix, every=True).items():
      if id(t) not in seen:
        seen.add(id(t))
        yield name, t

  def buffers(self) -> Iterator[Tensor]:
    """What is state and no parameter, each once."""
    return (t for _, t in self.named_buffers())

  def get_submodule(self, target: str) -> Any:
    """The module at a path; this one at "". AttributeError where there is none.

    >>> nn.Sequential(nn.Sequential(nn.Linear(2, 3))).get_submodule("0.0").out_features
    3
    """
    found: Any = self
    for n, name in enumerate(target.split(".") if target else ()):
      if not (inner := _item(found, name)):
        where = ".".join(target.split(".")[:n]) or type(self).__name__
        raise AttributeError(
          f"{where} has no module {name!r}; there are {', '.join(_names(found)) or 'none'}"
        )
      found = inner[0]
    return found

  def set_submodule(self, target: str, module: Any) -> None:
    """Put another module at a path. AttributeError where there is none.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> model.set_submodule("1", nn.GELU())
    >>> type(model[1]).__name__
    'GELU'
    """
    path, _, name = target.rpartition(".")
    self.get_submodule(target)
    owner = self.get_submodule(path)
    if isinstance(owner, list):
      owner[int(name)] = module
    elif isinstance(owner, dict):
      owner[name] = module
    else:
      setattr(owner, name, module)

  def get_parameter(self, target: str) -> Tensor:
    """The parameter, or another tensor of the state, at a path. AttributeError where there is none."""
    found = self.state_dict()
    if target not in found:
      raise AttributeError(f"{type(self).__name__} has no parameter {target!r}")
    return found[target]

  def requires_grad_(self, requires_grad: bool = True) -> Module:
    """Train its parameters, or freeze them."""
    for p in list(self.parameters()):
      p.requires_grad_(requires_grad)
    return self

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Forget the gradients of its parameters; or, if they are not to become None, make them zeros."""
    for p in self.parameters():
      if set_to_none or p.grad is None:
        p.grad = None
      else:
        with no_grad():
          p.grad.zero_()

  def to(self, *args: Any, **kwargs: Any) -> Module:
    """Put its tensors, and their gradients, on a device: `model.layers[6:].to("CL")`; and give those of float types
    another type: `model.to(dtypes.float16)`, or both. They stay the same tensors, so an optimizer that has them goes on
    with them. With a complex type they become complex, and others: an optimizer is to be made afterwards.

    A module whose own tensors (attributes, not those of modules in it) are on one device copies the tensors that it is
    called with there, if they are on another; what it returns is there, too. So a model that lies on several devices
    needs no other change: a forward pass has a copy where it crosses from one to another, and a backward pass one for
    each of those. A tensor that several modules share is on one device. On several devices, `model.to(("CUDA",
    "CUDA:1"))`, each has all of them, for batches that are there in parts: see Tensor.shard.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> model[1:].to("CPU:1")(Tensor.ones(3, 8)).device
    'CPU:1'
    >>> model(Tensor.ones(3, 4)).device
    'CPU:1'
    """
    device, kind = wanted_of(args, kwargs)
    if kind is not None and kind.kind == "c":
      self._complex(kind)
      kind = real_of(kind)  # of the parts
    tensors = [p for t in dict.fromkeys(get_state_dict(self, every=True).values()) for p in t._parts()]
    for t in tensors:
      grad = t.grad
      node = placed(untagged(t._node), device, kind)
      if t._is_own_tag():
        t._tag(node)
      else:
        t._node = node
      if grad is not None:
        t.grad = Tensor(placed(grad._node, device, kind))
    if tensors:
      Tensor.realize(*tensors, *(t.grad for t in tensors if t.grad is not None))
    return self

  def _complex(self, kind: DType) -> None:
    """Put complex tensors in the place of those of floats, which they cannot become."""
    new: dict[Tensor, Tensor] = {}
    for _, owner in list(walk(self)):
      for name, t in members(owner) if not isinstance(owner, Tensor) else ():
        if isinstance(t, Tensor) and t.dtype.kind == "f":
          found = new.get(t)
          if found is None:
            found = new[t] = t.detach().cast(kind).requires_grad_(t.requires_grad)
          _put(owner, name, found)

  def cpu(self) -> Module:
    """`to("CPU")`."""
    return self.to("CPU")

  def cuda(self, index: int = 0) -> Module:
    """`to` a CUDA device, by its number."""
    return self.to(f"CUDA:{index}")

  def half(self) -> Module:
    """`to(dtypes.float16)`."""
    return self.to(dtypes.float16)

  def bfloat16(self) -> Module:
    """`to(dtypes.bfloat16)`."""
    return self.to(dtypes.bfloat16)

  def float(self) -> Module:
    """`to(dtypes.float32)`."""
    return self.to(dtypes.float32)

  def double(self) -> Module:
    """`to(dtypes.float64)`."""
    return self.to(dtypes.float64)

  def apply(self, f: Any) -> Module:
    """Call f with every module in this one, then with this one."""
    for m in reversed(list(self.modules())):
      f(m)
    return self

  # ---------------------------------------------------------------- state

  def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
    """Its tensors by path, shared ones under each of their names."""
    return get_state_dict(self, prefix)

  def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Matched:
    """Take values over from a state_dict; what only one side has is returned. See nn.state.load_state_dict."""
    return load_state_dict(self, state_dict, strict)

  def train(self, mode: bool = True) -> Module:
    """Training, in which dropout acts. It is on at the beginning, as in PyTorch."""
    for m in self.modules():
      m.training = mode
    return self

  def eval(self) -> Module:
    """The opposite of `train()`."""
    return self.train(False)

  # ---------------------------------------------------------------- text

  def extra_repr(self) -> str:
    """What `repr` says between the parentheses."""
    return ""

  def __repr__(self) -> str:
    inner = [f"({name}): {m!r}".replace("\n", "\n  ") for name, m in self.named_children()]
    lines = ([self.extra_repr()] if self.extra_repr() else []) + inner
    if not inner:
      return f"{type(self).__name__}({self.extra_repr()})"
    return "\n  ".join([f"{type(self).__name__}(", *lines]) + "\n)"


def _put(owner: Any, name: str, value: Any) -> None:
  """A member by its name in a path."""
  if isinstance(owner, dict):
    owner[next(key for key in owner if str(key) == name)] = value
  elif isinstance(owner, list):
    owner[int(name)] = value
  else:
    setattr(owner, name, value)


def layers_of(names: dict[str, Any]) -> list[str]:
  """The classes of modules among these names: what `nn` shows of a file."""
  classes = [(name, x) for name, x in names.items() if isinstance(x, type) and not name.startswith("_")]
  return [name for name, x in classes if issubclass(x, Module) and x is not Module]


__all__ = ["Module", "Parameter", "layers_of"]
