#!/usr/bin/env bash
# Builds pycuda and installs it, with the python that is first on PATH: `bash test/fake/pycuda.sh`. It takes two minutes, and
# neither a GPU nor a CUDA toolkit: headers come as wheels, and libcuda.c, beside this, is what it is linked to. Where a driver
# is installed, pycuda finds that when it runs. curand, which the wheels lack and mini has no use for, is left out.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python -m pip install -q --target "$work/wheels" --no-deps 'nvidia-cuda-runtime==13.*' 'nvidia-cuda-profiler-api==13.*'
cuda="$work/wheels/nvidia/cu13"
ln -s libcudart.so.13 "$cuda/lib/libcudart.so"
gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$cuda/lib/libcuda.so" "$here/libcuda.c"

python -m pip download -q --no-deps --no-binary pycuda -d "$work" pycuda==2026.1
tar -xzf "$work"/pycuda-*.tar.gz -C "$work"
cat > "$work/pycuda-2026.1/siteconf.py" <<PY
CUDA_ROOT = "$cuda"
CUDA_ENABLE_CURAND = False
CUDADRV_LIB_DIR = CUDART_LIB_DIR = ["$cuda/lib"]
LDFLAGS = ["-s"]
PY
python -m pip install -q "$work/pycuda-2026.1"
