// Stands in for libobjc and Metal: the classes that runtime/metal.py uses. Kernels are compiled by $FAKE_METAL_COMPILER,
// a command that is given two paths: Metal source, and the shared library to make of it (compile.py, beside this).
//
// It is stricter than what it stands for. Committed work is put off until somebody waits for it, or 64 command buffers are
// behind it: who reads too early reads old data. In a concurrent encoder what stands between two barriers runs backwards.
// Fresh memory is poison. What would end the process on a Mac, or leak there, ends it here, with a line on stderr. What a
// GPU finds, a bad dispatch or a copy past the end, is the command buffer's error.
//
// For tests: fake_live(class) counts objects, fake_fail(selector, n) lets a message fail, fake_threads limits groups.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 31, PENDING = 64, POISON = 0xA5, ENQUEUED = 1, COMMITTED = 2, COMPLETED = 4, FAILED = 5 };
typedef unsigned long ulong;
typedef const char *SEL;
typedef struct { ulong w, h, d; } Size;
typedef struct { ulong location, length; } Range;
typedef struct Object *id;

typedef struct {  // a dispatch, or a copy of n bytes where there is no pipeline
  int batch;      // in one batch order is free
  id pipeline, buffers[SLOTS];
  ulong offsets[SLOTS], n;
  Size groups, threads;
} Command;

struct Object {
  const char *class;
  int references, state;  // state: a command buffer's status; of an encoder, has it ended; of options, is fast math off
  char *text;             // of a string, an error, a class, a function; of a command buffer, why it failed
  void *data;             // of a buffer, a library (its handle), a function and a pipeline (their code)
  ulong n;                // bytes of a buffer, items of an array
  id parent, *items;      // kept alive; an encoder's parent is its command buffer
  Command *commands, now; // of a command buffer; of an encoder, what is set for the next dispatch
  int ncommands, batch, concurrent;
  double begun, ended;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *format, ...) {
  va_list values;
  va_start(values, format);
  fputs("fake Metal: ", stderr);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  abort();
}

// ---------------------------------------------------------------- objects

static struct { const char *class; long n; } counts[32];

static long count(const char *class, long change) {
  pthread_mutex_lock(&lock);
  int i = 0;
  while (counts[i].class && strcmp(counts[i].class, class)) i++;
  counts[i].class = class;
  long n = counts[i].n += change;
  pthread_mutex_unlock(&lock);
  return n;
}

long fake_live(const char *class) { return count(strdup(class), 0); }

static id make(const char *class) {
  id o = calloc(1, sizeof *o);
  o->class = class;
  o->references = 1;
  count(class, 1);
  return o;
}

static id make_text(const char *class, const char *text) {
  id o = make(class);
  o->text = strdup(text);
  return o;
}

static id retain(id o) {
  if (o) __atomic_add_fetch(&o->references, 1, __ATOMIC_SEQ_CST);
  return o;
}

static void release(id o) {  // what is freed stays as a corpse, so that a message to it is noticed
  if (!o || __atomic_sub_fetch(&o->references, 1, __ATOMIC_SEQ_CST)) return;
  if (strstr(o->class, "Encoder") && !o->state) die("a %s was freed before endEncoding", o->class);
  for (Command *c = o->commands; c < o->commands + o->ncommands; c++) {
    release(c->pipeline);
    for (int i = 0; i < SLOTS; i++) release(c->buffers[i]);
  }
  if (!strcmp(o->class, "Buffer")) memset(o->data, POISON, o->n), free(o->data);
  if (!strcmp(o->class, "Array")) for (ulong i = 0; i < o->n; i++) release(o->items[i]);
  release(o->parent);
  free(o->commands);
  free(o->text);
  count(o->class, -1);
}

static __thread id autoreleases[1 << 14];
static __thread long nautoreleases, npools, pools[1 << 12], serial;  // a pool: its serial number << 16 | where it begins

static id autoreleased(id o) {
  if (!npools) die("a %s was autoreleased without a pool: it leaks", o->class);
  if (nautoreleases == 1 << 14) die("the autorelease pool has %ld objects", nautoreleases);
  return autoreleases[nautoreleases++] = o;
}

void *objc_autoreleasePoolPush(void) {
  if (npools == 1 << 12) die("%ld autorelease pools are open", npools);
  return (void *)(pools[npools++] = ++serial << 16 | nautoreleases);
}

void objc_autoreleasePoolPop(void *pool) {  // and those that were begun inside it
  while (npools && pools[npools - 1] != (long)pool) npools--;
  if (!npools--) die("an autorelease pool was ended twice, or by another thread");
  while (nautoreleases > ((long)pool & 0xffff)) release(autoreleases[--nautoreleases]);
}

static id new_options(id class) { return make("CompileOptions"); }
static id string(id class, SEL op, const char *text) { return autoreleased(make_text("String", text)); }
static char *text_of(id o) { return o->text; }
static id description(id o) { return autoreleased(make_text("String", o->text)); }
static ulong length(id o) { return o->n; }
static id item(id o, SEL op, ulong n) { return n < o->n ? o->items[n] : (die("objectAtIndex: %lu of %lu", n, o->n), NULL); }

static id array(id *items, ulong n) {
  id o = make("Array");
  o->items = memcpy(malloc(n * sizeof *items + 1), items, n * sizeof *items);
  o->n = n;
  return o;
}

// ---------------------------------------------------------------- devices and memory

ulong fake_threads = 1024;  // of a group, at most, in pipelines that are made from now on

static id device(const char *name, ulong number) {
  id o = make_text("Device", name);
  o->n = number;
  return o;
}

id MTLCreateSystemDefaultDevice(void) { return device("fake Apple M1", 7); }
id MTLCopyAllDevices(void) { return array((id[]){device("fake eGPU", 8), device("fake Apple M1", 7)}, 2); }
static ulong registry(id o) { return o->n; }
static int has_family(id o, SEL op, long family) { return o->n == 7 && family <= 1007; }
static ulong working_set(id o) { return 1ul << 33; }
static ulong longest(id o) { return 1ul << 32; }
static ulong threadgroup_bytes(id o) { return 32768; }
static id new_queue(id o) { return make("Queue"); }

static id new_buffer(id o, SEL op, ulong n, ulong options) {
  if (!n) die("a buffer of 0 bytes");
  id b = make("Buffer");
  b->data = memset(aligned_alloc(4096, (n + 4095) / 4096 * 4096), POISON, n);
  b->n = n;
  return b;
}

static id new_buffer_with(id o, SEL op, const void *bytes, ulong n, ulong options) {
  id b = new_buffer(o, op, n, options);
  memcpy(b->data, bytes, n);
  return b;
}

static void *contents(id o) { return o->data; }

// ---------------------------------------------------------------- code

static void set_fast_math(id o, SEL op, char on) { o->state = !on; }
static void set_option(id o, SEL op, ulong value) {}

static id new_library(id o, SEL op, id source, id options, id *error) {
  char folder[] = "/tmp/fake-metal-XXXXXX", command[4096], words[8192] = "";
  if (!options || !options->state) die("source is compiled with fast math");
  if (!mkdtemp(folder)) die("no temporary folder");
  snprintf(command, sizeof command, "cat >%s/source.metal && cd %s && %s %s/source.metal %s/code.so 2>%s/words", folder, folder,
           getenv("FAKE_METAL_COMPILER"), folder, folder, folder);
  FILE *compiler = popen(command, "w");
  fputs(source->text, compiler);
  id library = NULL;
  if (pclose(compiler) == 0) {
    snprintf(command, sizeof command, "%s/code.so", folder);
    library = make_text("Library", source->text);
    library->data = dlopen(command, RTLD_NOW | RTLD_LOCAL);
    if (!library->data) die("%s", dlerror());
  } else {
    snprintf(command, sizeof command, "%s/words", folder);
    FILE *f = fopen(command, "r");
    words[f ? fread(words, 1, sizeof words - 1, f) : 0] = 0;
    if (f) fclose(f);
    *error = autoreleased(make_text("Error", words));
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) ? die("%s", command), NULL : library;
}

static id function_names(id o) {
  id names[4096];
  ulong n = 0;
  for (char *at = o->text; n < 4096 && (at = strstr(at, "kernel void ")); n++) {
    at += strlen("kernel void ");
    names[n] = make_text("String", "");
    names[n]->text = strndup(at, strcspn(at, "("));
  }
  return autoreleased(array(names, n));
}

static id new_function(id o, SEL op, id name) {
  char symbol[512];
  snprintf(symbol, sizeof symbol, "%s__launch", name->text);
  void *code = dlsym(o->data, symbol);
  if (!code) return NULL;
  id f = make_text("Function", name->text);
  f->data = code;
  f->parent = retain(o);
  return f;
}

static id new_pipeline(id o, SEL op, id function, id *error) {
  id p = make_text("Pipeline", function->text);
  p->data = function->data;
  p->parent = retain(function);
  p->n = fake_threads;
  return p;
}

// ---------------------------------------------------------------- commands

static id pending[PENDING];
static int npending;

static char *message(const char *format, ...) {
  char *text;
  va_list values;
  va_start(values, format);
  return vasprintf(&text, format, values) < 0 ? NULL : text;
}

static char *copy(Command *c) {
  id from = c->buffers[0], to = c->buffers[1];
  if ((c->n | c->offsets[0] | c->offsets[1]) & 3) return message("a copy's size and offsets are no multiples of 4");
  if (c->offsets[0] + c->n > from->n || c->offsets[1] + c->n > to->n) return message("a copy goes past the end of a buffer");
  memcpy((char *)to->data + c->offsets[1], (char *)from->data + c->offsets[0], c->n);
  return NULL;
}

static char *dispatch(Command *c) {
  ulong threads = c->threads.w * c->threads.h * c->threads.d, groups = c->groups.w * c->groups.h * c->groups.d;
  void *pointers[SLOTS], *args[SLOTS];
  if (!groups || !threads) return message("%s: a dispatch of nothing", c->pipeline->text);
  if (threads > c->pipeline->n) return message("%s: %lu threads in a group, at most %lu", c->pipeline->text, threads, c->pipeline->n);
  for (int i = 0; i < SLOTS; i++) {
    if (c->buffers[i] && c->offsets[i] >= c->buffers[i]->n) return message("%s: offset %lu of buffer %d is past its end", c->pipeline->text, c->offsets[i], i);
    pointers[i] = c->buffers[i] ? (char *)c->buffers[i]->data + c->offsets[i] : NULL;
    args[i] = &pointers[i];
  }
  void (*kernel)(const unsigned *, const unsigned *, void **) = c->pipeline->data;
  kernel((unsigned[]){c->groups.w, c->groups.h, c->groups.d}, (unsigned[]){c->threads.w, c->threads.h, c->threads.d}, args);
  const char *(*failure)(void) = dlsym(c->pipeline->parent->parent->data, "emulate_failure");
  const char *words = failure ? failure() : "";
  return *words ? strdup(words) : NULL;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void execute(id o) {
  o->begun = now();
  for (int first = 0, end; first < o->ncommands && !o->text; first = end) {
    for (end = first; end < o->ncommands && o->commands[end].batch == o->commands[first].batch; end++) {}
    for (int i = end; i-- > first && !o->text;) o->text = o->commands[i].pipeline ? dispatch(&o->commands[i]) : copy(&o->commands[i]);
  }
  o->ended = now();
  __atomic_store_n(&o->state, o->text ? FAILED : COMPLETED, __ATOMIC_SEQ_CST);
}

static void execute_first(int n) {
  id done[PENDING];
  memcpy(done, pending, n * sizeof *done);
  memmove(pending, pending + n, (npending -= n) * sizeof *pending);
  for (int i = 0; i < n; i++) execute(done[i]);
  pthread_mutex_unlock(&lock);  // to free is to count, which locks
  for (int i = 0; i < n; i++) release(done[i]);
  pthread_mutex_lock(&lock);
}

static id command_buffer(id o) { return autoreleased(make("CommandBuffer")); }

static void commit(id o) {
  if (o->state >= COMMITTED) die("a command buffer was committed twice");
  pthread_mutex_lock(&lock);
  if (npending == PENDING) execute_first(1);
  o->state = COMMITTED;
  pending[npending++] = retain(o);
  pthread_mutex_unlock(&lock);
}

static void failing_commit(id o) {
  o->text = strdup("told to fail");
  commit(o);
}

static void wait(id o) {
  if (o->state < COMMITTED) die("who waits for a command buffer that was not committed waits for ever");
  pthread_mutex_lock(&lock);
  int n = 0;
  while (n < npending && pending[n] != o) n++;
  if (n < npending) execute_first(n + 1);
  pthread_mutex_unlock(&lock);
}

static ulong status(id o) { return __atomic_load_n(&o->state, __ATOMIC_SEQ_CST); }
static id error_of(id o) { return o->text ? autoreleased(make_text("Error", o->text)) : NULL; }
static double begun(id o) { return o->begun; }
static double ended(id o) { return o->ended; }

static id encoder(id o, const char *class, int concurrent) {
  if (o->state) die("an encoder for a command buffer that was committed");
  id e = make(class);
  e->parent = retain(o);
  e->concurrent = concurrent;
  o->batch++;
  return autoreleased(e);
}

static id compute_encoder(id o, SEL op, ulong type) { return encoder(o, "ComputeEncoder", type == 1); }
static id blit_encoder(id o) { return encoder(o, "BlitEncoder", 0); }

static void end_encoding(id o) {
  if (o->state++) die("endEncoding was sent twice");
}

static void barrier(id o, SEL op, ulong scope) {
  if (scope == 1) o->parent->batch++;
}

static void record(id o) {
  if (o->state) die("a command after endEncoding");
  id b = o->parent;
  b->commands = realloc(b->commands, (b->ncommands + 1) * sizeof *b->commands);
  Command *c = &b->commands[b->ncommands++];
  *c = o->now;
  if (!o->concurrent) b->batch++;
  c->batch = b->batch;
  retain(c->pipeline);
  for (int i = 0; i < SLOTS; i++) retain(c->buffers[i]);
}

static void set_pipeline(id o, SEL op, id pipeline) { o->now.pipeline = pipeline; }

static void set_buffers(id o, SEL op, id *buffers, ulong *offsets, Range range) {
  if (range.location + range.length > SLOTS) die("%lu buffers are bound, there are %d slots", range.location + range.length, SLOTS);
  memcpy(o->now.buffers + range.location, buffers, range.length * sizeof *buffers);
  memcpy(o->now.offsets + range.location, offsets, range.length * sizeof *offsets);
}

static void dispatch_groups(id o, SEL op, Size groups, Size threads) {
  if (!o->now.pipeline) die("a dispatch without a pipeline");
  o->now.groups = groups;
  o->now.threads = threads;
  record(o);
}

static void copy_buffer(id o, SEL op, id source, ulong from, id target, ulong to, ulong n) {
  o->now = (Command){.buffers = {source, target}, .offsets = {from, to}, .n = n};
  record(o);
}

// ---------------------------------------------------------------- messages

static char responds(id o, SEL op, SEL asked);
static const struct { const char *class, *selector; void *method; } methods[] = {
  {"Class", "new", new_options}, {"Class", "stringWithUTF8String:", string},
  {"String", "UTF8String", text_of}, {"Error", "localizedDescription", description},
  {"Array", "count", length}, {"Array", "objectAtIndex:", item},
  {"Device", "name", description}, {"Device", "registryID", registry}, {"Device", "supportsFamily:", has_family},
  {"Device", "recommendedMaxWorkingSetSize", working_set}, {"Device", "maxBufferLength", longest},
  {"Device", "maxThreadgroupMemoryLength", threadgroup_bytes}, {"Device", "newCommandQueue", new_queue},
  {"Device", "newBufferWithLength:options:", new_buffer}, {"Device", "newBufferWithBytes:length:options:", new_buffer_with},
  {"Device", "newLibraryWithSource:options:error:", new_library},
  {"Device", "newComputePipelineStateWithFunction:error:", new_pipeline},
  {"CompileOptions", "setFastMathEnabled:", set_fast_math}, {"CompileOptions", "setMathMode:", set_option},
  {"CompileOptions", "setLanguageVersion:", set_option},
  {"Library", "functionNames", function_names}, {"Library", "newFunctionWithName:", new_function},
  {"Pipeline", "maxTotalThreadsPerThreadgroup", length}, {"Buffer", "contents", contents},
  {"Queue", "commandBuffer", command_buffer}, {"CommandBuffer", "commit", commit}, {"CommandBuffer", "waitUntilCompleted", wait},
  {"CommandBuffer", "status", status}, {"CommandBuffer", "error", error_of},
  {"CommandBuffer", "GPUStartTime", begun}, {"CommandBuffer", "GPUEndTime", ended},
  {"CommandBuffer", "computeCommandEncoderWithDispatchType:", compute_encoder}, {"CommandBuffer", "blitCommandEncoder", blit_encoder},
  {"ComputeEncoder", "setComputePipelineState:", set_pipeline}, {"ComputeEncoder", "setBuffers:offsets:withRange:", set_buffers},
  {"ComputeEncoder", "memoryBarrierWithScope:", barrier},
  {"ComputeEncoder", "dispatchThreadgroups:threadsPerThreadgroup:", dispatch_groups},
  {"BlitEncoder", "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", copy_buffer},
  {"", "endEncoding", end_encoding}, {"", "retain", retain}, {"", "release", release}, {"", "respondsToSelector:", responds},
};

static void *method(id o, SEL selector) {
  for (unsigned i = 0; i < sizeof methods / sizeof *methods; i++)
    if ((!*methods[i].class || !strcmp(methods[i].class, o->class)) && !strcmp(methods[i].selector, selector)) return methods[i].method;
  return NULL;
}

static char responds(id o, SEL op, SEL asked) { return method(o, asked) != NULL; }

SEL sel_registerName(const char *name) {
  static const char *names[512];
  static int n;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (i < n && strcmp(names[i], name)) i++;
  if (i == n) names[n++] = strdup(name);
  pthread_mutex_unlock(&lock);
  return names[i];
}

id objc_getClass(const char *name) {
  static struct Object classes[2] = {{"Class", 1, .text = "NSString"}, {"Class", 1, .text = "MTLCompileOptions"}};
  for (int i = 0; i < 2; i++) if (!strcmp(classes[i].text, name)) return &classes[i];
  return NULL;
}

static const char *to_fail;
static long fail_after;

// The message after n more of this kind fails: it returns nil. What a failing commit starts fails.
void fake_fail(const char *selector, long n) { to_fail = sel_registerName(selector), fail_after = n; }

static long nothing(void) { return 0; }

__attribute__((visibility("hidden"), used)) void *fake_lookup(id o, SEL selector) {
  if (!o) return nothing;
  if (o->references <= 0) die("%s was sent to a %s that was freed", selector, o->class);
  if (selector == to_fail && fail_after-- == 0) return strcmp(selector, "commit") ? (void *)nothing : (void *)failing_commit;
  void *found = method(o, selector);
  if (!found) die("-[%s %s]: unrecognized selector", o->class, selector);
  return found;
}

// Finds the method, and jumps to it with the arguments as they came. No message here has a floating-point argument.
#ifdef __x86_64__
__asm__(".globl objc_msgSend\nobjc_msgSend:\n"
        "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\nsub $8, %rsp\n"
        "call fake_lookup\nmov %rax, %r11\n"
        "add $8, %rsp\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\njmp *%r11\n");
#elif defined __aarch64__
__asm__(".globl objc_msgSend\nobjc_msgSend:\n"
        "stp x29, x30, [sp, #-80]!\nstp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
        "bl fake_lookup\nmov x16, x0\n"
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\nldp x29, x30, [sp], #80\nbr x16\n");
#endif
