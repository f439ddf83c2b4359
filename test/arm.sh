#!/usr/bin/env bash
# The C for Arm, on x86-64 Debian: a Python for arm64, emulated by QEMU, runs mini; its C compiler is a cross compiler.
#
#   bash test/arm.sh [WORD ...]                            a command of that Python; by default the operations on four types
#   CROSS="clang --target=aarch64-linux-gnu" bash test/arm.sh -m pytest -q test/test_codegen.py
#
# It takes two packages from apt where they are missing (20 s), and unpacks Python's into a folder of its own. What is
# emulated is slow and says nothing about speed; all operations on all types take about four minutes.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v aarch64-linux-gnu-gcc qemu-aarch64-static >/dev/null || {
  apt-get update -qq && apt-get install -qqy gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static >/dev/null
}

mkdir -p "$work"/{apt/lists/partial,archives/partial,debs,system,site,wheels}
apt=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
     -o "Dir::State=$work/apt" -o Dir::State::Status=/dev/null -o "Dir::Cache=$work")
apt-get "${apt[@]}" update
version=$(apt-cache "${apt[@]}" depends python3-minimal | sed -n 's/.*Depends: python\(3\.[0-9]*\)-minimal.*/\1/p' | head -1)
cd "$work/debs"
apt-get "${apt[@]}" download "python$version-minimal" "libpython$version-minimal" "libpython$version-stdlib" libc6 libgcc-s1 \
  libstdc++6 libssl3 zlib1g libexpat1 libffi8 libbz2-1.0 liblzma5 libuuid1 libsqlite3-0
for deb in *.deb; do dpkg -x "$deb" "$work/system"; done
cd "$root"
python3 -m pip download -q --disable-pip-version-check --only-binary=:all: --platform manylinux_2_28_aarch64 \
  --platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 --python-version "$version" -d "$work/wheels" numpy pytest
for wheel in "$work"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$work/site"; done

# a cross compiler knows no native processor
cat > "$work/cc" <<SH
#!/usr/bin/env bash
args=(); for a in "\$@"; do [ "\$a" = -mcpu=native ] || args+=("\$a"); done
exec ${CROSS:-aarch64-linux-gnu-gcc} "\${args[@]}"
SH
cat > "$work/python" <<SH
#!/usr/bin/env bash
exec qemu-aarch64-static -L "$work/system" "$work/system/usr/bin/python$version" "\$@"
SH
echo "import sys; sys.executable = '$work/python'" > "$work/site/sitecustomize.py"  # processes that it starts, too
chmod +x "$work/cc" "$work/python"
export PYTHONPATH="$root:$work/site" CC="$work/cc" CACHE="$work/cache" OPENBLAS_NUM_THREADS=1
[ $# -gt 0 ] || set -- -m mini test-device CPU --types float32,float16,int8,int64
"$work/python" "$@"
