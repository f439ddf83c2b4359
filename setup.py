"""Packaging: `mini` and, beside it, `runtime`. Only NumPy is needed; the rest are extras."""

import re
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = re.search(r'__version__ = "(.+)"', (here / "mini/__init__.py").read_text(encoding="utf-8"))
assert version, "mini/__init__.py has no __version__"
LINUX_X86 = "sys_platform == 'linux' and platform_machine == 'x86_64'"

setup(
  name="mini",
  version=version[1],
  description="A small fast tensor library whose every stage is text",
  long_description=(here / "README.md").read_text(encoding="utf-8"),
  long_description_content_type="text/markdown",
  license="MIT",
  author="the mini authors",
  python_requires=">=3.10",
  packages=find_packages(include=["mini", "mini.*", "runtime", "runtime.*"]),
  package_data={"": ["*.c", "*.h", "*.txt", "py.typed"]},
  install_requires=["numpy>=1.24"],
  extras_require={
    # With a driver for CPUs, which a machine that has none runs on. 2026.2 of it computes some minima of int64 wrongly.
    "opencl": ["pyopencl", f"intel-opencl-rt<2026; {LINUX_X86}", f"intel-cmplr-lib-rt<2026; {LINUX_X86}"],
    "cuda": ["nvidia-cuda-nvrtc"],
    "pycuda": ["pycuda"],  # built from source, with a CUDA toolkit; without it the driver is called by ctypes
    "examples": ["matplotlib", "tokenizers"],
    "blas": ["scipy-openblas64"],  # examples/blas_rewrite.py
    "test": ["pytest", "pytest-xdist", "safetensors"],
  },
  classifiers=[
    "Programming Language :: Python :: 3",
    "Operating System :: POSIX :: Linux",
    "Operating System :: MacOS",
    "Typing :: Typed",
  ],
  zip_safe=False,
)
