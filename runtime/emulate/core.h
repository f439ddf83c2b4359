// Runs a GPU's kernels on the CPU: grids, groups, threads, barriers, exchanges within a warp. cuda.h, metal.h and opencl.h
// spell their languages with it; check.h, with -DEMULATE_CHECK, watches what the threads touch.
//
// A fiber (a stack, and the registers that a call keeps) runs one thread after another, until a thread has to wait: then
// another fiber goes on. So a kernel without barriers is plain calls on one stack. Which thread goes on is drawn by chance,
// and so is the order of the groups; shared memory is full of NaNs when a group begins. Groups run one after another.
//
// There is no standard header here: kernels may be called like functions of the C library, and compiles are quick.
#pragma once

#if !defined(__x86_64__) || defined(EMULATE_UCONTEXT)
#ifdef __APPLE__
#define _XOPEN_SOURCE 700  // hides them otherwise
#endif
#include <ucontext.h>
#endif

// What is not the kernel's is not to be watched.
#define UNWATCHED no_sanitize("thread"), no_sanitize("undefined")
#define CORE static __attribute__((unused, UNWATCHED))
#define EXPORT extern "C" __attribute__((visibility("default"), UNWATCHED))

namespace emulate {

enum { WARP = 32, MOST_THREADS = 1024, STACK_BYTES = 256 << 10, SLOT_BYTES = 2048 };
enum : unsigned long { STACKS_BYTES = (unsigned long)MOST_THREADS * STACK_BYTES + 64 };

// ---------------------------------------------------------------- switching stacks

#if defined(__x86_64__) && !defined(EMULATE_UCONTEXT)
struct Context {
  void *top;  // of its stack, where the registers lie that a call keeps (System V ABI)
};

// noipa: no caller may conclude from the body which registers it leaves alone.
__attribute__((naked, noinline, noipa, UNWATCHED)) static void swap(Context *from, const Context *to) {
  asm("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
      "mov %rsp, (%rdi)\n mov (%rsi), %rsp\n"
      "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret");
}

CORE void prepare(Context *c, char *stack, void (*entry)()) {
  void **top = (void **)(stack + STACK_BYTES);  // aligned to 16
  *--top = nullptr;                             // a called function finds its stack 8 off
  *--top = (void *)entry;                       // where `ret` goes
  c->top = top - 6;                             // the registers, whatever is in them
}
#else
struct Context {
  ucontext_t registers;
};

CORE void swap(Context *from, const Context *to) { swapcontext(&from->registers, &to->registers); }

CORE void prepare(Context *c, char *stack, void (*entry)()) {
  getcontext(&c->registers);
  c->registers.uc_stack.ss_sp = stack;
  c->registers.uc_stack.ss_size = STACK_BYTES;
  c->registers.uc_link = nullptr;
  makecontext(&c->registers, entry, 0);
}
#endif

// ---------------------------------------------------------------- what runs

struct Dim {
  unsigned x, y, z;
};

static struct {
  Dim thread, group, threads, groups;
} place;  // of the thread that runs

struct Parameter {
  const char *name;
  unsigned nbytes, alignment;
  unsigned element;  // bytes of what a pointer points to; 0: no pointer
};

struct Kernel {
  const char *name;
  void (*call)(void **args);
  unsigned least, most;  // threads of a group
  unsigned nparameters;
  const Parameter *parameters;
};

struct Fiber {
  Context context;
  char *stack;
};

struct Thread {
  Fiber *fiber;    // nullptr: it has not begun
  unsigned turns;  // exchanges that it has taken part in
};

// Constant when the library is loaded: an initialiser that runs would be watched before there is anything to watch.
static struct {
  const Kernel *kernel;
  void **args;
  unsigned size;     // threads of a group
  unsigned current;  // the thread that runs
  unsigned ended;    // threads of this group
  unsigned free[MOST_THREADS], nfree;  // threads that may go on
  Thread threads[MOST_THREADS];
  unsigned at_barrier, line;              // threads that wait at the barrier of this line
  unsigned in_warp[MOST_THREADS / WARP];  // threads of each warp that wait for the others
  unsigned moment;                        // counts barriers, and groups that began
  unsigned group_began;                   // the moment
  unsigned shared_bytes;                  // that this group has taken
  unsigned random;
  Fiber main, *running;
  Fiber fibers[MOST_THREADS], *idle[MOST_THREADS];
  unsigned nfibers, nidle;  // of this launch: what is left of them is thrown away
  char *stacks;             // of the fibers, one after another
  char failure[1024];
  alignas(64) char slots[MOST_THREADS / WARP][2][SLOT_BYTES];  // what the lanes of a warp show one another
} now;

CORE unsigned below(unsigned n) {
  now.random = now.random * 1664525 + 1013904223;
  return (unsigned long long)now.random * n >> 32;
}

CORE unsigned group_number() {
  Dim g = place.group;
  return g.x + place.groups.x * (g.y + place.groups.y * g.z);
}

CORE unsigned lane() { return now.current % WARP; }

CORE unsigned lanes() {  // of this warp: the last one may be smaller
  unsigned first = now.current / WARP * WARP;
  return now.size - first < WARP ? now.size - first : WARP;
}

// Ends the launch. It does not return: what the kernel would do next might well end the process.
template <class... Args> CORE void fail(const char *text, Args... args) {
  int n = __builtin_snprintf(now.failure, sizeof now.failure, "%s: ", now.kernel->name);
  __builtin_snprintf(now.failure + n, sizeof now.failure - n, text, args...);
  if (now.running != &now.main) swap(&now.running->context, &now.main.context);
}

CORE void become(unsigned t) {
  unsigned x = place.threads.x, y = place.threads.y;
  now.current = t;
  place.thread = x == now.size ? Dim{t, 0, 0} : Dim{t % x, t / x % y, t / x / y};
}

CORE void life();

CORE Fiber *idle_fiber() {
  if (now.nidle) return now.idle[--now.nidle];
  if (!now.stacks) now.stacks = (char *)__builtin_malloc(STACKS_BYTES);  // what is not touched takes no memory
  Fiber *f = &now.fibers[now.nfibers];
  f->stack = (char *)((__UINTPTR_TYPE__)(now.stacks + 63) & ~63ul) + now.nfibers++ * (unsigned long)STACK_BYTES;
  prepare(&f->context, f->stack, life);
  return f;
}

// The fiber of a thread that may go on, drawn by chance; one that has not begun begins on `own`, or on an idle fiber.
CORE Fiber *next(Fiber *own) {
  if (!now.nfree) return &now.main;
  unsigned n = below(now.nfree), t = now.free[n];
  now.free[n] = now.free[--now.nfree];
  become(t);
  Thread &thread = now.threads[t];
  if (!thread.fiber) thread.fiber = own ? own : idle_fiber();
  return thread.fiber;
}

// Returns when somebody lets this fiber go on.
CORE void go_on(Fiber *to) {
  Fiber *from = now.running;
  if (from == to) return;
  now.running = to;
  swap(&from->context, &to->context);
}

// Of a fiber: one thread after another.
CORE void life() {
  for (;;) {
    now.kernel->call(now.args);
    now.ended++;
    Fiber *mine = now.running, *then = next(mine);
    if (then == mine) continue;
    now.idle[now.nidle++] = mine;
    go_on(then);
  }
}

// ---------------------------------------------------------------- waiting

// Until all threads of the group are here. line: of the source, which tells this barrier from others.
CORE void barrier_at(unsigned line) {
  if (now.at_barrier++ == 0) now.line = line;
  if (line != now.line) return fail("divergent barrier: threads of a group wait in line %u and in line %u", now.line, line);
  if (now.at_barrier == now.size) {
    now.at_barrier = 0;
    now.moment++;
    for (unsigned t = 0; t < now.size; t++) now.free[now.nfree++] = t;
  }
  go_on(next(nullptr));
}

CORE void sync_warp() {
  unsigned warp = now.current / WARP, n = lanes();
  if (++now.in_warp[warp] == n) {
    now.in_warp[warp] = 0;
    for (unsigned i = 0; i < n; i++) now.free[now.nfree++] = warp * WARP + i;
  }
  go_on(next(nullptr));
}

// Memory in which the lanes of a warp show one another something. There are two for each warp, used in turn: who fills the
// next but one knows that all lanes have come to the next, and so are done with this.
CORE char *slot() { return now.slots[now.current / WARP][now.threads[now.current].turns++ & 1]; }

// x of every lane of the warp.
template <class T> CORE const T *gather(T x) {
  static_assert(WARP * sizeof(T) <= SLOT_BYTES, "fits");
  T *all = (T *)slot();
  all[lane()] = x;
  sync_warp();
  return all;
}

template <class T> CORE T from_lane(T x, unsigned other) { return gather(x)[other < lanes() ? other : lane()]; }

#ifdef EMULATE_CHECK
}  // namespace emulate
#include "check.h"
namespace emulate {
#else
CORE void watch_begin() {}
CORE void watch_shared(const char *, void *, long, unsigned) {}
CORE void watch_end() {}
#endif

// ---------------------------------------------------------------- shared memory

struct Shared {  // an array of it
  unsigned since;  // the moment at which the group began whose it is
};

// The first thread of a group that comes to a declaration fills the memory with NaNs.
CORE void share(Shared *s, const char *name, void *array, long nbytes, unsigned element) {
  if (s->since == now.group_began) return;
  s->since = now.group_began;
  now.shared_bytes += nbytes;
  if (now.shared_bytes > EMULATE_SHARED_BYTES)
    fail("takes %u bytes of shared memory; there are %u", now.shared_bytes, EMULATE_SHARED_BYTES);
  watch_shared(name, array, nbytes, element);
  __builtin_memset(array, 0xff, nbytes);
}

// ---------------------------------------------------------------- launches

// Runs all threads of a group; false: it failed.
CORE bool run_group() {
  now.group_began = ++now.moment;
  now.ended = now.at_barrier = now.nfree = now.shared_bytes = 0;
  for (unsigned w = 0; w * WARP < now.size; w++) now.in_warp[w] = 0;
  for (unsigned t = 0; t < now.size; t++) {
    now.threads[t] = {nullptr, 0};
    now.free[now.nfree++] = t;
  }
  go_on(next(nullptr));  // returns when no thread may go on
  if (!now.failure[0] && now.ended < now.size) {
    unsigned n = 0;
    for (unsigned w = 0; w * WARP < now.size; w++) n += now.in_warp[w];
    fail("divergent barrier: of the %u threads of group %u, %u wait at a barrier, %u for the other lanes of their warp, "
         "and %u have ended", now.size, group_number(), now.at_barrier, n, now.ended);
  }
  return !now.failure[0];
}

// A step with which start, start + step, ... (mod n) are all numbers below n: it has no factor in common with n.
CORE unsigned long long stride(unsigned long long n) {
  for (int tries = 0; tries < 16 && n > 1; tries++) {
    unsigned long long step = 1 + below(n - 1), a = step, b = n;
    while (b) {
      unsigned long long rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return step;
  }
  return 1;
}

CORE void launch(const Kernel *kernel, const unsigned *grid, const unsigned *block, void **args) {
  unsigned long long groups = 1ull * grid[0] * grid[1] * grid[2], threads = 1ull * block[0] * block[1] * block[2];
  now.kernel = kernel;
  now.args = args;
  now.failure[0] = 0;
  now.running = &now.main;
  if (threads < kernel->least || threads > kernel->most)
    return fail("%llu threads in a group: it takes %u to %u", threads, kernel->least, kernel->most);
  now.nfibers = now.nidle = 0;
  now.size = threads;
  place.threads = {block[0], block[1], block[2]};
  place.groups = {grid[0], grid[1], grid[2]};
  watch_begin();
  unsigned long long g = groups ? below(groups) : 0, step = stride(groups);
  bool well = true;
  for (unsigned long long n = 0; n < groups && well; n++, g = (g + step) % groups) {
    place.group = {unsigned(g % grid[0]), unsigned(g / grid[0] % grid[1]), unsigned(g / grid[0] / grid[1])};
    well = run_group();
  }
  if (well) watch_end();
}

// Where each argument lies in a buffer that holds them one after another, each aligned as its type.
CORE void unpack(const Kernel *kernel, char *buffer, void **args) {
  unsigned long at = 0;
  for (unsigned n = 0; n < kernel->nparameters; n++) {
    unsigned long a = kernel->parameters[n].alignment;
    at = (at + a - 1) / a * a;
    args[n] = buffer + at;
    at += kernel->parameters[n].nbytes;
  }
}

}  // namespace emulate

// ---------------------------------------------------------------- what a library exports

EXPORT const char *emulate_failure() {
  static char text[sizeof emulate::now.failure];
  __builtin_memcpy(text, emulate::now.failure, sizeof text);
  emulate::now.failure[0] = 0;
  return text;
}

EXPORT unsigned long emulate_stacks(char *memory) {
  if (memory) emulate::now.stacks = memory;
  return emulate::STACKS_BYTES;
}

EXPORT void emulate_seed(unsigned seed) { emulate::now.random = seed * 2654435761u + 1; }

#ifndef EMULATE_CHECK
EXPORT void emulate_extents(long, void **, const long *) {}
EXPORT void emulate_touched(long, unsigned char *) {}
#endif

#define EMULATE_KERNEL(name, call, least, most, nparameters, ...)                                         \
  static const emulate::Parameter name##__parameters[] = {__VA_ARGS__};                                   \
  CORE void name##__call(void **args) { call; }                                                           \
  static const emulate::Kernel name##__kernel = {#name, name##__call, least, most, nparameters,           \
                                                 name##__parameters};                                     \
  EXPORT void name##__launch(const unsigned *grid, const unsigned *block, void **args) {                  \
    emulate::launch(&name##__kernel, grid, block, args);                                                  \
  }                                                                                                       \
  EXPORT void name##__unpack(char *buffer, void **args) { emulate::unpack(&name##__kernel, buffer, args); }

// Behind the declaration of an array of shared memory.
#define EMULATE_SHARED(array)                                                            \
  {                                                                                      \
    static emulate::Shared shared;                                                       \
    emulate::share(&shared, #array, array, sizeof array, emulate::element_bytes(array)); \
  }
