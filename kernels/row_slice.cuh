// Rows of a matrix in the registers of a team of threads: part of a warp, or a block.
//
// A thread holds N values of a tile of size * N columns. Where `wide` holds (16-byte alignment of
// every pointer and a row length that is a multiple of V) they are N / V runs of V neighbours,
// each moved by one 16-byte access; otherwise every size-th column, so that neighbouring threads
// still touch neighbouring elements.
#pragma once
#include "gtape.cuh"

// The same number, of which the compiler knows nothing: it computes column numbers again where they
// are used, not N of them at once to be kept in registers.
DEVICE int forgotten(int value) {
#ifndef GTAPE_EMULATOR
    asm volatile("" : "+r"(value));
#endif
    return value;
}

// Which columns of a tile a thread holds.
template <typename T, int N> struct Slice {
    static constexpr int V = Width<T>::value;
    int rank, size;
    bool wide;
    long long first;  // the column of the row at which the tile starts
    int own;          // so many values are the thread's own: 0 to own - 1; the others are beyond

    DEVICE Slice(int rank, int size, bool wide, long long first, long long cols)
        : rank(rank), size(size), wide(wide), first(first) {
        long long left = cols - first;
        int step = wide ? V : 1;
        if (left >= (long long)size * N) own = N;
        else {
            int after = (int)left - rank * step;
            own = after > 0 ? (after + size * step - 1) / (size * step) * step : 0;
        }
    }

    // Which of the thread's values is this column of the row; -1: none.
    DEVICE int index(long long column) const {
        column -= first;
        if (column < 0 || column >= (long long)size * N) return -1;
        int c = (int)column, step = wide ? V : 1;
        int run = c / step, turn = run / size;
        return run - turn * size == rank ? turn * step + c % step : -1;
    }
};

// The slice's values of the row that starts at `row`; `fill` beyond its end.
template <typename T, int N>
DEVICE void load(const T* row, const Slice<T, N>& slice, T fill, T (&v)[N]) {
    constexpr int V = Width<T>::value;
    row += slice.first;
    if (slice.wide) {
        row += forgotten(slice.rank) * V;
#pragma unroll
        for (int k = 0; k < N; k += V) {
            Vec<T, V> part;
#pragma unroll
            for (int i = 0; i < V; ++i) part.v[i] = fill;
            if (k < slice.own) part = *reinterpret_cast<const Vec<T, V>*>(row + k * slice.size);
#pragma unroll
            for (int i = 0; i < V; ++i) v[k + i] = part.v[i];
        }
    } else {
        row += forgotten(slice.rank);
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = i < slice.own ? row[i * slice.size] : fill;
    }
}

template <typename T, int N>
DEVICE void store(T* row, const Slice<T, N>& slice, const T (&v)[N]) {
    constexpr int V = Width<T>::value;
    row += slice.first;
    if (slice.wide) {
        row += forgotten(slice.rank) * V;
#pragma unroll
        for (int k = 0; k < N; k += V) {
            Vec<T, V> part;
#pragma unroll
            for (int i = 0; i < V; ++i) part.v[i] = v[k + i];
            if (k < slice.own) *reinterpret_cast<Vec<T, V>*>(row + k * slice.size) = part;
        }
    } else {
        row += forgotten(slice.rank);
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (i < slice.own) row[i * slice.size] = v[i];
    }
}

// Neighbouring lanes of a warp, a power of two of them, that share a row.
struct Lanes {
    int rank, size;
    DEVICE explicit Lanes(long long lanes)
        : rank(threadIdx.x & ((int)lanes - 1)), size((int)lanes) {}
    template <typename R, typename A> DEVICE A reduce(A value) const {
        for (int d = size >> 1; d; d >>= 1)
            value = R::combine(value, __shfl_xor_sync(FULL_WARP, value, d));
        return value;
    }
};

// A block that has a row to itself. `scratch` is shared memory for 32 values.
template <typename C> struct Block {
    int rank, size;
    C* scratch;
    DEVICE explicit Block(C* memory) : rank(threadIdx.x), size(blockDim.x), scratch(memory) {}
    template <typename R> DEVICE C reduce(C value) const {
        return block_reduce<R>(value, scratch);
    }
};
