"""Where things stand: a room imports those below it, and nothing above, not in a function either."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent

# fmt: off
ROOMS = {  # from the ground up; folders of mini, or files in it
  "runtime":   "runtime",                                                     # shims: open, compile, launch
  "base":      "types stats config command limited shapes",                   # what all of mini uses
  "ir":        "ir",                                                          # nodes, operations, algebra
  "gradients": "grad gradient_rules accumulation changes",                    # graphs made of graphs
  "schedule":  "schedule",                                                    # graphs to kernels
  "codegen":   "codegen",                                                     # recipes
  "render":    "render",                                                      # languages
  "text":      "text",                                                        # print, parse, verify
  "engine":    "engine",                                                      # programs, devices, caches
  "tensor":    "tensor",                                                      # what users hold
  "jit":       "capture compiled_function fast_call jitted pullback compiled",
  "formats":   "quantization float8",
  "nn":        "nn",
  "surfaces":  "autograd distributions drawing extend fft lazy_shapes named_axes numpy signal special",
  "tools":     "__init__ __main__ opsuite reference tune",
}
UPWARD = {  # with the reason
  ("codegen.recipe",    "text.verifier"):    "what a step makes is verified at once",
  ("codegen.search",    "text.verifier"):    "... and what a search tries",
  ("grad",              "engine.device_of"): "gradients are made where their tensors are",
  ("gradient_rules",    "engine.device_of"): "...",
  ("accumulation",      "engine.device_of"): "...",
  ("ir.sizes",          "tensor.errors"):    "an error of a size names the user's line",
  ("tensor.arrange",    "named_axes"):       "rename gives a tensor its names",
  ("tensor.lapack",     "extend.host"):      "LAPACK is a function of the host's",
}
# fmt: on
LEVEL = {name: n for n, names in enumerate(ROOMS.values()) for name in names.split()}
ROOM = {name: room for room, names in ROOMS.items() for name in names.split()}


def imports(path):
  """The modules of ours that a file imports when it runs, in functions, too."""
  tree = ast.parse(path.read_text())
  typing = {
    id(inner)
    for node in ast.walk(tree)
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    for line in node.body
    for inner in ast.walk(line)
  }
  for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom) and id(node) not in typing:
      for name in node.names if (node.module or "").split(".")[0] in ("mini", "runtime") else ():
        whole = Path(*node.module.split("."), name.name)
        is_module = (ROOT / whole).is_dir() or (ROOT / f"{whole}.py").exists()
        yield f"{node.module}.{name.name}" if is_module else node.module


def top(module):
  """The folder of mini, or the file in it, that a module is; "runtime" for those beside it."""
  first, *rest = module.split(".")
  return first if first == "runtime" else rest[0] if rest else "__init__"


def test_imports_lead_downwards():
  upward = set()
  for package in ("mini", "runtime"):
    for path in sorted((ROOT / package).rglob("*.py")):
      module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
      here = top(module)
      assert here in LEVEL, f"{path}: in which room is it?"
      for target in imports(path):
        if target != "mini" and LEVEL[top(target)] > LEVEL[here]:
          upward.add((module.removeprefix("mini."), target.removeprefix("mini.")))
  assert upward == UPWARD.keys()
