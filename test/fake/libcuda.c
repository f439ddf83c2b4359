// Stands in for NVIDIA's driver, libcuda.so.1: what runtime/driver.py calls, and what pycuda does for it. A "cubin" is a shared
// library of this machine with emulated kernels (runtime/emulate), each NAME as NAME__launch and NAME__unpack.
//
// It is stricter than what it stands for. Launches, and copies that need not wait, are put off until somebody waits for their
// stream: who reads too early reads old data. The launches of a graph run in an order drawn by chance, which its edges allow.
// Fresh memory is poison, between guards that are checked after each kernel; a pointer to anything else, or a kernel that fails
// by itself, loses the device, as on a GPU: every later call fails. To free memory while work is put off is an error.
//
// For tests: fake_live(kind) counts objects, fake_fail lets the next call of a function fail, fake_lose loses a device,
// fake_limit and fake_most set the memory of a device and the threads of a block, fake_pin makes memory of the host pinned.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES = 2, ARGS = 128, DEPTH = 256, GUARD = 256, POISON = 0xA5, FENCE = 0x5C };
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 101, BAD_IMAGE = 200, NO_CONTEXT = 201,
       BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, BAD_ADDRESS = 700, NO_RESOURCES = 701, FAILED = 719, UNSUPPORTED = 801, UNKNOWN = 999 };
static const struct { int code; const char *name, *text; } errors[] = {
  {OK, "CUDA_SUCCESS", "no error"}, {INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
  {NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}, {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
  {NO_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}, {BAD_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
  {NO_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}, {BAD_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
  {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"}, {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
  {BAD_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
  {NO_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
  {FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}, {UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
  {UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"}};

typedef int Result;
typedef uint64_t Address;
typedef struct Block { Address at; size_t n; int device; struct Block *next; } Block;
typedef struct { void *code; int fd, device; } Module;
typedef struct {
  void (*launch)(const unsigned *, const unsigned *, void **);
  void (*unpack)(char *, void **);
  const char *(*failure)(void);
  int nargs;
} Function;
typedef struct { Function *f; unsigned grid[3], block[3]; Address args[ARGS]; } Launch;
typedef struct { int done; double seconds; } Event;
typedef struct Work {  // what a stream will do
  enum { LAUNCH, COPY, WRITE, SET, RECORD } kind;
  Launch launch;
  Address to, from;
  size_t n;
  int value;
  char *data;  // what WRITE writes: a copy, unless the memory is pinned
  Event *event;
  struct Work *next;
} Work;
typedef struct Stream { int device; Work *first, **end; struct Stream *next; } Stream;
typedef struct Graph { int n; struct Node **nodes; } Graph;
typedef struct Node { Graph *graph; int index, nbefore; struct Node **before; Launch launch; } Node;
typedef struct { int n; Graph *graph; Launch *launches; Node **nodes; } Program;
typedef struct {  // CUDA_KERNEL_NODE_PARAMS_v2
  Function *f;
  unsigned grid[3], block[3], shared;
  void **args, **extra;
  void *kernel, *context;
} Parameters;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int process, lost[DEVICES];  // process: which may use this; a forked child may not
static unsigned most = 1024, chance = 1;
static size_t limit = 1ul << 30, used;
static Block *blocks;
static Stream idle[DEVICES], *streams;  // idle: the streams called 0, whose work nobody puts off
static const char *failing;
static int failing_code;
static const void *pinned;
static struct { const char *kind; long n; } counts[] = {{"memory", 0}, {"module", 0}, {"stream", 0}, {"event", 0}, {"graph", 0}, {"program", 0}};
enum { MEMORY, MODULE, STREAM, EVENT, GRAPH, PROGRAM };
static __thread int contexts[DEPTH], depth;  // of this thread: devices, from 1 on

// ---------------------------------------------------------------- for tests

long fake_live(const char *kind) {
  for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
    if (!strcmp(counts[i].kind, kind)) return counts[i].n;
  return -1;
}
void fake_fail(const char *function, int code) { failing = strdup(function), failing_code = code; }
void fake_lose(int device, int code) { lost[device] = code; }
void fake_limit(size_t nbytes) { limit = nbytes; }
void fake_most(unsigned threads) { most = threads; }
void fake_pin(const void *memory) { pinned = memory; }

// ---------------------------------------------------------------- every call

static Result enter(const char *function, int needs_context) {
  pthread_mutex_lock(&lock);
  if (failing && !strcmp(failing, function)) {
    failing = 0;
    return failing_code;
  }
  if (process != getpid() && (process || strcmp(function, "cuInit"))) return NOT_INITIALIZED;
  if (!needs_context) return OK;
  return depth && contexts[depth - 1] ? lost[contexts[depth - 1] - 1] : NO_CONTEXT;
}
static void leave(Result *unused) { pthread_mutex_unlock(&lock); }
#define CALL(needs_context)                                                             \
  __attribute__((cleanup(leave))) Result refused = enter(__func__, needs_context);      \
  if (refused) return refused
#define HERE (contexts[depth - 1] - 1)  // the device of the context

// ---------------------------------------------------------------- work that was put off

static int inside(Address at, size_t n, int device) {
  for (Block *b = blocks; b; b = b->next)
    if (b->device == device && at >= b->at && at + n <= b->at + b->n) return 1;
  return 0;
}

static int fenced(const Block *b) {  // and mends the fence: each break is told once
  unsigned char *before = (unsigned char *)b->at - GUARD, *after = (unsigned char *)b->at + b->n;
  int whole = 1;
  for (int i = 0; i < GUARD; i++) {
    whole &= before[i] == FENCE && after[i] == FENCE;
    before[i] = after[i] = FENCE;
  }
  return whole;
}

static Result run(const Launch *l, int device) {
  void *args[ARGS];
  for (int i = 0; i < l->f->nargs; i++) {
    if (!inside(l->args[i], 1, device)) return BAD_ADDRESS;
    args[i] = (void *)&l->args[i];
  }
  l->f->launch(l->grid, l->block, args);
  const char *why = l->f->failure ? l->f->failure() : "";
  if (*why) fprintf(stderr, "fake libcuda: %s\n", why);
  int whole = 1;
  for (Block *b = blocks; b; b = b->next) whole &= fenced(b);
  return *why ? FAILED : whole ? OK : BAD_ADDRESS;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static Result finish(Stream *s) {
  while (s->first) {
    Work *w = s->first;
    if (!(s->first = w->next)) s->end = &s->first;
    if (lost[s->device]) {}  // nothing runs any more
    else if (w->kind == LAUNCH) lost[s->device] = run(&w->launch, s->device);
    else if (w->kind == COPY) memmove((void *)w->to, (void *)w->from, w->n);
    else if (w->kind == WRITE) memcpy((void *)w->to, w->data, w->n);
    else if (w->kind == SET) memset((void *)w->to, w->value, w->n);
    else w->event->done = 1, w->event->seconds = now();
    if (w->kind == WRITE && w->data != pinned) free(w->data);
    free(w);
  }
  return lost[s->device];
}

static Result finish_all(int device) {
  for (Stream *s = streams; s; s = s->next)
    if (s->device == device) finish(s);
  return lost[device];
}

static Result later(Stream *s, Work what) {
  int device = s ? s->device : HERE;
  if (!s) {
    finish_all(device);
    s = &idle[device];
    s->device = device;
  }
  if (!s->first) s->end = &s->first;
  Work *w = malloc(sizeof *w);
  *w = what;
  w->next = 0;
  *s->end = w;
  s->end = &w->next;
  return s == &idle[device] ? finish(s) : OK;
}

// ---------------------------------------------------------------- devices and contexts

Result cuGetErrorName(Result code, const char **name) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) return *name = errors[i].name, OK;
  return *name = 0, INVALID;
}
Result cuGetErrorString(Result code, const char **text) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) return *text = errors[i].text, OK;
  return *text = 0, INVALID;
}
Result cuInit(unsigned flags) { CALL(0); process = getpid(); return flags ? INVALID : OK; }
Result cuDriverGetVersion(int *version) { *version = 13000; return OK; }
Result cuDeviceGetCount(int *n) { CALL(0); *n = DEVICES; return OK; }
Result cuDeviceGet(int *device, int i) { CALL(0); *device = i; return i < 0 || i >= DEVICES ? NO_DEVICE : OK; }
Result cuDeviceGetName(char *name, int n, int device) { CALL(0); snprintf(name, n, "fake GPU %d", device); return OK; }
Result cuDeviceTotalMem_v2(size_t *n, int device) { CALL(0); *n = 1ul << 32; return OK; }
Result cuDeviceGetAttribute(int *value, int attribute, int device) {
  CALL(0);
  static const int values[][2] = {{1, 1024}, {8, 48 << 10}, {10, 32}, {16, 4}, {38, 4 << 20}, {75, 8}, {76, 9}, {81, 228 << 10}};
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
    if (values[i][0] == attribute) return *value = values[i][1], OK;
  return INVALID;
}
Result cuDevicePrimaryCtxRetain(void **context, int device) { CALL(0); *context = (void *)(long)(device + 1); return OK; }
Result cuDevicePrimaryCtxRelease_v2(int device) { CALL(0); return OK; }
Result cuCtxPushCurrent_v2(void *context) {
  CALL(0);
  if (depth == DEPTH) return INVALID;
  contexts[depth++] = (int)(long)context;
  return OK;
}
Result cuCtxPopCurrent_v2(void **context) {
  CALL(0);
  if (!depth) return NO_CONTEXT;
  *context = (void *)(long)contexts[--depth];
  return OK;
}
Result cuCtxSetCurrent(void *context) {
  CALL(0);
  if (!depth) depth = 1;
  contexts[depth - 1] = (int)(long)context;
  return OK;
}

// ---------------------------------------------------------------- memory

Result cuMemAlloc_v2(Address *at, size_t n) {
  CALL(1);
  if (!n) return INVALID;
  if (used + n > limit) return NO_MEMORY;
  char *memory = aligned_alloc(GUARD, (n + 3 * GUARD - 1) / GUARD * GUARD);
  if (!memory) return NO_MEMORY;
  memset(memory, FENCE, n + 2 * GUARD);
  memset(memory + GUARD, POISON, n);
  Block *b = malloc(sizeof *b);
  *b = (Block){*at = (Address)memory + GUARD, n, HERE, blocks};
  blocks = b, used += n, counts[MEMORY].n++;
  return OK;
}
Result cuMemFree_v2(Address at) {
  CALL(1);
  for (Stream *s = streams; s; s = s->next)
    if (s->device == HERE && s->first) return INVALID;  // the driver would wait; nobody promises that it does
  for (Block **link = &blocks; *link; link = &(*link)->next) {
    Block *b = *link;
    if (b->at != at || b->device != HERE) continue;
    memset((void *)at, POISON, b->n);
    free((char *)at - GUARD);
    used -= b->n, counts[MEMORY].n--;
    *link = b->next;
    free(b);
    return OK;
  }
  return INVALID;
}
Result cuMemHostGetFlags(unsigned *flags, void *memory) { CALL(1); *flags = 0; return memory == pinned ? OK : INVALID; }
Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t n, Stream *s) {
  CALL(1);
  if (!inside(to, n, HERE)) return INVALID;
  char *data = (char *)from;
  if (from != pinned) data = memcpy(malloc(n), from, n);
  return later(s, (Work){.kind = WRITE, .to = to, .data = data, .n = n});
}
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t n, Stream *s) {
  CALL(1);
  if (!inside(from, n, HERE)) return INVALID;
  Result failed = s ? finish(s) : finish_all(HERE);
  if (!failed) memcpy(to, (void *)from, n);
  return failed;
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, Stream *s) {
  CALL(1);
  if (!inside(to, n, HERE) || !inside(from, n, HERE)) return INVALID;
  return later(s, (Work){.kind = COPY, .to = to, .from = from, .n = n});
}
Result cuMemsetD8Async(Address to, unsigned char value, size_t n, Stream *s) {
  CALL(1);
  if (!inside(to, n, HERE)) return INVALID;
  return later(s, (Work){.kind = SET, .to = to, .value = value, .n = n});
}

// ---------------------------------------------------------------- streams and events

Result cuStreamCreate(Stream **s, unsigned flags) {
  CALL(1);
  *s = calloc(1, sizeof **s);
  (*s)->device = HERE, (*s)->next = streams, streams = *s, counts[STREAM].n++;
  return OK;
}
Result cuStreamDestroy_v2(Stream *s) {  // its memory is kept: it is in the list
  CALL(0);
  counts[STREAM].n--;
  return finish(s);
}
Result cuStreamSynchronize(Stream *s) { CALL(1); return s ? finish(s) : finish_all(HERE); }
Result cuStreamQuery(Stream *s) { CALL(1); return s && s->first ? NOT_READY : OK; }
Result cuCtxSynchronize(void) { CALL(1); return finish_all(HERE); }
Result cuEventCreate(Event **e, unsigned flags) { CALL(1); *e = calloc(1, sizeof **e); counts[EVENT].n++; return OK; }
Result cuEventDestroy_v2(Event *e) { CALL(0); free(e); counts[EVENT].n--; return OK; }
Result cuEventRecord(Event *e, Stream *s) { CALL(1); e->done = 0; return later(s, (Work){.kind = RECORD, .event = e}); }
Result cuEventElapsedTime(float *ms, Event *from, Event *to) {
  CALL(0);
  *ms = (to->seconds - from->seconds) * 1e3;
  return from->done && to->done ? OK : NOT_READY;
}
Result cuEventElapsedTime_v2(float *ms, Event *from, Event *to) { return cuEventElapsedTime(ms, from, to); }

// ---------------------------------------------------------------- code

Result cuModuleLoadDataEx(Module **m, const void *image, unsigned n, int *options, void **values) {
  CALL(1);
  for (unsigned k = 0; k < n; k++) {  // what a driver has to say: nothing
    if (options[k] == 3 || options[k] == 5) *(char *)values[k] = 0;  // the buffers for information, for errors
    if (options[k] == 4 || options[k] == 6) values[k] = 0;           // and how much is in them
  }
  const Elf64_Ehdr *elf = image;
  if (memcmp(elf->e_ident, ELFMAG, SELFMAG)) return BAD_IMAGE;
  size_t nbytes = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
  int fd = memfd_create("cubin", 0);  // kept open: the loader takes equal names for one file
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  void *code = write(fd, image, nbytes) == (ssize_t)nbytes ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : 0;
  if (!code) {
    fprintf(stderr, "fake libcuda: %s\n", dlerror());
    close(fd);
    return BAD_IMAGE;
  }
  *m = malloc(sizeof **m);
  **m = (Module){code, fd, HERE};
  counts[MODULE].n++;
  return OK;
}
Result cuModuleLoadData(Module **m, const void *image) { return cuModuleLoadDataEx(m, image, 0, 0, 0); }
Result cuModuleUnload(Module *m) { CALL(0); dlclose(m->code); close(m->fd); free(m); counts[MODULE].n--; return OK; }
Result cuModuleGetFunction(Function **f, Module *m, const char *name) {
  CALL(1);
  char symbol[512], buffer[8 * ARGS];
  void *args[ARGS] = {0};
  Function found = {.failure = dlsym(m->code, "emulate_failure")};
  snprintf(symbol, sizeof symbol, "%s__launch", name);
  found.launch = dlsym(m->code, symbol);
  snprintf(symbol, sizeof symbol, "%s__unpack", name);
  found.unpack = dlsym(m->code, symbol);
  if (!found.launch || !found.unpack) return NOT_FOUND;
  found.unpack(buffer, args);  // sets a pointer for each argument
  while (args[found.nargs]) found.nargs++;
  *f = malloc(sizeof **f);  // as long as the process lives
  **f = found;
  return OK;
}
Result cuFuncGetAttribute(int *value, int attribute, Function *f) { CALL(1); *value = attribute ? 0 : (int)most; return OK; }

static Result take(Launch *l, const Parameters *p) {  // arguments are copied
  unsigned threads = p->block[0] * p->block[1] * p->block[2];
  if (!p->f) return BAD_HANDLE;
  if (!p->grid[0] || !p->grid[1] || !p->grid[2] || p->grid[1] > 65535 || p->grid[2] > 65535) return INVALID;
  if (!threads || threads > 1024 || p->block[2] > 64 || p->shared > 227 << 10) return INVALID;
  if (threads > most) return NO_RESOURCES;
  *l = (Launch){.f = p->f};
  memcpy(l->grid, p->grid, sizeof l->grid);
  memcpy(l->block, p->block, sizeof l->block);
  void *packed[ARGS] = {0}, **args = p->args;
  for (void **x = p->extra; x && *x; x += 2)  // pairs of a key and a value; key 1: a packed buffer
    if (*x == (void *)1) p->f->unpack(x[1], args = packed);
  for (int i = 0; i < p->f->nargs; i++) {
    if (!args || !args[i]) return INVALID;
    l->args[i] = *(Address *)args[i];
  }
  return OK;
}
Result cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, Stream *s, void **args, void **extra) {
  CALL(1);
  Work w = {.kind = LAUNCH};
  Result failed = take(&w.launch, &(Parameters){f, {gx, gy, gz}, {bx, by, bz}, shared, args, extra, 0, 0});
  return failed ? failed : later(s, w);
}

// ---------------------------------------------------------------- graphs

Result cuGraphCreate(Graph **g, unsigned flags) { CALL(1); *g = calloc(1, sizeof **g); counts[GRAPH].n++; return flags ? INVALID : OK; }
Result cuGraphAddKernelNode_v2(Node **node, Graph *g, Node *const *before, size_t n, const Parameters *p) {
  CALL(1);
  for (size_t i = 0; i < n; i++) {
    if (before[i]->graph != g) return INVALID;
    for (size_t j = 0; j < i; j++)
      if (before[i] == before[j]) return INVALID;
  }
  Node *new = calloc(1, sizeof *new);
  Result failed = take(&new->launch, p);
  if (failed) return failed;
  new->graph = g, new->index = g->n, new->nbefore = n;
  new->before = memcpy(malloc(n * sizeof *before + 1), before, n * sizeof *before);
  g->nodes = realloc(g->nodes, (g->n + 1) * sizeof *g->nodes);
  g->nodes[g->n++] = *node = new;
  return OK;
}
Result cuGraphInstantiateWithFlags(Program **program, Graph *g, unsigned long long flags) {
  CALL(1);
  *program = calloc(1, sizeof **program);
  **program = (Program){g->n, g, malloc(g->n * sizeof(Launch)), g->nodes};
  for (int i = 0; i < g->n; i++) (*program)->launches[i] = g->nodes[i]->launch;
  counts[PROGRAM].n++;
  return OK;
}
Result cuGraphExecKernelNodeSetParams_v2(Program *program, Node *node, const Parameters *p) {
  CALL(1);
  if (node->graph != program->graph || p->f != node->launch.f) return INVALID;
  return take(&program->launches[node->index], p);
}
Result cuGraphLaunch(Program *program, Stream *s) {
  CALL(1);
  char done[program->n + 1];
  memset(done, 0, sizeof done);
  for (int left = program->n; left;) {
    chance = chance * 1664525 + 1013904223;
    int i = (uint64_t)chance * program->n >> 32;
    int ready = !done[i];
    for (int j = 0; ready && j < program->nodes[i]->nbefore; j++) ready = done[program->nodes[i]->before[j]->index];
    if (!ready) continue;
    Result failed = later(s, (Work){.kind = LAUNCH, .launch = program->launches[i]});
    if (failed) return failed;
    done[i] = 1, left--;
  }
  return OK;
}
Result cuGraphExecDestroy(Program *program) { CALL(0); free(program->launches); free(program); counts[PROGRAM].n--; return OK; }
Result cuGraphDestroy(Graph *g) {
  CALL(0);
  for (int i = 0; i < g->n; i++) free(g->nodes[i]->before), free(g->nodes[i]);
  free(g->nodes);
  free(g);
  counts[GRAPH].n--;
  return OK;
}

// ---------------------------------------------------------------- what pycuda and NVRTC name, and can do without

#define NONE(name) Result name(void) { return UNSUPPORTED; }
NONE(cuArray3DCreate_v2) NONE(cuArray3DGetDescriptor_v2) NONE(cuArrayCreate_v2) NONE(cuArrayDestroy) NONE(cuArrayGetDescriptor_v2)
NONE(cuCtxAttach) NONE(cuCtxCreate_v4) NONE(cuCtxDetach) NONE(cuCtxDisablePeerAccess) NONE(cuCtxEnablePeerAccess)
NONE(cuCtxGetApiVersion) NONE(cuCtxGetCacheConfig) NONE(cuCtxGetDevice) NONE(cuCtxGetLimit) NONE(cuCtxGetSharedMemConfig)
NONE(cuCtxSetCacheConfig) NONE(cuCtxSetLimit) NONE(cuCtxSetSharedMemConfig) NONE(cuDeviceCanAccessPeer)
NONE(cuDeviceComputeCapability) NONE(cuDeviceGetByPCIBusId) NONE(cuDeviceGetPCIBusId) NONE(cuEventQuery) NONE(cuEventSynchronize)
NONE(cuFuncSetAttribute) NONE(cuFuncSetBlockShape) NONE(cuFuncSetCacheConfig) NONE(cuFuncSetSharedMemConfig) NONE(cuFuncSetSharedSize)
NONE(cuIpcCloseMemHandle) NONE(cuIpcGetEventHandle) NONE(cuIpcGetMemHandle) NONE(cuIpcOpenEventHandle) NONE(cuIpcOpenMemHandle_v2)
NONE(cuLaunch) NONE(cuLaunchGrid) NONE(cuLaunchGridAsync) NONE(cuLinkAddData_v2) NONE(cuLinkAddFile_v2) NONE(cuLinkComplete)
NONE(cuLinkCreate_v2) NONE(cuLinkDestroy) NONE(cuMemAllocManaged) NONE(cuMemAllocPitch_v2) NONE(cuMemFreeHost)
NONE(cuMemGetAddressRange_v2) NONE(cuMemGetInfo_v2) NONE(cuMemHostAlloc) NONE(cuMemHostGetDevicePointer_v2) NONE(cuMemHostRegister_v2)
NONE(cuMemHostUnregister) NONE(cuMemcpy2DAsync_v2) NONE(cuMemcpy2DUnaligned_v2) NONE(cuMemcpy2D_v2) NONE(cuMemcpy3DAsync_v2)
NONE(cuMemcpy3DPeer) NONE(cuMemcpy3DPeerAsync) NONE(cuMemcpy3D_v2) NONE(cuMemcpyAtoA_v2) NONE(cuMemcpyAtoD_v2) NONE(cuMemcpyAtoH_v2)
NONE(cuMemcpyDtoA_v2) NONE(cuMemcpyDtoD_v2) NONE(cuMemcpyDtoH_v2) NONE(cuMemcpyHtoA_v2) NONE(cuMemcpyHtoD_v2) NONE(cuMemcpyPeer)
NONE(cuMemcpyPeerAsync) NONE(cuMemsetD16Async) NONE(cuMemsetD16_v2) NONE(cuMemsetD2D16Async) NONE(cuMemsetD2D16_v2)
NONE(cuMemsetD2D32Async) NONE(cuMemsetD2D32_v2) NONE(cuMemsetD2D8Async) NONE(cuMemsetD2D8_v2) NONE(cuMemsetD32Async)
NONE(cuMemsetD32_v2) NONE(cuMemsetD8_v2) NONE(cuModuleGetGlobal_v2) NONE(cuModuleGetSurfRef) NONE(cuModuleGetTexRef) NONE(cuModuleLoad)
NONE(cuParamSetSize) NONE(cuParamSetTexRef) NONE(cuParamSetf) NONE(cuParamSeti) NONE(cuParamSetv) NONE(cuProfilerInitialize)
NONE(cuProfilerStart) NONE(cuProfilerStop) NONE(cuStreamAttachMemAsync) NONE(cuStreamWaitEvent) NONE(cuSurfRefGetArray)
NONE(cuSurfRefSetArray) NONE(cuTexRefCreate) NONE(cuTexRefDestroy) NONE(cuTexRefGetAddressMode) NONE(cuTexRefGetAddress_v2)
NONE(cuTexRefGetArray) NONE(cuTexRefGetFilterMode) NONE(cuTexRefGetFlags) NONE(cuTexRefGetFormat) NONE(cuTexRefSetAddress2D_v3)
NONE(cuTexRefSetAddressMode) NONE(cuTexRefSetAddress_v2) NONE(cuTexRefSetArray) NONE(cuTexRefSetFilterMode) NONE(cuTexRefSetFlags)
NONE(cuTexRefSetFormat) NONE(cuGetExportTable)
