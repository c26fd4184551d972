// Copies of operands in the order in which the tiles of GEMM read them.
#pragma once

#include "cpu_gemm_tile.h"

namespace gtape {

// A matrix anywhere in memory: element (i, j) is at[i * row + j * column].
template <class T>
struct Matrix {
  const T* at;
  long row, column;

  Matrix from(long i, long j) const { return {at + i * row + j * column, row, column}; }
  Matrix transposed() const { return {at, column, row}; }
};

// Copies `length` times `width` elements so that to[i * stride + j] is element (i, j), where a row
// has `available` elements. Rows are written in order, whole vectors of them: what follows the last
// one in memory is lost. Nothing beyond the last element of the matrix is read.
template <class T>
static inline void pack_side_by_side(Matrix<T> from, long length, long width, long available,
                                     T* to, long stride) {
  constexpr int W = Lanes<T>::WIDTH;
  const long beyond = (width + W - 1) / W * W - available;
  const long whole = beyond <= 0     ? length
                     : from.row <= 0 ? 0
                                     : length - (beyond - 1) / from.row - 1;
  long i = 0;
  for (; i < whole; i++)
    for (long j = 0; j < width; j += W)
      store(to + i * stride + j, load(from.at + i * from.row + j));
  for (; i < length; i++)
    for (long j = 0; j < width; j++) to[i * stride + j] = from.at[i * from.row + j];
}

// The same where the elements of a column are side by side.
template <class T>
static inline void pack_transposed(Matrix<T> from, long length, long width, T* to, long stride) {
  constexpr int W = Lanes<T>::WIDTH;
  long i = 0;
  for (; i + W <= length; i += W)
    for (long j = 0; j < width; j += W) {
      Vector<T> block[W];
#pragma GCC unroll 16
      for (int v = 0; v < W; v++)
        block[v] = load(from.at + i + (j + v < width ? j + v : width - 1) * from.column);
      transpose<T>(block);
#pragma GCC unroll 16
      for (int v = 0; v < W; v++) store(to + (i + v) * stride + j, block[v]);
    }
  for (; i < length; i++)
    for (long j = 0; j < width; j++) to[i * stride + j] = from.at[i + j * from.column];
}

template <class T>
static inline void pack(Matrix<T> from, long length, long width, long available, T* to,
                        long stride) {
  if (from.column == 1) return pack_side_by_side(from, length, width, available, to, stride);
  if (from.row == 1) return pack_transposed(from, length, width, to, stride);
  for (long i = 0; i < length; i++)
    for (long j = 0; j < width; j++)
      to[i * stride + j] = from.at[i * from.row + j * from.column];
}

}  // namespace gtape
