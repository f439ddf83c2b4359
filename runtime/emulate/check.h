// With -DEMULATE_CHECK: what the threads of a launch touch, and a report of the first access that is wrong.
//
//   outside   of all memory that the launch was given, of shared memory, and of the thread's own stack
//   a race    two threads touch one element and one of them writes, with no barrier between. Groups have none. Two that
//             write one value are no race: tiles that overlap do so
//   a bad index of an array whose size the source says, and an address that is no multiple of its type's alignment
//
// The compiler's instrumentation (-fsanitize=thread,bounds,alignment) calls a hook before each access. The hooks are here:
// the sanitizers' own runtimes know nothing of fibers, and are not linked. Not looked at: the error word, which any of the
// threads that fail may set; and exchanges within a warp as an order of memory, for which a barrier is needed.
#pragma once

namespace emulate {

struct Access {
  unsigned moment;  // 0: there was none
  unsigned thread;  // counted through all groups
};

// One element's history. Two readers are kept: whoever writes, one of them is another thread.
struct Cell {
  Access write, read[2];  // the last write; readers since the last barrier (or of an earlier time, if there are none)
  Access before;          // a reader in an earlier group
};

struct Region {
  char *start;
  long nbytes;
  unsigned shift;    // an element has 1 << shift bytes: the smallest of all that point here
  const char *name;  // of shared memory; nullptr: a launch's memory
  Cell *cells;
};

enum { MOST_REGIONS = 256 };

static struct {
  Region regions[MOST_REGIONS];
  unsigned nregions;
  Region *last;  // that was found
  char *pointers[MOST_REGIONS];  // of each parameter; nullptr: it is none
  char *error;
  struct {
    const char *p;
    unsigned thread;
    Access other;
    unsigned long long met;  // a bit for each byte that is another thread's, too
    char held[64];
  } again;  // a write over another thread's, whose values are to be compared
  struct {
    char *start;
    long nbytes;
  } extents[MOST_REGIONS];
  unsigned nextents;
} watched;

CORE unsigned my_number() { return group_number() * now.size + now.current; }

// ---------------------------------------------------------------- regions

CORE void add_region(char *start, long nbytes, unsigned element, const char *name) {
  if (watched.nregions == MOST_REGIONS) return;
  unsigned shift = __builtin_ctz(element);
  Cell *cells = (Cell *)__builtin_calloc((nbytes >> shift) + 1, sizeof(Cell));
  watched.regions[watched.nregions++] = {start, nbytes, shift, name, cells};
}

CORE bool holds(const Region *r, const char *p) { return p >= r->start && p < r->start + r->nbytes; }

CORE Region *find(const char *p) {
  if (watched.last && holds(watched.last, p)) return watched.last;
  for (unsigned n = 0; n < watched.nregions; n++)
    if (holds(&watched.regions[n], p)) return watched.last = &watched.regions[n];
  return nullptr;
}

CORE void forget() {
  for (unsigned n = 0; n < watched.nregions; n++) __builtin_free(watched.regions[n].cells);
  watched.nregions = 0;
}

// ---------------------------------------------------------------- reports

// "a1[12]": an address as somebody who reads the source would call it. Where no region holds it, the nearest does.
struct Named {
  char text[96];
  char memory[64];  // the elements that there are
};

CORE Named named(const char *p) {
  Named named = {};
  const Region *nearest = nullptr;
  unsigned long best = ~0ul;
  for (unsigned n = 0; n < watched.nregions; n++) {
    const Region *r = &watched.regions[n];
    unsigned long off = p < r->start ? r->start - p : p >= r->start + r->nbytes ? p - r->start - r->nbytes + 1 : 0;
    if (off < best) best = off, nearest = r;
  }
  if (!nearest) {
    __builtin_snprintf(named.text, sizeof named.text, "%p", (const void *)p);
    return named;
  }
  const char *name = nearest->name ? nearest->name : "memory", *start = nearest->start;
  long element = 1 << nearest->shift;
  const char *base = nullptr;
  for (unsigned i = 0; i < now.kernel->nparameters; i++) {  // the pointer that is nearest below, or the first there is
    const char *q = watched.pointers[i];
    if (!q || !holds(nearest, q) || (base && (q > p || q <= base))) continue;
    base = start = q;
    name = now.kernel->parameters[i].name;
    element = now.kernel->parameters[i].element;
  }
  long at = p - start;
  at = at >= 0 ? at / element : -((-at + element - 1) / element);
  __builtin_snprintf(named.text, sizeof named.text, "%s[%ld]", name, at);
  __builtin_snprintf(named.memory, sizeof named.memory, "it has %ld elements",
                     (nearest->start + nearest->nbytes - start) / element);
  return named;
}

CORE void report_outside(const char *p, long nbytes, bool write) {
  Named n = named(p);
  fail("thread %u of group %u %s %ld bytes at %s, outside of all memory that it was given: %s", now.current,
       group_number(), write ? "writes" : "reads", nbytes, n.text, n.memory);
}

CORE void report_race(const char *p, unsigned me, bool write, Access other, bool wrote) {
  fail("a race: thread %u of group %u %s %s, and thread %u of group %u %s it, with no barrier between", me % now.size,
       me / now.size, write ? "writes" : "reads", named(p).text, other.thread % now.size, other.thread / now.size,
       wrote ? "writes" : "reads");
}

// ---------------------------------------------------------------- accesses

// May this access and mine happen at once? It is of this launch: cells are new in each.
CORE bool meets(Access other, bool shared) {
  if (other.moment == now.moment) return other.thread != my_number();
  return other.moment && other.moment < now.group_began && !shared;  // shared memory is another in each group
}

// A write over another thread's: what the memory held is compared with what it holds when the next hook is called. Of a
// vector's store at p that is an element here, or several; the others may change.
CORE void remember(const char *p, const char *here, unsigned element, Access other) {
  auto &again = watched.again;
  if (!again.met) again.p = p, again.thread = my_number(), again.other = other;
  for (unsigned n = 0; n < element; n++) {
    long at = here + n - p;
    if (at < 0 || at >= (long)sizeof again.held) continue;
    again.held[at] = p[at];
    again.met |= 1ull << at;
  }
}

CORE void compare() {
  const auto &again = watched.again;
  unsigned long long met = again.met;
  watched.again.met = 0;
  for (; met; met &= met - 1) {
    unsigned n = __builtin_ctzll(met);
    if (again.p[n] != again.held[n]) return report_race(again.p + n, again.thread, true, again.other, true);
  }
}

// p: where all that the access touches begins, of which this is one element.
CORE void record(const Region *r, long element, bool write, const char *p) {
  Cell *c = &r->cells[element];
  const char *here = r->start + (element << r->shift);
  bool shared = r->name;
  Access mine = {now.moment, my_number()};
  if (meets(c->write, shared)) {
    if (!write) return report_race(here, mine.thread, write, c->write, true);
    remember(p, here, 1 << r->shift, c->write);
  }
  if (write) {
    const Access readers[] = {c->read[0], c->read[1], c->before};
    for (Access a : readers)
      if (meets(a, shared)) return report_race(here, mine.thread, write, a, false);
    c->write = mine;
  } else if (c->read[0].moment != now.moment) {
    if (c->read[0].moment && c->read[0].moment < now.group_began) c->before = c->read[0];
    c->read[0] = mine;
    c->read[1] = {};
  } else if (c->read[0].thread != mine.thread) {
    c->read[1] = mine;
  }
}

CORE bool is_own(const char *p) {  // the thread's stack, its place, the error word
  return (unsigned long)(p - now.running->stack) < STACK_BYTES || (unsigned long)(p - (char *)&place) < sizeof place ||
         (unsigned long)(p - watched.error) < 8;
}

CORE void touch(const void *address, long nbytes, bool write) {
  const char *p = (const char *)address;
  compare();
  if (is_own(p) || !nbytes) return;
  const Region *r = find(p);
  if (!r || p + nbytes > r->start + r->nbytes) {
    if (watched.nextents) report_outside(p, nbytes, write);
    return;
  }
  if (!r->cells) return;
  long at = p - r->start;
  for (long e = at >> r->shift; e <= (at + nbytes - 1) >> r->shift; e++) record(r, e, write, p);
}

// ---------------------------------------------------------------- what core.h says

CORE void watch_begin() {
  const Parameter *parameters = now.kernel->parameters;
  unsigned n = now.kernel->nparameters;
  forget();
  watched.last = nullptr;
  watched.again.met = 0;
  watched.error = nullptr;
  for (unsigned i = 0; i < n; i++) {
    watched.pointers[i] = parameters[i].element ? *(char **)now.args[i] : nullptr;
    if (__builtin_strcmp(parameters[i].name, "err") == 0) {
      watched.error = watched.pointers[i];
      watched.pointers[i] = nullptr;
    } else if (watched.pointers[i] && i + 1 < n && !parameters[i + 1].element) {  // OpenCL's offset
      watched.pointers[i] += *(long *)now.args[i + 1];
    }
  }
  for (unsigned e = 0; e < watched.nextents; e++) {
    Region r = {watched.extents[e].start, watched.extents[e].nbytes};
    unsigned element = 16;
    for (unsigned i = 0; i < n; i++)
      if (watched.pointers[i] && holds(&r, watched.pointers[i]) && parameters[i].element < element)
        element = parameters[i].element;
    add_region(r.start, r.nbytes, element, nullptr);
  }
}

CORE void watch_shared(const char *name, void *array, long nbytes, unsigned element) {
  compare();
  for (unsigned n = 0; n < watched.nregions; n++)
    if (watched.regions[n].start == array) return;
  add_region((char *)array, nbytes, element, name);
}

CORE void watch_end() { compare(); }

// ---------------------------------------------------------------- hooks

#define HOOK extern "C" __attribute__((visibility("hidden"), used, UNWATCHED))
#define HOOKS(size)                                                          \
  HOOK void __tsan_read##size(void *p) { touch(p, size, false); }            \
  HOOK void __tsan_write##size(void *p) { touch(p, size, true); }            \
  HOOK void __tsan_unaligned_read##size(void *p) { touch(p, size, false); }  \
  HOOK void __tsan_unaligned_write##size(void *p) { touch(p, size, true); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
HOOK void __tsan_read_range(void *p, unsigned long n) { touch(p, n, false); }
HOOK void __tsan_write_range(void *p, unsigned long n) { touch(p, n, true); }
HOOK void *__tsan_memcpy(void *to, const void *from, unsigned long n) {
  touch(from, n, false);
  touch(to, n, true);
  return __builtin_memcpy(to, from, n);
}
HOOK void *__tsan_memset(void *to, int value, unsigned long n) {
  touch(to, n, true);
  return __builtin_memset(to, value, n);
}
HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void *) {}
HOOK void __tsan_func_exit() {}

// What the compiler tells of a place in the source: https://github.com/llvm/llvm-project, compiler-rt/lib/ubsan/ubsan_value.h
struct Location {
  const char *file;
  unsigned line, column;
};
struct Type {
  unsigned short kind, info;
  char name[1];  // 'float [256]', with the quotes
};
struct OutOfBounds {
  Location location;
  const Type *array, *index;
};
struct Mismatch {
  Location location;
  const Type *type;
  unsigned char log_alignment, kind;
};

HOOK void __ubsan_handle_out_of_bounds(const OutOfBounds *found, unsigned long index) {
  fail("thread %u of group %u, line %u: index %ld of an array %s", now.current, group_number(),
       found->location.line, (long)index, found->array->name);
}
HOOK void __ubsan_handle_type_mismatch_v1(const Mismatch *found, unsigned long address) {
  fail("thread %u of group %u, line %u: %s is no multiple of %u bytes, the alignment of %s", now.current,
       group_number(), found->location.line, named((const char *)address).text, 1u << found->log_alignment,
       found->type->name);
}

}  // namespace emulate

EXPORT void emulate_extents(long count, void **starts, const long *nbytes) {
  emulate::forget();
  emulate::watched.nextents = 0;
  for (long n = 0; n < count && n < emulate::MOST_REGIONS; n++)
    emulate::watched.extents[emulate::watched.nextents++] = {(char *)starts[n], nbytes[n]};
}

EXPORT void emulate_touched(long extent, unsigned char *flags) {
  if (extent < 0 || extent >= (long)emulate::watched.nregions) return;
  const emulate::Region r = emulate::watched.regions[extent];  // extents come first
  for (long n = 0; r.cells && n < r.nbytes; n++) {
    const emulate::Cell *c = &r.cells[n >> r.shift];
    flags[n] = c->write.moment ? 2 : c->read[0].moment ? 1 : 0;
  }
}
