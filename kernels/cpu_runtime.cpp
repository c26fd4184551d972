// The library that generated programs are linked to: one pool of threads, and GEMM.
#include "cpu_gemm_parallel.h"
#include "cpu_pool.h"

namespace {

// Never destroyed: workers may wait in it when the process ends.
std::atomic<gtape::Pool*> current{nullptr};
std::atomic<int> threads{1};

// A child process has no workers. What they were doing, and the locks they held, stays behind.
void forked() {
  current.store(nullptr);
  gtape::inside = false;
}

// None where memory has run out.
gtape::Pool* pool() {
  gtape::Pool* found = current.load();
  if (found) return found;
  gtape::Pool* made = new (std::nothrow) gtape::Pool;
  if (!made) return nullptr;
  made->threads.store(threads.load());
  if (current.compare_exchange_strong(found, made)) return made;
  delete made;
  return found;
}

__attribute__((constructor)) void prepare() { pthread_atfork(nullptr, nullptr, forked); }

}  // namespace

int gtape_threads(void) { return threads.load(std::memory_order_relaxed); }

void gtape_set_threads(int count) {
  count = count < 1 ? 1 : count > gtape::MAX_THREADS ? gtape::MAX_THREADS : count;
  threads.store(count);
  if (gtape::Pool* made = pool()) made->threads.store(count);
}

void gtape_parallel(void (*body)(void*, int, int), void* context, int parts) {
  if (parts > 1 && !gtape::inside && gtape_threads() > 1) {
    gtape::Pool* shared = pool();
    if (shared && !shared->taken.exchange(true, std::memory_order_acquire)) {
      gtape::parallel(*shared, body, context, parts);
      shared->taken.store(false, std::memory_order_release);
      return;
    }
  }
  gtape::serial(body, context, parts);
}

void gtape_gemm_f32(long m, long n, long k, const float* a, long a_row, long a_column,
                    const float* b, long b_row, long b_column, float* c, long c_row,
                    int accumulate) {
  gtape::gemm<float>({m, n, k, {a, a_row, a_column}, {b, b_row, b_column}, c, c_row, 1,
                    accumulate != 0});
}

void gtape_gemm_batched_f32(long m, long n, long k, const float* a, long a_row, long a_column,
                            const float* b, long b_row, long b_column, float* c, long c_row,
                            int accumulate, long batch, const long* a_offsets,
                            const long* b_offsets, const long* c_offsets) {
  gtape::gemm_batched<float>({{m, n, k, {a, a_row, a_column}, {b, b_row, b_column}, c, c_row, 1,
                              accumulate != 0}, batch, a_offsets, b_offsets, c_offsets});
}

void gtape_gemm_f64(long m, long n, long k, const double* a, long a_row, long a_column,
                    const double* b, long b_row, long b_column, double* c, long c_row,
                    int accumulate) {
  gtape::gemm<double>({m, n, k, {a, a_row, a_column}, {b, b_row, b_column}, c, c_row, 1,
                    accumulate != 0});
}

void gtape_gemm_batched_f64(long m, long n, long k, const double* a, long a_row, long a_column,
                            const double* b, long b_row, long b_column, double* c, long c_row,
                            int accumulate, long batch, const long* a_offsets,
                            const long* b_offsets, const long* c_offsets) {
  gtape::gemm_batched<double>({{m, n, k, {a, a_row, a_column}, {b, b_row, b_column}, c, c_row, 1,
                              accumulate != 0}, batch, a_offsets, b_offsets, c_offsets});
}
