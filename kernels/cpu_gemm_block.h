// GEMM on one thread: blocks of A that stay in the second-level cache, panels of B that stay in
// the first.
//
// After Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), with two
// changes: a panel of B is packed for each block of A, by the first tile that reads it, which hides
// the copying behind arithmetic; and operands that are small or laid out well are not packed.
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "cpu_gemm_pack.h"
#include "cpu_thread_local.h"

namespace gtape {

// k in one pass over C. It depends on nothing but k, so that sums do not either.
constexpr long DEPTH = 384;
// How many columns of C pay for packing a block of A.
constexpr long PAYS = 96;
// Elements that B may span to be read where it lies, again and again.
constexpr long NEAR = 8192;

// Bytes of the packed block of A: most of the second-level cache.
static long block_bytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  constexpr long cache = 0;
#endif
  const long bytes = cache > 0 ? cache / 4 * 3 : 512 << 10;
  return bytes < 192 << 10 ? 192 << 10 : bytes > 2 << 20 ? 2 << 20 : bytes;
}

template <class T>
struct Product {
  long m, n, k;
  Matrix<T> a, b;
  T* c;
  long c_row, c_column;
  bool accumulate;

  // The rows and columns of C from (i, j) on.
  Product part(long i, long j, long rows, long columns) const {
    return {rows, columns, k, a.from(i, 0), b.from(0, j), c + i * c_row + j * c_column, c_row,
            c_column, accumulate};
  }

  // The same product, told of the transposed matrices.
  Product transposed() const {
    return {n, m, k, b.transposed(), a.transposed(), c, c_column, c_row, accumulate};
  }
};

static constexpr long divide_up(long a, long b) { return (a + b - 1) / b; }

// Panel `number` of `count` equal ones.
static inline long panel_begin(long rows, long count, long number) {
  return rows / count * number + (number < rows % count ? number : rows % count);
}

// The distance of the columns of a packed panel of A. Vectors of it are written one after another,
// so none may reach into a column that was written before.
static constexpr long panel_stride(long rows, long width) {
  return rows <= width ? rows : divide_up(rows, width) * width;
}

// Where operands are packed: `a` for `rows` rows of A, a multiple of TILE_ROWS, and `b` for a panel of
// columns of B. A vector may be written beyond the last element.
template <class T>
struct Buffers {
  static constexpr long SPARE = Lanes<T>::WIDTH, B_SIZE = DEPTH * TILE_COLUMNS<T> + SPARE;
  static constexpr long a_size(long rows) {
    return rows / TILE_ROWS * panel_stride(TILE_ROWS, Lanes<T>::WIDTH) * DEPTH + SPARE;
  }
  long rows;
  T *a, *b;
};

// Gives back what a thread had, when it ends.
template <class T>
static pthread_key_t ending() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    return pthread_key_create(&made, free) == 0 ? made : pthread_key_t(-1);
  }();
  return key;
}

// The calling thread's, one for each type; `b` is null where memory has run out.
template <class T>
static Buffers<T> buffers() {
  GTAPE_OF_THREAD T* kept = nullptr;
  const long rows = block_bytes() / (DEPTH * long(sizeof(T))) / TILE_ROWS * TILE_ROWS;
  constexpr long B_SIZE = Buffers<T>::B_SIZE;
  void* made = nullptr;
  if (!kept && !posix_memalign(&made, 64, (B_SIZE + Buffers<T>::a_size(rows)) * sizeof(T))) {
    if (pthread_setspecific(ending<T>(), made) == 0)
      kept = static_cast<T*>(made);
    else
      free(made);
  }
  return {rows, kept + B_SIZE, kept};
}

template <class T>
static void pack_rows(const Product<T>& product, T* to) {
  for (long i = 0; i < product.m;) {
    const long rows = tile_rows(product.m - i), stride = panel_stride(rows, Lanes<T>::WIDTH);
    pack(product.a.from(i, 0).transposed(), product.k, rows, product.m - i, to, stride);
    to += product.k * stride;
    i += rows;
  }
}

// One panel of columns of C: all rows, and the whole k. With `fused` the first tile packs B.
template <class T, Layout A>
static void multiply_panel(const Product<T>& product, Tile<T> tile, bool packed_a, bool fused) {
  for (long i = 0; i < product.m;) {
    const int rows = tile_rows(product.m - i);
    if (packed_a) tile.a_stride = panel_stride(rows, Lanes<T>::WIDTH);
    if (A == Layout::COLUMNS && fused) {
      compute<T, TILE_ROWS, TILE_VECTORS, A, true>(tile);
      tile.b = tile.packed;
      tile.b_stride = TILE_COLUMNS<T>;
      fused = false;
    } else {
      compute_tile<T, A>(rows, tile);
    }
    tile.a += packed_a ? product.k * tile.a_stride : rows * product.a.row;
    tile.c += rows * product.c_row;
    i += rows;
  }
}

// A block of C whose k, and whose rows of A, fit the buffers.
template <class T>
static void multiply_block(const Product<T>& product, const Buffers<T>& kept) {
  const Matrix<T>& a = product.a;
  const bool pack_a = (a.row != 1 && a.column != 1) || product.n > PAYS;
  const bool by_columns = pack_a || a.row == 1;
  if (pack_a) pack_rows(product, kept.a);
  for (long j = 0; j < product.n; j += TILE_COLUMNS<T>) {
    const long columns = product.n - j < TILE_COLUMNS<T> ? product.n - j : TILE_COLUMNS<T>;
    const long width = divide_up(columns, Lanes<T>::WIDTH) * Lanes<T>::WIDTH;
    const Matrix<T> b = product.b.from(0, j);
    const bool readable = b.column == 1 && columns == width;
    const bool direct = readable && (product.m <= 4 * TILE_ROWS || product.k * b.row <= NEAR);
    const bool fused = readable && !direct && by_columns && width == TILE_COLUMNS<T>;
    if (!direct && !fused) pack(b, product.k, columns, product.n - j, kept.b, width);
    const Tile<T> tile = {product.k,
                          pack_a ? kept.a : a.at,
                          by_columns ? a.column : a.row,
                          direct || fused ? b.at : kept.b,
                          direct || fused ? b.row : width,
                          product.c + j * product.c_column,
                          product.c_row,
                          product.c_column,
                          columns,
                          product.accumulate,
                          kept.b};
    if (by_columns)
      multiply_panel<T, Layout::COLUMNS>(product, tile, pack_a, fused);
    else
      multiply_panel<T, Layout::ROWS>(product, tile, false, false);
  }
}

template <class T>
static void multiply_blocks(const Product<T>& product, const Buffers<T>& kept) {
  const long passes = divide_up(product.k, DEPTH);
  for (long p = 0; p < passes; p++) {
    const long from = panel_begin(product.k, passes, p);
    const long k = panel_begin(product.k, passes, p + 1) - from;
    const long blocks = divide_up(product.m, kept.rows);
    for (long i = 0; i < blocks; i++) {
      const long begin = panel_begin(product.m, blocks, i);
      Product<T> block = product.part(begin, 0, panel_begin(product.m, blocks, i + 1) - begin,
                                      product.n);
      block.k = k;
      block.a = block.a.from(0, from);
      block.b = block.b.from(from, 0);
      block.accumulate = product.accumulate || p > 0;
      multiply_block(block, kept);
    }
  }
}

// Where memory has run out: a few rows at a time are packed on the stack, with the same result.
template <class T>
static __attribute__((noinline)) void multiply_on_stack(const Product<T>& product) {
  alignas(64) T a[Buffers<T>::a_size(TILE_ROWS)], b[Buffers<T>::B_SIZE];
  multiply_blocks(product, {TILE_ROWS, a, b});
}

// The whole product on the calling thread; m, n and k are positive.
template <class T>
static void multiply(const Product<T>& product) {
  const Buffers<T> kept = buffers<T>();
  if (kept.b)
    multiply_blocks(product, kept);
  else
    multiply_on_stack(product);
}

}  // namespace gtape
