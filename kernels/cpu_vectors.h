// Vectors of the widest registers that the compiler targets, and transposing them.
#pragma once

#if defined(__AVX512F__)
#define GTAPE_VECTOR_BYTES 64
#elif defined(__AVX__)
#define GTAPE_VECTOR_BYTES 32
#else
#define GTAPE_VECTOR_BYTES 16
#endif

namespace gtape {

// Rows and vectors of a tile of sums that is held in registers: enough sums to hide the latency of
// multiply-adds, with room for one row of the other operand.
#if defined(__AVX512F__)
constexpr int TILE_ROWS = 12, TILE_VECTORS = 2;
#elif defined(__AVX2__)
constexpr int TILE_ROWS = 6, TILE_VECTORS = 2;
#elif defined(__aarch64__)
constexpr int TILE_ROWS = 8, TILE_VECTORS = 3;
#else
constexpr int TILE_ROWS = 4, TILE_VECTORS = 2;
#endif

template <class T>
struct Lanes {
  static constexpr int WIDTH = GTAPE_VECTOR_BYTES / int(sizeof(T));
  typedef T Vector __attribute__((vector_size(GTAPE_VECTOR_BYTES)));
  // The same at any address that is aligned for T.
  typedef T Loose __attribute__((vector_size(GTAPE_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};

template <class T>
using Vector = typename Lanes<T>::Vector;

template <class T>
static inline Vector<T> load(const T* from) {
  return *reinterpret_cast<const typename Lanes<T>::Loose*>(from);
}

template <class T>
static inline void store(T* to, Vector<T> value) {
  *reinterpret_cast<typename Lanes<T>::Loose*>(to) = value;
}

// 0, 1, ..., COUNT - 1 as template arguments.
template <int... I>
struct Indices {};
template <int COUNT, int... I>
struct CountTo : CountTo<COUNT - 1, COUNT - 1, I...> {};
template <int... I>
struct CountTo<0, I...> {
  typedef Indices<I...> Type;
};

template <int BYTES>
struct Integer;
template <>
struct Integer<4> {
  typedef int Type;
};
template <>
struct Integer<8> {
  typedef long long Type;
};

// The lanes of a whose number has the bit D clear, and those of b in the places of the others; or,
// with HIGH, the lanes with the bit set.
template <class T, int D, bool HIGH, int... I>
static inline Vector<T> exchanged(Vector<T> a, Vector<T> b, Indices<I...>) {
  constexpr int W = Lanes<T>::WIDTH;
#if defined(__clang__)
  return __builtin_shufflevector(
      a, b, (I & D ? W + I - (HIGH ? 0 : D) : I + (HIGH ? D : 0))...);
#else
  typedef typename Integer<sizeof(T)>::Type Index;
  typedef Index Mask __attribute__((vector_size(GTAPE_VECTOR_BYTES)));
  return __builtin_shuffle(
      a, b, Mask{(I & D ? W + I - (HIGH ? 0 : D) : I + (HIGH ? D : 0))...});
#endif
}

// One step of transposing: blocks of D by D lanes change places across the diagonal.
template <class T, int D>
static inline void exchange(Vector<T> (&rows)[Lanes<T>::WIDTH]) {
  constexpr int W = Lanes<T>::WIDTH;
  typename CountTo<W>::Type lanes;
#pragma GCC unroll 16
  for (int i = 0; i < W; i++)
    if (!(i & D)) {
      const Vector<T> low = exchanged<T, D, false>(rows[i], rows[i + D], lanes);
      rows[i + D] = exchanged<T, D, true>(rows[i], rows[i + D], lanes);
      rows[i] = low;
    }
}

// rows[i][j] and rows[j][i] change places.
template <class T>
static inline void transpose(Vector<T> (&rows)[Lanes<T>::WIDTH]) {
  constexpr int W = Lanes<T>::WIDTH;
  if constexpr (W > 8) exchange<T, 8>(rows);
  if constexpr (W > 4) exchange<T, 4>(rows);
  if constexpr (W > 2) exchange<T, 2>(rows);
  exchange<T, 1>(rows);
}

}  // namespace gtape
