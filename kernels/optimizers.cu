// Updates of all variables of a model in one launch, and the squares of their gradients in another.
//
// For each element of each tensor: g' = the gradient times `unscale`, held within +-bound or times
// limit / max(norm, limit); w' = w - shrink w where the tensor decays; new = w' - step(g', slots),
// by a rule of optimizers.cuh, computed in float for the two-byte types. `new` may be w itself. A
// tensor with a `copy` also gets its new values there, rounded to the type of its gradient: the
// form in which a model computes with float weights.
//
// `table` has a row of ROW_WORDS long longs for each tensor: the addresses of w, gradient, new,
// copy (or 0) and three slots (or 0), the number of elements, whether it decays, where its chunks
// begin and how many they are. `chunks[c]` is the tensor's row in the upper 32 bits and the number
// of the chunk in it in the lower; a chunk is `chunk` elements, a multiple of 16. Geometry: any
// grid of 256 threads; a block takes whole chunks. Sums of squares are added in an order that
// depends on the table alone, so an update repeats bit by bit.
#include "optimizers.cuh"

#define ROW_WORDS 12

template <typename T> DEVICE T* address(const long long* row, int word) {
    return reinterpret_cast<T*>((unsigned long long)row[word]);
}

DEVICE const long long* row_of(const void* table, long long chunk) {
    return static_cast<const long long*>(table) + (chunk >> 32) * ROW_WORDS;
}

// n values of x from `at` on, at once if they are V, which x must then be aligned for.
template <int V, typename T, typename A>
DEVICE void read(const T* x, long long at, int n, A* to) {
    if (n == V) {
        Vec<T, V> moved = *reinterpret_cast<const Vec<T, V>*>(x + at);
#pragma unroll
        for (int j = 0; j < V; j++) to[j] = (A)moved.v[j];
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) to[j] = j < n ? (A)x[at + j] : A(0);
    }
}

template <int V, typename T, typename A>
DEVICE void write(T* x, long long at, int n, const A* from) {
    if (n == V) {
        Vec<T, V> moved;
#pragma unroll
        for (int j = 0; j < V; j++) moved.v[j] = T(from[j]);
        *reinterpret_cast<Vec<T, V>*>(x + at) = moved;
    } else {
#pragma unroll
        for (int j = 0; j < V; j++)
            if (j < n) x[at + j] = T(from[j]);
    }
}

DEVICE int at_most(long long left, int most) { return left < most ? (int)left : most; }

// The sum of count squares from `first` on, known to every thread of the block.
DEVICE double summed(const double* squares, long long first, long long count, double* scratch) {
    double sum = 0.0;
    for (long long i = threadIdx.x; i < count; i += blockDim.x) sum += squares[first + i];
    return block_reduce<Sum>(sum, scratch);
}

DEVICE double shrunk_to(double limit, double square) {
    double norm = sqrt(square);
    return norm > limit ? limit / norm : norm == norm ? 1.0 : norm;
}

template <int V, typename G>
DEVICE compute_t<G> squares_of(const G* g, long long from, long long end, double unscale) {
    using A = compute_t<G>;
    A sum = A(0), values[V];
    for (long long at = from + threadIdx.x * V; at < end; at += blockDim.x * V) {
        int n = at_most(end - at, V);
        read<V>(g, at, n, values);
#pragma unroll
        for (int j = 0; j < V; j++) {
            A value = values[j] * (A)unscale;
            sum += value * value;
        }
    }
    return sum;
}

// squares[c] = the sum of (unscale g)^2 over chunk c.
template <typename G>
__global__ void __launch_bounds__(256)
square_sums(const void* __restrict__ table, const long long* __restrict__ chunks,
            long long count, long long chunk, double unscale, double* squares) {
    __shared__ double scratch[32];
    for (long long c = blockIdx.x; c < count; c += gridDim.x) {
        const long long* row = row_of(table, chunks[c]);
        const G* g = address<const G>(row, 1);
        long long from = (chunks[c] & 0xffffffffll) * chunk;
        long long end = from + chunk < row[7] ? from + chunk : row[7];
        double sum = aligned16(g) ? squares_of<Width<G>::value>(g, from, end, unscale)
                                  : squares_of<1>(g, from, end, unscale);
        sum = block_reduce<Sum>(sum, scratch);
        if (threadIdx.x == 0) squares[c] = sum;
    }
}

// The numbers that are the same for all elements of a chunk.
template <typename A> struct Numbers { A factor, bound, shrink, k[7]; };

template <int V, typename T, typename G, typename Rule>
DEVICE void update_chunk(const long long* row, long long from, long long end,
                         const Numbers<compute_t<T>>& of) {
    using A = compute_t<T>;
    constexpr int S = Rule::slots;
    const T* w = address<const T>(row, 0);
    const G* g = address<const G>(row, 1);
    T* fresh = address<T>(row, 2);
    G* copy = address<G>(row, 3);
    for (long long at = from + threadIdx.x * V; at < end; at += blockDim.x * V) {
        int n = at_most(end - at, V);
        A weight[V], gradient[V], slot[S + 1][V];
        read<V>(w, at, n, weight);
        read<V>(g, at, n, gradient);
#pragma unroll
        for (int i = 0; i < S; i++) read<V>(address<const T>(row, 4 + i), at, n, slot[i]);
#pragma unroll
        for (int j = 0; j < V; j++) {
            A s[S + 1], d = gradient[j] * of.factor;
            d = d > of.bound ? of.bound : d < -of.bound ? -of.bound : d;
#pragma unroll
            for (int i = 0; i < S; i++) s[i] = slot[i][j];
            A kept = weight[j] - weight[j] * of.shrink;
            weight[j] = kept - Rule::step(of.k, d, s);
#pragma unroll
            for (int i = 0; i < S; i++) slot[i][j] = s[i];
        }
        write<V>(fresh, at, n, weight);
        if (copy) write<V>(copy, at, n, weight);
#pragma unroll
        for (int i = 0; i < S; i++) write<V>(address<T>(row, 4 + i), at, n, slot[i]);
    }
}

// `norms`: 0, no norm limits gradients; 1, that of each tensor; 2, that of all, whose `sums`
// squares need not come from this table alone. A norm of all that is not finite makes the gradients
// nan.
template <typename T, typename G, typename Rule>
__global__ void __launch_bounds__(256, 2)
update(const void* __restrict__ table, const long long* __restrict__ chunks, long long count,
       long long chunk, const double* __restrict__ squares, long long sums, long long norms,
       double limit, double bound, double unscale, double shrink, double k0, double k1, double k2,
       double k3, double k4, double k5, double k6) {
    using A = compute_t<T>;
    __shared__ double scratch[32];
    double of_all = 1.0;
    if (norms == 2) {
        double square = summed(squares, 0, sums, scratch);
        of_all = square < infinity<double>() ? shrunk_to(limit, square) : not_a_number<double>();
    }
    for (long long c = blockIdx.x; c < count; c += gridDim.x) {
        const long long* row = row_of(table, chunks[c]);
        long long from = (chunks[c] & 0xffffffffll) * chunk;
        long long end = from + chunk < row[7] ? from + chunk : row[7];
        double scale = of_all;
        if (norms == 1) scale = shrunk_to(limit, summed(squares, row[9], row[10], scratch));
        Numbers<A> of{A(scale * unscale), A(bound), row[8] ? A(shrink) : A(0),
                      {A(k0), A(k1), A(k2), A(k3), A(k4), A(k5), A(k6)}};
        long long odd = 0;
#pragma unroll
        for (int i = 0; i < 4 + Rule::slots; i++) odd |= row[i] & 15;
        if (odd) update_chunk<1, T, G, Rule>(row, from, end, of);
        else update_chunk<Width<T>::value, T, G, Rule>(row, from, end, of);
    }
}
