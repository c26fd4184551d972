// GEMM over all threads: C is divided, never k.
#pragma once

#include "cpu_gemm.h"
#include "cpu_matvec.h"

namespace gtape {

// Multiplications that are worth a second thread, in a product of matrices and of a vector.
constexpr double WORTH = 200e3, WORTH_READING = 60e3;

static inline int parts_for(double work, double worth) {
  const double parts = work / worth + 1;
  return parts < gtape_threads() ? int(parts) : gtape_threads();
}

// How many ways rows and columns of C are divided.
struct Grid {
  long rows, columns;
};

// The division into `parts` that leaves the largest part the least to do. In multiplications,
// copying an element of an operand costs about 8, or 16 where it must be transposed.
template <class T>
static Grid divide(const Product<T>& product, int parts) {
  Grid best = {1, 1};
  double least = 0;
  for (long rows = 1; rows <= parts; rows++) {
    const Grid grid = {rows, parts / rows};
    const double m = divide_up(product.m, grid.rows);
    const double n = divide_up(divide_up(product.n, TILE_COLUMNS<T>), grid.columns)
                     * double(TILE_COLUMNS<T>);
    const double cost = m * n + (product.a.row == 1 ? 8 : 16) * m
                        + (product.b.column == 1 ? 8 : 16) * n;
    if (rows == 1 || cost < least) {
      least = cost;
      best = grid;
    }
  }
  return best;
}

template <class T>
struct Divided {
  const Product<T>* product;
  Grid grid;

  static void body(void* context, int part, int) {
    const Divided& self = *static_cast<Divided*>(context);
    const Product<T>& whole = *self.product;
    const long i = part / self.grid.columns, j = part % self.grid.columns;
    const long blocks = divide_up(whole.n, TILE_COLUMNS<T>);
    const long top = panel_begin(whole.m, self.grid.rows, i);
    const long bottom = panel_begin(whole.m, self.grid.rows, i + 1);
    const long left = panel_begin(blocks, self.grid.columns, j) * TILE_COLUMNS<T>;
    long right = panel_begin(blocks, self.grid.columns, j + 1) * TILE_COLUMNS<T>;
    if (right > whole.n) right = whole.n;
    if (top < bottom && left < right)
      multiply(whole.part(top, left, bottom - top, right - left));
  }
};

template <class T>
struct DividedVector {
  const MatrixVector<T>* product;

  static void body(void* context, int part, int parts) {
    MatrixVector<T> own = *static_cast<DividedVector*>(context)->product;
    constexpr long UNIT = 64;
    const long units = divide_up(own.rows, UNIT);
    const long begin = panel_begin(units, parts, part) * UNIT;
    const long end = panel_begin(units, parts, part + 1) * UNIT;
    own.rows = (end < own.rows ? end : own.rows) - begin;
    own.a = own.a.from(begin, 0);
    own.y += begin * own.y_step;
    if (own.rows > 0) multiply_vector(own);
  }
};

template <class T>
static void gemv(const MatrixVector<T>& product) {
  DividedVector<T> divided = {&product};
  const int parts = parts_for(double(product.rows) * product.k, WORTH_READING);
  gtape_parallel(DividedVector<T>::body, &divided, parts);
}

// The elements of x are `x_step` apart: copied side by side, and summed up, STRETCH at a time.
template <class T>
static void gemv(MatrixVector<T> product, long x_step) {
  if (x_step == 1) return gemv(product);
  constexpr long STRETCH = 4096;
  T copied[STRETCH];
  const MatrixVector<T> whole = product;
  product.x = copied;
  for (long from = 0; from < whole.k; from += STRETCH) {
    product.k = whole.k - from < STRETCH ? whole.k - from : STRETCH;
    product.a = whole.a.from(0, from);
    for (long k = 0; k < product.k; k++) copied[k] = whole.x[(from + k) * x_step];
    gemv(product);
    product.accumulate = true;
  }
}

// With `alone`, on the calling thread only.
template <class T>
static void gemm(const Product<T>& product, bool alone = false) {
  if (product.m <= 0 || product.n <= 0) return;
  if (product.k <= 0) {
    for (long i = 0; i < product.m && !product.accumulate; i++)
      for (long j = 0; j < product.n; j++) product.c[i * product.c_row + j] = 0;
    return;
  }
  if (product.n == 1)
    return gemv<T>({product.m, product.k, product.a, product.b.at, product.c, product.c_row,
                    product.accumulate}, product.b.row);
  if (product.m == 1)
    return gemv<T>({product.n, product.k, product.b.transposed(), product.a.at, product.c, 1,
                    product.accumulate}, product.a.column);
  // Columns fill vectors, rows need not: few columns become rows where A can be read as it lies.
  const bool narrow = product.n < Lanes<T>::WIDTH && product.n < product.m && product.a.row == 1;
  const Product<T> whole = narrow ? product.transposed() : product;
  const int parts = parts_for(double(whole.m) * whole.n * whole.k, WORTH);
  if (parts == 1 || alone) return multiply(whole);
  Divided<T> divided = {&whole, divide(whole, parts)};
  gtape_parallel(Divided<T>::body, &divided, int(divided.grid.rows * divided.grid.columns));
}

template <class T>
struct Batch {
  Product<T> product;
  long batch;
  const long *a_offsets, *b_offsets, *c_offsets;

  void run(long number, bool alone) const {
    Product<T> own = product;
    own.a.at += a_offsets[number];
    own.b.at += b_offsets[number];
    own.c += c_offsets[number];
    gemm(own, alone);
  }

  static void body(void* context, int part, int parts) {
    const Batch& self = *static_cast<Batch*>(context);
    const long end = panel_begin(self.batch, parts, part + 1);
    for (long i = panel_begin(self.batch, parts, part); i < end; i++) self.run(i, true);
  }
};

// Products of a batch side by side where there are enough of them, else each over all threads.
template <class T>
static void gemm_batched(Batch<T> batch) {
  const Product<T>& one = batch.product;
  const int parts = parts_for(double(one.m) * one.n * one.k * batch.batch, WORTH);
  if (batch.batch < parts || parts == 1) {
    for (long i = 0; i < batch.batch; i++) batch.run(i, parts == 1);
    return;
  }
  gtape_parallel(Batch<T>::body, &batch, parts);
}

}  // namespace gtape
