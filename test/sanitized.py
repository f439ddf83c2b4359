"""An independent check of what is printed: C under the address and undefined behaviour sanitizers, its buffers between
pages that nobody may touch, on data that no index should be made of.

`found_wrong(kernels)` says of each kernel what its C did wrong: an access outside of a buffer or a stage, an index that
left the numbers of its type, or a result that depends on what no one has written: memory of stages is filled once with
zeros and once with a pattern, and buffers lie once at the beginning and once at the end of their pages.

Sums and products of data may wrap: they are printed as unsigned ones or, of vectors, as functions where overflow is
not looked for. Many kernels are one program, and each runs in a process of its own.
"""

import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from mini.engine.launch import interface
from mini.render.c import fitting
from mini.render.cstyle import Renderer, RenderError, link
from mini.render.spelling import WRAPPING

FLAGS = ["-w", "-O0", "-std=gnu11", "-march=native", "-fno-strict-aliasing", "-ffp-contract=off",
         "-fsanitize=address,undefined", "-fno-sanitize=alignment", "-fno-sanitize-recover=all", "-x", "c", "-",
         "-lm"]  # fmt: skip
WRAPPING_VECTORS = (("add", "signed", "return a + b;"), ("mul", "signed", "return a * b;"))
FILLS = ("zero", "pattern")  # what stages hold before they are written

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { PAGE = 1 << 16 };
static unsigned long long state;
static unsigned long long draw(void) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return state >> 33 | state << 31;
}
static long long whole(int nbytes, int is_signed) {  /* numbers that no index should be */
  int bits = 8 * nbytes - is_signed;
  long long most = bits == 64 ? -1ll : (long long)((1ull << bits) - 1), least = is_signed ? -most - 1 : 0;
  switch (draw() % 8) {
    case 0: return most; case 1: return least; case 2: return most - draw() % 9; case 3: return least + draw() % 9;
    case 4: return -1; case 5: return (long long)(1ull << draw() % 64); default: return draw() % 9;
  }
}
static void fill(char *p, long count, const char *kind, int nbytes) {
  for (long n = 0; n < count; n++) {
    long long i = whole(nbytes, kind[0] == 'i');
    double d = (double)(draw() % 64) - 32;
    float f = (float)d;
    if (kind[0] == 'b') { i = draw() & 1; }
    if (kind[0] == 'f') { i = nbytes == 2 ? draw() & 0x3fff : 0; memcpy(&i, nbytes == 8 ? (void *)&d : (void *)&f, nbytes > 2 ? nbytes : 0); }
    memcpy(p + n * nbytes, &i, nbytes);
  }
}
static char *between_guards(long nbytes, int at_end) {
  long size = (nbytes + PAGE - 1) / PAGE * PAGE;
  char *p = mmap(0, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || (size && mprotect(p + PAGE, size, PROT_READ | PROT_WRITE))) _exit(77);
  return p + PAGE + (at_end ? size - nbytes : 0);
}
typedef struct { const char *kind; int nbytes; long count; } Param;
typedef struct { const char *name; void (*run)(void **, long, long); long extent; int params; const Param *param; } Kernel;
static void once(const Kernel *k, int seed, int at_end, unsigned long long *hash) {
  void *args[65];
  state = seed * 977 + 1;
  for (int n = 0; n < k->params; n++) {
    args[n] = between_guards(k->param[n].count * k->param[n].nbytes, at_end);
    fill(args[n], k->param[n].count, k->param[n].kind, k->param[n].nbytes);
  }
  args[k->params] = between_guards(8, at_end);
  k->run(args, 0, k->extent);
  for (int n = 0; n < k->params; n++)
    for (long i = 0; i < k->param[n].count * k->param[n].nbytes; i++)
      *hash = (*hash ^ ((unsigned char *)args[n])[i]) * 1099511628211ull;
}
int main(void) {
  for (const Kernel *k = kernels; k->name; k++)
    for (int seed = 0; seed < SEEDS; seed++) {
      fflush(stdout);
      pid_t child = fork();
      if (child == 0) {
        unsigned long long first = 1, second = 1;
        alarm(20);
        once(k, seed, 0, &first);
        once(k, seed, 1, &second);
        printf("= %s %d %llx%s\\n", k->name, seed, first, first == second ? "" : " depends on where its buffers are");
        fflush(stdout);
        _exit(0);
      }
      int status;
      waitpid(child, &status, 0);
      if (status) printf("! %s %d\\n", k->name, status);
    }
  return 0;
}
"""


def language(kernel, width):
  """C, where data may wrap: vectors of it in functions where overflow is not looked for, as no index is in any."""
  lang = fitting(kernel, width)
  vectors = (*WRAPPING_VECTORS, *lang.vector_rows) if lang.width > 1 else ()
  prelude = lang.prelude.replace("always_inline", 'no_sanitize("signed-integer-overflow")')
  rows = (*WRAPPING, *lang.rows)
  return replace(lang, rows=rows, vector_rows=vectors, prelude=prelude, found={}, words=set())


def printed(kernels, width):
  """(names, C): a function for each kernel that this language can express, k0 and on, by their number."""
  made = {}
  for n, k in enumerate(kernels):
    try:
      r = Renderer(k, language(k, width), f"k{n}")
      made[n] = r.source(), tuple(r.helpers.items())
    except RenderError:
      pass
  return list(made), link(made.values(), language(kernels[0], width).prelude)


def table(kernels, numbers, seeds):
  from golden_sources import extent

  rows, params = [], []
  for n in numbers:
    memory = interface(kernels[n])
    cells = [(m.dtype.kind, m.dtype.itemsize, count(m.shape)) for m in memory]
    listed = ", ".join(f'{{"{kind}", {size}, {total}}}' for kind, size, total in cells)
    params.append(f"static const Param p{n}[] = {{{listed}}};")
    rows.append(f'{{"k{n}", k{n}, {extent(kernels[n])}, {len(cells)}, p{n}}}')
  listed = ",\n  ".join([*rows, "{0}"])
  before, after = MAIN.split("static void once(")
  text = f"{before}{chr(10).join(params)}\nstatic const Kernel kernels[] = {{\n  {listed}\n}};\nstatic void once({after}"
  return text.replace("SEEDS", str(seeds))


def count(shape):
  total = 1
  for n in shape:
    total *= n
  return total


def found_wrong(kernels, widths=(1, 8), seeds=3):
  """{number of a kernel: what its C does wrong}"""
  wrong = {}
  for width in widths:
    numbers, source = printed(kernels, width)
    if not numbers:
      continue
    results = {}
    for fill in FILLS:
      for n, seed, said in run(source + table(kernels, numbers, seeds), fill):
        if said.startswith("!"):
          wrong.setdefault(n, f"width {width}: {said[2:]}")
        elif results.setdefault((n, seed), said) != said or "depends" in said:
          wrong.setdefault(n, f"width {width}: its results depend on what nobody has written")
  return wrong


def run(source, fill):
  """(kernel, seed, what it printed at the end, or ! and the sanitizer's words)"""
  with tempfile.TemporaryDirectory() as folder:
    program = str(Path(folder, "program"))
    command = ["gcc", *FLAGS, f"-ftrivial-auto-var-init={fill}", "-o", program]
    built = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
    assert built.returncode == 0, built.stderr[:2000]
    options = {
      "ASAN_OPTIONS": "detect_leaks=0:color=never:symbolize=0",
      "UBSAN_OPTIONS": "color=never:symbolize=0",
    }
    ran = subprocess.run([program], text=True, capture_output=True, env=options, check=False)
  assert ran.returncode == 0, ran.stderr[-2000:]
  words = iter(re.findall(r"runtime error: .*|ERROR: AddressSanitizer: .*", ran.stderr))
  found = []
  for line in ran.stdout.splitlines():
    kind, name, rest = line.split(" ", 2)
    seed = rest.split()[0] if kind == "=" else ""
    said = line if kind == "=" else "! " + next(words, f"status {rest}")
    found.append((int(name[1:]), seed, said))
  return found
