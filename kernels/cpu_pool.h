// The pool behind gtape_parallel.
//
// All that a thread needs to claim a part is in one word, the ticket: the number of the loop in its
// upper half, how many parts are unclaimed in its lower half. A claim is a compare-and-swap that
// takes one away. It can only succeed while its loop runs, since a loop ends after its last part
// has been done; the loop's other fields are read after the claim and so belong to it.
#pragma once

#include <atomic>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "cpu_thread_local.h"
#include "cpu_threads.h"

namespace gtape {

constexpr int MAX_THREADS = 1024;
constexpr long long WORKER_SPINS_NS = 100000;
constexpr long long CALLER_SPINS_NS = 20000;
// Generated loops keep small arrays on the stack; some systems give threads 128 KiB only.
constexpr size_t STACK = 4 << 20;

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

inline long long nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// Spins until `met()`, for `limit` nanoseconds at most; whether it was met.
//
// The thread that would make it true may want this very core: virtual machines put threads on one,
// and containers share a few. So the core is offered every few hundred nanoseconds. Without that a
// spinning worker keeps the caller from its work for all of its time slice: a step of a
// transformer took three times as long, on two cores.
template <class Condition>
inline bool spin(const Condition& met, long long limit) {
  if (met()) return true;
  for (long long begin = nanoseconds(); nanoseconds() - begin < limit;) {
    for (int i = 0; i < 16; i++) {
      relax();
      if (met()) return true;
    }
    sched_yield();
  }
  return false;
}

// Threads that wait for a condition that others make true, then call `wake`.
struct Sleepers {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  std::atomic<int> count{0};

  template <class Condition>
  void wait(const Condition& met) {
    pthread_mutex_lock(&mutex);
    count.fetch_add(1);
    while (!met()) pthread_cond_wait(&changed, &mutex);
    count.fetch_sub(1);
    pthread_mutex_unlock(&mutex);
  }

  // The condition was made true before, in an order that all threads agree on: so either `count` is
  // seen here, or the condition is seen there.
  void wake() {
    if (count.load() == 0) return;
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
};

struct Pool {
  void (*body)(void*, int, int) = nullptr;
  void* context = nullptr;
  int parts = 0;
  int workers = 0;
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<int> done{0};
  alignas(64) std::atomic<bool> taken{false};
  std::atomic<int> threads{1};
  Sleepers idle, caller;
};

struct Worker {
  Pool* pool;
  int number;
};

GTAPE_OF_THREAD bool inside = false;

inline bool claim(Pool& pool) {
  uint64_t seen = pool.ticket.load(std::memory_order_acquire);
  while (uint32_t(seen) != 0)
    if (pool.ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      const int parts = pool.parts;
      pool.body(pool.context, parts - int(uint32_t(seen)), parts);
      if (pool.done.fetch_add(1) + 1 == parts) pool.caller.wake();
      return true;
    }
  return false;
}

inline void* work(void* argument) {
  Worker* self = static_cast<Worker*>(argument);
  Pool& pool = *self->pool;
  const int number = self->number;
  delete self;
  inside = true;
  const auto wanted = [&] { return number < pool.threads.load(std::memory_order_relaxed); };
  const auto called = [&] { return wanted() && uint32_t(pool.ticket.load()) != 0; };
  for (;;) {
    if (!spin(called, WORKER_SPINS_NS)) pool.idle.wait(called);
    while (wanted() && claim(pool)) {}
  }
}

// Starts the workers that are missing. Signals are for the threads that Python knows.
inline void staff(Pool& pool, int workers) {
  if (pool.workers >= workers) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK);
  while (pool.workers < workers) {
    Worker* worker = new (std::nothrow) Worker{&pool, pool.workers + 1};
    pthread_t thread;
    if (!worker || pthread_create(&thread, &attributes, work, worker) != 0) {
      delete worker;
      break;
    }
    pool.workers++;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

inline void serial(void (*body)(void*, int, int), void* context, int parts) {
  const bool before = inside;
  inside = true;
  for (int part = 0; part < parts; part++) body(context, part, parts);
  inside = before;
}

inline void parallel(Pool& pool, void (*body)(void*, int, int), void* context, int parts) {
  inside = true;
  staff(pool, (parts < pool.threads ? parts : int(pool.threads)) - 1);
  pool.body = body;
  pool.context = context;
  pool.parts = parts;
  pool.done.store(0, std::memory_order_relaxed);
  const uint64_t loop = (pool.ticket.load(std::memory_order_relaxed) >> 32) + 1;
  pool.ticket.store(loop << 32 | uint32_t(parts));
  pool.idle.wake();
  while (claim(pool)) {}
  const auto finished = [&] { return pool.done.load() == parts; };
  if (!spin(finished, CALLER_SPINS_NS)) pool.caller.wait(finished);
  inside = false;
}

}  // namespace gtape
