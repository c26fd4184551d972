// The innermost loop of GEMM: a tile of C held in registers while k runs.
//
// Every element of C is one sum, taken in the order of k, whatever the tile it lies in: results do
// not depend on how C is divided over tiles and threads.
#pragma once

#include "cpu_vectors.h"

namespace gtape {

template <class T>
constexpr int TILE_COLUMNS = TILE_VECTORS * Lanes<T>::WIDTH;

enum class Layout { ROWS, COLUMNS };

// Where the operands of a tile lie. A is either ROWS, its rows `a_stride` apart with the elements
// of a row side by side, or COLUMNS, the other way round. The rows of B are `b_stride` apart.
template <class T>
struct Tile {
  long k;
  const T* a;
  long a_stride;
  const T* b;
  long b_stride;
  T* c;
  long c_row, c_column;
  long columns;
  bool accumulate;
  // Where the rows of B are copied to, side by side, on the way.
  T* packed;
};

// Adds the sums of a tile, which lie in rows of VECTORS vectors, to C, or puts them there.
template <class T, int VECTORS>
static __attribute__((noinline)) void finish(const Tile<T>& tile, const T* sums, int rows) {
  constexpr int W = Lanes<T>::WIDTH;
  const bool accumulate = tile.accumulate;
  const bool whole = tile.columns == VECTORS * W && tile.c_column == 1;
  T* c = tile.c;
  for (int i = 0; i < rows; i++, c += tile.c_row, sums += VECTORS * W) {
    if (whole) {
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) {
        const Vector<T> sum = load(sums + v * W);
        store(c + v * W, accumulate ? load(c + v * W) + sum : sum);
      }
    } else {
      for (long j = 0; j < tile.columns; j++) {
        T* to = c + j * tile.c_column;
        *to = accumulate ? *to + sums[j] : sums[j];
      }
    }
  }
}

template <class T, int ROWS, int VECTORS, Layout A, bool PACK>
static __attribute__((noinline)) void compute(const Tile<T>& tile) {
  constexpr int W = Lanes<T>::WIDTH;
  Vector<T> sums[ROWS][VECTORS] = {};
  const T* a = tile.a;
  const T* b = tile.b;
  T* packed = tile.packed;
  const long a_stride = tile.a_stride, b_stride = tile.b_stride;
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) __builtin_prefetch(tile.c + i * tile.c_row + v * W, 1);
  for (long k = tile.k; k > 0; k--) {
    Vector<T> row[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) {
      row[v] = load(b + v * W);
      if (PACK) {
        store(packed + v * W, row[v]);
        __builtin_prefetch(b + 16 * b_stride + v * W);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
      const T scale = A == Layout::ROWS ? a[i * a_stride] : a[i];
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) sums[i][v] += scale * row[v];
    }
    a += A == Layout::ROWS ? 1 : a_stride;
    b += b_stride;
    if (PACK) packed += VECTORS * W;
  }
  T results[ROWS * VECTORS * W];
  const bool there = tile.columns == VECTORS * W && tile.c_column == 1 && !tile.accumulate;
  T* to = there ? tile.c : results;
  const long step = there ? tile.c_row : VECTORS * W;
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) store(to + i * step + v * W, sums[i][v]);
  if (!there) finish<T, VECTORS>(tile, results, ROWS);
}

// The rows of the next tile where `left` are left: as many as there can be, then powers of two.
constexpr int tile_rows(long left, int most = TILE_ROWS) {
  if (left >= most) return most;
  int rows = 1;
  while (2 * rows <= left && 2 * rows < most) rows *= 2;
  return rows;
}

template <class T, int VECTORS, Layout A, int ROWS = TILE_ROWS>
static inline void compute_rows(int rows, const Tile<T>& tile) {
  if (rows == ROWS) return compute<T, ROWS, VECTORS, A, false>(tile);
  if constexpr (ROWS > 1) compute_rows<T, VECTORS, A, tile_rows(ROWS - 1)>(rows, tile);
}

// Computes a tile of `rows` rows, a number that tile_rows gives, and as many vectors as its columns
// need.
template <class T, Layout A, int VECTORS = TILE_VECTORS>
static inline void compute_tile(int rows, const Tile<T>& tile) {
  if constexpr (VECTORS > 0) {
    if (tile.columns > (VECTORS - 1) * Lanes<T>::WIDTH)
      return compute_rows<T, VECTORS, A>(rows, tile);
    return compute_tile<T, A, VECTORS - 1>(rows, tile);
  }
}

}  // namespace gtape
