// Matrix products of sizes known when they are compiled, in line with the program around them.
//
//   template <class T, long M, long N, long K, long A_ROW, long A_COLUMN,
//             long B_ROW, long B_COLUMN, long C_ROW, bool ACCUMULATE = false>
//   void gtape::small_gemm(const T* a, const T* b, T* c);
//
// C = A B, or C += A B with ACCUMULATE: A is (M, K), B is (K, N), T is float or double. Element
// (i, j) of A is a[i * A_ROW + j * A_COLUMN], the same for B; that of C is c[i * C_ROW + j]. So the
// transpose of a matrix is that matrix with its strides exchanged. C must not overlap A or B.
//
// Meant for up to about 64 x 64 x 64: one thread, and no copy of A. Of B a panel of columns is
// copied to the stack where its rows are not whole vectors side by side.
#pragma once

#include "cpu_vectors.h"

// Products and sums here may be contracted to multiply-adds, in programs where nothing else is.
#if defined(__clang__)
#define GTAPE_CONTRACTED
#define GTAPE_CONTRACT _Pragma("clang fp contract(fast)")
#else
#define GTAPE_CONTRACTED __attribute__((optimize("fp-contract=fast")))
#define GTAPE_CONTRACT
#endif

namespace gtape {
namespace small {

template <class T, long M_, long N_, long K_, long A_ROW_, long A_COLUMN_, long B_ROW_,
          long B_COLUMN_, long C_ROW_, bool ACCUMULATE_>
struct Shape {
  typedef T Type;
  static constexpr long M = M_, N = N_, K = K_, W = Lanes<T>::WIDTH;
  static constexpr long A_ROW = A_ROW_, A_COLUMN = A_COLUMN_;
  static constexpr long B_ROW = B_ROW_, B_COLUMN = B_COLUMN_;
  static constexpr long C_ROW = C_ROW_;
  static constexpr bool ACCUMULATE = ACCUMULATE_;
};

// COUNT elements of a sum, which may be fewer than a vector has, go to C.
template <class S, long COUNT, class T, class V>
static inline void put(T* c, V sum) {
  if constexpr (COUNT == S::W) {
    store(c, S::ACCUMULATE ? load(c) + sum : sum);
  } else {
    T lanes[S::W];
    store(lanes, sum);
    for (long j = 0; j < COUNT; j++) c[j] = S::ACCUMULATE ? c[j] + lanes[j] : lanes[j];
  }
}

// HEIGHT rows of a panel of COLUMNS columns, held in registers while k runs.
template <class S, long HEIGHT, long COLUMNS, long B_ROW, class T>
static inline GTAPE_CONTRACTED void tile(const T* a, const T* b, T* c) {
  GTAPE_CONTRACT
  constexpr long W = S::W, COUNT = (COLUMNS + W - 1) / W;
  Vector<T> sums[HEIGHT][COUNT] = {};
  for (long k = 0; k < S::K; k++) {
    Vector<T> row[COUNT];
#pragma GCC unroll 4
    for (long v = 0; v < COUNT; v++) row[v] = load(b + k * B_ROW + v * W);
#pragma GCC unroll 16
    for (long i = 0; i < HEIGHT; i++) {
      const T scale = a[i * S::A_ROW + k * S::A_COLUMN];
#pragma GCC unroll 4
      for (long v = 0; v < COUNT; v++) sums[i][v] += scale * row[v];
    }
  }
#pragma GCC unroll 16
  for (long i = 0; i < HEIGHT; i++) {
#pragma GCC unroll 4
    for (long v = 0; v < COLUMNS / W; v++) put<S, W>(c + i * S::C_ROW + v * W, sums[i][v]);
    if constexpr (COLUMNS % W != 0)
      put<S, COLUMNS % W>(c + i * S::C_ROW + COLUMNS / W * W, sums[i][COUNT - 1]);
  }
}

// Rows are divided evenly, so that a tile of few rows is not left over.
template <class S, long COLUMNS, long B_ROW, class T>
static inline GTAPE_CONTRACTED void panel(const T* a, const T* b, T* c) {
  constexpr long TILES = (S::M + TILE_ROWS - 1) / TILE_ROWS;
  constexpr long HEIGHT = S::M / TILES, HIGHER = S::M % TILES;
  for (long t = 0; t < HIGHER; t++, a += (HEIGHT + 1) * S::A_ROW, c += (HEIGHT + 1) * S::C_ROW)
    tile<S, HEIGHT + 1, COLUMNS, B_ROW>(a, b, c);
  for (long t = HIGHER; t < TILES; t++, a += HEIGHT * S::A_ROW, c += HEIGHT * S::C_ROW)
    tile<S, HEIGHT, COLUMNS, B_ROW>(a, b, c);
}

// COLUMNS columns of B in rows of WIDTH, with zeros where there is no column.
template <class S, long COLUMNS, long WIDTH, class T>
static inline void copy_panel(const T* b, T* to) {
  constexpr long W = S::W, BLOCKS = S::B_ROW == 1 ? COLUMNS / W : 0;
  constexpr long DONE = BLOCKS > 0 ? S::K / W * W : 0;
  for (long k = 0; k < DONE; k += W)
    for (long j = 0; j < BLOCKS * W; j += W) {
      Vector<T> block[W];
#pragma GCC unroll 16
      for (long v = 0; v < W; v++) block[v] = load(b + k + (j + v) * S::B_COLUMN);
      transpose<T>(block);
#pragma GCC unroll 16
      for (long v = 0; v < W; v++) store(to + (k + v) * WIDTH + j, block[v]);
    }
  for (long k = 0; k < S::K; k++) {
    for (long j = k < DONE ? BLOCKS * W : 0; j < COLUMNS; j++)
      to[k * WIDTH + j] = b[k * S::B_ROW + j * S::B_COLUMN];
    for (long j = COLUMNS; j < WIDTH; j++) to[k * WIDTH + j] = 0;
  }
}

template <class S, long COLUMNS, class T>
static inline GTAPE_CONTRACTED void any_panel(const T* a, const T* b, T* c) {
  constexpr long WIDTH = (COLUMNS + S::W - 1) / S::W * S::W;
  if constexpr (S::B_COLUMN == 1 && COLUMNS == WIDTH) {
    panel<S, COLUMNS, S::B_ROW>(a, b, c);
  } else {
    alignas(64) T copied[S::K * WIDTH];
    copy_panel<S, COLUMNS, WIDTH>(b, copied);
    panel<S, COLUMNS, WIDTH>(a, static_cast<const T*>(copied), c);
  }
}

template <class S, class T>
static inline void put_one(T* y, T sum) {
  *y = S::ACCUMULATE ? *y + sum : sum;
}

// y = A x where the elements of a column of A lie side by side: a vector of y at a time.
template <class S, class T>
static inline GTAPE_CONTRACTED void by_columns(const T* a, const T* x, T* y) {
  GTAPE_CONTRACT
  constexpr long W = S::W, DONE = S::M / W * W;
  for (long i = 0; i < DONE; i += W) {
    Vector<T> sum = {};
    for (long k = 0; k < S::K; k++) sum += x[k * S::B_ROW] * load(a + i + k * S::A_COLUMN);
    T lanes[W];
    store(lanes, sum);
    for (long l = 0; l < W; l++) put_one<S>(y + (i + l) * S::C_ROW, lanes[l]);
  }
  for (long i = DONE; i < S::M; i++) {
    T sum = 0;
    for (long k = 0; k < S::K; k++) sum += a[i + k * S::A_COLUMN] * x[k * S::B_ROW];
    put_one<S>(y + i * S::C_ROW, sum);
  }
}

// y = A x by dot products, of a vector's number of rows at a time: transposing their partial sums
// brings those of each row into its lane.
template <class S, long ROWS, class T>
static inline GTAPE_CONTRACTED void dots(const T* a, const T* x, T* y) {
  GTAPE_CONTRACT
  constexpr long W = S::W, DONE = S::A_COLUMN == 1 && S::B_ROW == 1 ? S::K / W * W : 0;
  T lanes[W] = {};
  if constexpr (DONE > 0) {
    Vector<T> sums[W] = {};
#pragma GCC unroll 16
    for (long i = 0; i < ROWS; i++)
      for (long k = 0; k < DONE; k += W) sums[i] += load(a + i * S::A_ROW + k) * load(x + k);
    transpose<T>(sums);
#pragma GCC unroll 16
    for (long v = 1; v < W; v++) sums[0] += sums[v];
    store(lanes, sums[0]);
  }
  for (long i = 0; i < ROWS; i++) {
    for (long k = DONE; k < S::K; k++)
      lanes[i] += a[i * S::A_ROW + k * S::A_COLUMN] * x[k * S::B_ROW];
    put_one<S>(y + i * S::C_ROW, lanes[i]);
  }
}

// y = A x, where N is 1; the elements of x and y are B_ROW and C_ROW apart.
template <class S, class T>
static inline GTAPE_CONTRACTED void vector(const T* a, const T* x, T* y) {
  constexpr long W = S::W, WHOLE = S::M / W * W;
  if constexpr (S::A_ROW == 1 && S::M >= W) {
    by_columns<S>(a, x, y);
  } else {
    for (long i = 0; i < WHOLE; i += W) dots<S, W>(a + i * S::A_ROW, x, y + i * S::C_ROW);
    if constexpr (S::M > WHOLE)
      dots<S, S::M - WHOLE>(a + WHOLE * S::A_ROW, x, y + WHOLE * S::C_ROW);
  }
}

}  // namespace small

template <class T, long M, long N, long K, long A_ROW, long A_COLUMN, long B_ROW, long B_COLUMN,
          long C_ROW, bool ACCUMULATE = false>
static inline GTAPE_CONTRACTED void small_gemm(const T* a, const T* b, T* c) {
  using namespace small;
  if constexpr (N == 1) {
    vector<Shape<T, M, 1, K, A_ROW, A_COLUMN, B_ROW, 1, C_ROW, ACCUMULATE>>(a, b, c);
  } else if constexpr (M == 1) {
    vector<Shape<T, N, 1, K, B_COLUMN, B_ROW, A_COLUMN, 1, 1, ACCUMULATE>>(b, a, c);
  } else if constexpr (M > 0 && N > 0) {
    typedef Shape<T, M, N, K, A_ROW, A_COLUMN, B_ROW, B_COLUMN, C_ROW, ACCUMULATE> S;
    constexpr long WIDTH = TILE_VECTORS * S::W, WHOLE = N / WIDTH * WIDTH;
    for (long j = 0; j < WHOLE; j += WIDTH) any_panel<S, WIDTH>(a, b + j * B_COLUMN, c + j);
    if constexpr (N > WHOLE) any_panel<S, N - WHOLE>(a, b + WHOLE * B_COLUMN, c + WHOLE);
  }
}

}  // namespace gtape
