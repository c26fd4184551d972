// Products of a matrix and a vector: one pass over the matrix, at the speed of memory.
#pragma once

#include "cpu_gemm_block.h"

namespace gtape {

// y[i * y_step] = or += the product of row i of `a` and x.
template <class T>
struct MatrixVector {
  long rows, k;
  Matrix<T> a;
  const T* x;
  T* y;
  long y_step;
  bool accumulate;
};

template <class T>
static inline void put(const MatrixVector<T>& product, long i, T sum) {
  T* y = product.y + i * product.y_step;
  *y = product.accumulate ? *y + sum : sum;
}

// ROWS rows at once, so that their sums do not wait for one another. Each row is summed in the same
// order for every ROWS.
template <class T, int ROWS>
static inline void dot_rows(const MatrixVector<T>& product, long i) {
  constexpr int W = Lanes<T>::WIDTH;
  Vector<T> sums[ROWS][2] = {};
  const T* a = product.a.at + i * product.a.row;
  long k = 0;
  for (; k + 2 * W <= product.k; k += 2 * W)
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) {
      const T* row = a + r * product.a.row + k;
      sums[r][0] += load(row) * load(product.x + k);
      sums[r][1] += load(row + W) * load(product.x + k + W);
    }
#pragma GCC unroll 4
  for (int r = 0; r < ROWS; r++) {
    T lanes[W], sum = 0;
    store(lanes, sums[r][0] + sums[r][1]);
    for (int half = W / 2; half > 0; half /= 2)
      for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
    for (long j = k; j < product.k; j++) sum += a[r * product.a.row + j] * product.x[j];
    put(product, i + r, lanes[0] + sum);
  }
}

// COUNT columns, whose elements lie side by side, times COUNT elements of x.
template <class T, int COUNT>
static inline void add_columns(T* sums, long rows, const T* a, long step, const T* x) {
  constexpr int W = Lanes<T>::WIDTH;
  long i = 0;
  for (; i + W <= rows; i += W) {
    Vector<T> sum = load(sums + i);
#pragma GCC unroll 4
    for (int j = 0; j < COUNT; j++) sum += x[j] * load(a + j * step + i);
    store(sums + i, sum);
  }
  for (; i < rows; i++)
    for (int j = 0; j < COUNT; j++) sums[i] += a[j * step + i] * x[j];
}

// Columns are added to a stretch of sums that stays in the first-level cache.
template <class T>
static void multiply_by_columns(const MatrixVector<T>& product) {
  constexpr long STRETCH = 8192 / sizeof(T);
  const long step = product.a.column;
  for (long begin = 0; begin < product.rows; begin += STRETCH) {
    const long rows = product.rows - begin < STRETCH ? product.rows - begin : STRETCH;
    T sums[STRETCH] = {};
    const T* a = product.a.at + begin;
    long k = 0;
    for (; k + 4 <= product.k; k += 4)
      add_columns<T, 4>(sums, rows, a + k * step, step, product.x + k);
    for (; k < product.k; k++) add_columns<T, 1>(sums, rows, a + k * step, step, product.x + k);
    for (long i = 0; i < rows; i++) put(product, begin + i, sums[i]);
  }
}

template <class T>
static void multiply_vector(const MatrixVector<T>& product) {
  if (product.a.row == 1 && product.rows > 1) return multiply_by_columns(product);
  if (product.a.column == 1) {
    long i = 0;
    for (; i + 4 <= product.rows; i += 4) dot_rows<T, 4>(product, i);
    for (; i < product.rows; i++) dot_rows<T, 1>(product, i);
    return;
  }
  for (long i = 0; i < product.rows; i++) {
    T sum = 0;
    for (long k = 0; k < product.k; k++)
      sum += product.a.at[i * product.a.row + k * product.a.column] * product.x[k];
    put(product, i, sum);
  }
}

}  // namespace gtape
