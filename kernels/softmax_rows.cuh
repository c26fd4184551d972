// What softmax, log-sum-exp and the cross entropies have in common: for each row x of a matrix its
// largest element m and s = sum e^(x - m), then results made of x - m or e^(x - m).
//
// A row is read from global memory once where it fits on chip:
//   rows_in_lanes      in the registers of 4 to 32 lanes; 32 / lanes rows to a warp
//   rows_in_block      in the registers of a block
//   rows_in_tiles      tile by tile, copied to shared memory (CACHED) or read again
// m and s of a row in tiles are found together: when m grows, s shrinks by e^(m_old - m_new)
// (Milakov and Gimelshein 2018, arXiv:1805.02867).
//
// The results come from an object R, copied for each row:
//   R::exponentials    it takes e^(x - m); otherwise x - m
//   R::bounded         m is at most the largest finite number, so that +inf makes s = inf, not nan
//   passes             whether anything remains to be done when m and s are known
//   writes             whether a row of results is stored
//   open(x, r)         before anything of row r may be overwritten by its results
//   known(m, s)        the row's two numbers, known to each thread
//   apply(kept, out, slice)
//   close(team, r, active)    by all threads of the team, after every apply
#pragma once
#include "row_slice.cuh"

struct Larger {
    template <typename A> static DEVICE A identity() { return -infinity<A>(); }
    template <typename A> static DEVICE A combine(A a, A b) { return fmax(a, b); }
};

// The largest finite number. m starts at its negative and never is -inf: e^(-inf - m) is then 0,
// and so is s of a row of -inf alone. An element that is nan makes s nan, whatever m is.
template <typename C> DEVICE C largest_finite();
template <> DEVICE float largest_finite<float>() { return __int_as_float(0x7f7fffff); }
template <> DEVICE double largest_finite<double>() {
    return __longlong_as_double(0x7fefffffffffffffll);
}

// e^z to the precision of T. The short form is off by 2 + |z| units of float's last place, which
// no two-byte float shows.
template <typename T> DEVICE compute_t<T> exponential(compute_t<T> z) {
    if constexpr (sizeof(T) == 2) return __expf(z);
    else return exp(z);
}

template <bool BOUNDED, typename C> DEVICE C bounded(C m) {
    return BOUNDED ? fmin(m, largest_finite<C>()) : m;
}

template <typename T, int N, typename Team, typename R>
DEVICE void row_in_registers(const T* x, T* y, long long row, bool active, long long cols,
                             bool wide, const Team& team, R result) {
    using C = compute_t<T>;
    result.open(x + row * cols, row);
    Slice<T, N> slice(team.rank, team.size, wide, 0, active ? cols : 0);
    T held[N];
    load(x + row * cols, slice, T(-infinity<C>()), held);
    C z[N], m = -largest_finite<C>(), total = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        z[i] = held[i];
        m = fmax(m, z[i]);
    }
    m = bounded<R::bounded>(team.template reduce<Larger>(m));
#pragma unroll
    for (int i = 0; i < N; ++i) {
        z[i] -= m;
        C e = exponential<T>(z[i]);
        total += e;
        if (R::exponentials) z[i] = e;
    }
    result.known(m, team.template reduce<Sum>(total));
    __syncwarp();  // what open() read is read before a neighbour overwrites it
    if (result.passes) {
        result.apply(z, held, slice);
        if (result.writes) store(y + row * cols, slice, held);
    }
    result.close(team, row, active);
}

template <typename T, int N, typename R>
DEVICE void rows_in_lanes(const T* x, T* y, long long rows, long long cols, long long lanes,
                          bool wide, const R& result) {
    Lanes team(lanes);
    int mine = threadIdx.x / team.size, per_block = blockDim.x / team.size;
    long long stride = (long long)gridDim.x * per_block;
    for (long long first = (long long)blockIdx.x * per_block; first < rows; first += stride) {
        long long row = first + mine;
        bool active = row < rows;
        // The lanes of a row that is not there take part in the shuffles.
        row_in_registers<T, N>(x, y, active ? row : rows - 1, active, cols, wide, team, result);
    }
}

template <typename T, int N, typename R>
DEVICE void rows_in_block(const T* x, T* y, long long rows, long long cols, bool wide,
                          compute_t<T>* scratch, const R& result) {
    Block<compute_t<T>> team(scratch);
    for (long long row = blockIdx.x; row < rows; row += gridDim.x)
        row_in_registers<T, N>(x, y, row, true, cols, wide, team, result);
}

// `cache` holds a row where CACHED. Each thread reads of it only what it wrote itself.
template <typename T, int N, bool CACHED, typename R>
DEVICE void row_in_tiles(const T* x, T* y, T* cache, long long row, long long cols, bool wide,
                         const Block<compute_t<T>>& team, R result) {
    using C = compute_t<T>;
    const long long tile = (long long)team.size * N;
    x += row * cols;
    result.open(x, row);
    T held[N];
    C z[N], m = -largest_finite<C>(), total = 0;
    for (long long first = 0; first < cols; first += tile) {
        Slice<T, N> slice(team.rank, team.size, wide, first, cols);
        load(x, slice, T(-infinity<C>()), held);
        if (CACHED) store(cache, slice, held);
        C top = m;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            z[i] = held[i];
            top = fmax(top, z[i]);
        }
        top = bounded<R::bounded>(top);
        total *= exponential<T>(m - top);
        m = top;
#pragma unroll
        for (int i = 0; i < N; ++i) total += exponential<T>(z[i] - m);
    }
    C top = team.template reduce<Larger>(m);
    result.known(top, team.template reduce<Sum>(total * exponential<T>(m - top)));
    __syncwarp();  // as above; a block of more warps had its barriers in the reductions
    if (result.passes) {
        for (long long first = 0; first < cols; first += tile) {
            Slice<T, N> slice(team.rank, team.size, wide, first, cols);
            load(CACHED ? cache : x, slice, T(-infinity<C>()), held);
#pragma unroll
            for (int i = 0; i < N; ++i) {
                z[i] = held[i] - top;
                if (R::exponentials) z[i] = exponential<T>(z[i]);
            }
            result.apply(z, held, slice);
            if (result.writes) store(y + row * cols, slice, held);
        }
    }
    result.close(team, row, true);
}

template <typename T, int N, bool CACHED, typename R>
DEVICE void rows_in_tiles(const T* x, T* y, T* cache, long long rows, long long cols, bool wide,
                          compute_t<T>* scratch, const R& result) {
    Block<compute_t<T>> team(scratch);
    for (long long row = blockIdx.x; row < rows; row += gridDim.x)
        row_in_tiles<T, N, CACHED>(x, y, cache, row, cols, wide, team, result);
}
