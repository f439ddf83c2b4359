/* compile quickly */
/* The native half of cpu.py: threads, and sequences of kernel calls.

   A worker owns one cache line, its mailbox. To hand out work the caller fills in the mailboxes and posts them, runs the
   first share itself, then takes back what no worker has begun (a worker may still be asleep, or another process may have
   its core), and waits for the rest. The split into shares is static, so that a core meets the same data in the next
   kernel; a long share is run in chunks, and who is done early takes chunks from the others.

   Who waits spins HOT_SPINS times, about 5 us, and then lets others have the core between its looks, for the one that it
   waits for may need it. A worker sleeps after SPIN_NS without mail, on a condition variable. Threads exist from the first
   parallel call on, never in a forked child before its own first one, and go when the process exits. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() __asm__ volatile("yield")
#endif

enum { MAX_WORKERS = 255, HOT_SPINS = 1024, SPIN_NS = 200000, STACK_BYTES = 8 << 20 };
enum { EMPTY, POSTED, RUNNING };

typedef void (*kernel_fn)(void **args, long lo, long hi);

typedef struct {
  _Atomic int state; /* EMPTY -> POSTED (caller) -> RUNNING (worker) -> EMPTY (worker), or POSTED -> EMPTY (caller) */
  _Atomic int asleep;
  kernel_fn fn;
  void **args;
  _Atomic long next; /* of the share, the first index that nobody has taken */
  long hi, step;
  long helped; /* mailboxes that one who is done looks into; 0 when shares are a single chunk */
} __attribute__((aligned(64))) mailbox;

static mailbox mail[MAX_WORKERS + 1]; /* the first one is the caller's */
static pthread_mutex_t mutex[MAX_WORKERS + 1];
static pthread_cond_t wake[MAX_WORKERS + 1];
static int workers;       /* threads started in this process; written under `busy` */
static _Atomic int busy;  /* somebody is handing out work */
static _Atomic int epoch; /* 1 + the number of forks between the first process and this one */

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* ---------------------------------------------------------------- threads */

static void sleep_until_posted(int w) {
  pthread_mutex_lock(&mutex[w]);
  mail[w].asleep = 1; /* sequentially consistent, as posting is: either we see the mail, or the caller sees us asleep */
  if (mail[w].state != EMPTY) mail[w].asleep = 0;
  while (mail[w].asleep) pthread_cond_wait(&wake[w], &mutex[w]);
  pthread_mutex_unlock(&mutex[w]);
}

static void run_share(mailbox *m) {
  for (long i; (i = __atomic_fetch_add((long *)&m->next, m->step, __ATOMIC_RELAXED)) < m->hi;)
    m->fn(m->args, i, i + m->step < m->hi ? i + m->step : m->hi);
}

static void *work(void *which) {
  int w = (int)(long)which;
  mailbox *m = &mail[w];
  for (;;) {
    long begun = 0;
    for (int spins = 0; __atomic_load_n((int *)&m->state, __ATOMIC_ACQUIRE) != POSTED; spins++) {
      RELAX();
      if (spins < HOT_SPINS || spins % 64) continue;
      sched_yield();
      long t = now();
      if (!begun) begun = t;
      if (t - begun > SPIN_NS) {
        sleep_until_posted(w);
        begun = 0;
      }
    }
    int posted = POSTED;
    if (!__atomic_compare_exchange_n((int *)&m->state, &posted, RUNNING, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
    run_share(m);
    for (long w = 0; w < m->helped; w++) run_share(&mail[w]);
    __atomic_store_n((int *)&m->state, EMPTY, __ATOMIC_RELEASE);
  }
  return 0;
}

static void in_child(void) {
  workers = 0;
  busy = 0;
  epoch++;
  memset(mail, 0, sizeof mail);
}

__attribute__((constructor)) static void begin(void) {
  epoch = 1;
  pthread_atfork(0, 0, in_child);
}

/* Starts workers until there are `wanted`, or as many as the system gives. Signals stay with Python's threads. */
static void grow(int wanted) {
  sigset_t all, before;
  pthread_attr_t attr;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  while (workers < wanted) {
    pthread_t thread;
    pthread_mutex_init(&mutex[workers + 1], 0);
    pthread_cond_init(&wake[workers + 1], 0);
    if (pthread_create(&thread, &attr, work, (void *)(long)(workers + 1))) break;
    workers++;
  }
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &before, 0);
}

static void parallel(kernel_fn fn, void **args, long extent, long shares, long chunks) {
  if (shares > MAX_WORKERS + 1) shares = MAX_WORKERS + 1;
  if (shares > extent) shares = extent;
  if (shares < 2 || __atomic_exchange_n((int *)&busy, 1, __ATOMIC_ACQUIRE)) { /* another thread has the pool */
    fn(args, 0, extent);
    return;
  }
  if (workers < shares - 1) grow(shares - 1);
  if (workers < shares - 1) shares = workers + 1;
  for (long w = 0; w < shares; w++) {
    mailbox *m = &mail[w];
    m->fn = fn;
    m->args = args;
    __atomic_store_n((long *)&m->next, extent * w / shares, __ATOMIC_RELAXED);
    m->hi = extent * (w + 1) / shares;
    m->step = (extent / shares + chunks) / chunks; /* rounded up from the largest share */
    m->helped = chunks > 1 ? shares : 0;
  }
  for (long w = 1; w < shares; w++) {
    mail[w].state = POSTED;
    if (!mail[w].asleep) continue;
    pthread_mutex_lock(&mutex[w]);
    mail[w].asleep = 0; /* up for good, even if we take this mail back before it is there */
    pthread_cond_signal(&wake[w]);
    pthread_mutex_unlock(&mutex[w]);
  }
  run_share(&mail[0]);
  for (long w = 0; w < mail[0].helped; w++) run_share(&mail[w]);
  for (long w = 1; w < shares; w++) {
    int posted = POSTED;
    if (__atomic_compare_exchange_n((int *)&mail[w].state, &posted, EMPTY, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
      run_share(&mail[w]);
  }
  for (long w = 1; w < shares; w++)
    for (int spins = 0; __atomic_load_n((int *)&mail[w].state, __ATOMIC_ACQUIRE) != EMPTY; spins++)
      if (spins < HOT_SPINS) RELAX();
      else sched_yield();
  __atomic_store_n((int *)&busy, 0, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------- sequences */

typedef struct {
  kernel_fn fn;
  void **args;
  long extent, shares, chunks;
} call;

typedef struct {
  long arg, offset; /* args[arg] = slot's address + offset */
} patch;

typedef struct {
  _Atomic int owner; /* the epoch in which somebody runs it: a lock that a fork cannot leave behind */
  long long error;
  long ncalls, nslots;
  call *calls;
  void **args;
  patch *patches; /* by slot: those of slot s are first[s] .. first[s+1] */
  long *first;
  char **bound; /* the addresses that args hold now */
} sequence;

void mini_sequence_free(sequence *s) {
  if (!s) return;
  free(s->calls), free(s->args), free(s->patches), free(s->first), free(s->bound), free(s);
}

static void *copy(const void *from, size_t nbytes) {
  void *to = malloc(nbytes + 1);
  return to ? memcpy(to, from, nbytes) : 0;
}

/* calls: (function, position of its first arg, extent, shares, chunks) each. first[nslots] .. first[nslots+1] are the patches that
   are numbers, not addresses, and those behind them point at the error word. Returns 0 when there is no memory. */
sequence *mini_sequence(long ncalls, const long *calls, long nargs, long nslots, const long *first, const patch *patches) {
  sequence *s = calloc(1, sizeof *s);
  if (!s) return 0;
  s->ncalls = ncalls, s->nslots = nslots;
  s->calls = malloc(ncalls * sizeof(call) + 1);
  s->args = calloc(nargs + 1, sizeof(void *));
  s->bound = calloc(nslots + 1, sizeof(void *));
  s->first = copy(first, (nslots + 3) * sizeof(long));
  s->patches = copy(patches, first[nslots + 2] * sizeof(patch));
  if (!s->calls || !s->args || !s->bound || !s->first || !s->patches) {
    mini_sequence_free(s);
    return 0;
  }
  for (long i = 0; i < ncalls; i++, calls += 5)
    s->calls[i] = (call){(kernel_fn)calls[0], s->args + calls[1], calls[2], calls[3], calls[4]};
  for (long p = first[nslots]; p < first[nslots + 1]; p++) s->args[patches[p].arg] = (void *)patches[p].offset;
  for (long p = first[nslots + 1]; p < first[nslots + 2]; p++) s->args[patches[p].arg] = &s->error;
  return s;
}

static int lock(sequence *s) {
  for (int spins = 0;; spins++) {
    int owner = s->owner, mine = epoch;
    if (owner != mine && __atomic_compare_exchange_n((int *)&s->owner, &owner, mine, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return mine;
    struct timespec nap = {0, spins < 100 ? 1000 : 100000};
    nanosleep(&nap, 0);
  }
}

static void bind(sequence *s, char **slots) {
  for (long i = 0; i < s->nslots; i++) {
    if (slots[i] == s->bound[i]) continue;
    s->bound[i] = slots[i];
    for (long p = s->first[i]; p < s->first[i + 1]; p++) s->args[s->patches[p].arg] = slots[i] + s->patches[p].offset;
  }
}

/* Runs every call in order and returns the error word. `seconds`, where given, takes the time of each call. */
long long mini_run(sequence *s, char **slots, double *seconds) {
  lock(s);
  bind(s, slots);
  s->error = 0;
  for (long i = 0; i < s->ncalls; i++) {
    call *c = &s->calls[i];
    long begun = seconds ? now() : 0;
    if (c->shares > 1) parallel(c->fn, c->args, c->extent, c->shares, c->chunks);
    else c->fn(c->args, 0, c->extent);
    if (seconds) seconds[i] = (now() - begun) * 1e-9;
  }
  long long error = s->error;
  __atomic_store_n((int *)&s->owner, 0, __ATOMIC_RELEASE);
  return error;
}

/* ---------------------------------------------------------------- memory */

/* Writes to each page what stands there, whoever else writes to it meanwhile. */
void mini_touch(char *from, char *to, const volatile long *stop) {
  for (char *page = from; page < to && !*stop; page += 4096) {
    char zero = 0;
    __atomic_compare_exchange_n(page, &zero, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}
