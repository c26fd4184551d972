// The tiles of a matrix product by 256 threads: 64 G x 64 G results, 4 G x 4 G for each thread,
// summed over TERMS terms at a time from shared memory.
//
// Thread t holds rows 64 q + 4 (t / 16) + i and columns 64 q + 4 (t % 16) + j for q < G: with four
// neighbours at a time, a warp reads shared memory without bank conflicts.
#pragma once
#include "gtape.cuh"

#define TERMS 16

// One operand, twice: TERMS rows of 64 G values. The padding spreads transposed stores over banks
// and keeps rows a multiple of 32 bytes.
template <typename A, int G> struct alignas(32) Tile { A v[2][TERMS][64 * G + 4]; };

// A row of a product: where its values begin in the source and the result, and its first input.
struct Place {
    long long source, result;
    int z, y, x;
};

// An input that is in no array.
#define NOWHERE (-(1 << 30))

// How many neighbours are stored at once: 16 bytes, 8 of the two-byte floats.
template <typename T> struct Neighbours { static constexpr int value = sizeof(T) == 8 ? 2 : 4; };

template <int V, typename T> DEVICE Vec<T, V> load_neighbours(const T* from, bool aligned) {
    if constexpr (V == 1) {
        return {*from};
    } else {
        if (aligned) return *(const Vec<T, V>*)from;
        Vec<T, V> loaded;
#pragma unroll
        for (int v = 0; v < V; ++v) loaded.v[v] = from[v];
        return loaded;
    }
}

template <typename A, int G>
DEVICE void multiply(const A (&rows)[TERMS][64 * G + 4], const A (&columns)[TERMS][64 * G + 4],
                     A (&sum)[4 * G][4 * G]) {
    int ty = threadIdx.x >> 4, tx = threadIdx.x & 15;
    // Unrolled, it would need more registers than two blocks on a multiprocessor leave.
#pragma unroll 1
    for (int k = 0; k < TERMS; ++k) {
        Vec<A, 4> a[G], b[G];
#pragma unroll
        for (int q = 0; q < G; ++q) {
            a[q] = *(const Vec<A, 4>*)&rows[k][64 * q + 4 * ty];
            b[q] = *(const Vec<A, 4>*)&columns[k][64 * q + 4 * tx];
        }
#pragma unroll
        for (int i = 0; i < 4 * G; ++i)
#pragma unroll
            for (int j = 0; j < 4 * G; ++j)
                sum[i][j] += a[i / 4].v[i % 4] * b[j / 4].v[j % 4];
    }
}

// Neighbours along a row of the tile.
template <typename A, typename T, int V>
DEVICE void put_along(A* to, const Vec<T, V>& loaded) {
#pragma unroll
    for (int v = 0; v < V; ++v) to[v] = (A)loaded.v[v];
}

// Neighbours along the terms: one below the other.
template <typename A, int N, typename T, int V>
DEVICE void put_down(A (*tile)[N], int term, int at, const Vec<T, V>& loaded) {
#pragma unroll
    for (int v = 0; v < V; ++v) tile[term + v][at] = (A)loaded.v[v];
}

// One store instruction: the compiler takes the struct apart, and leaves a store for each value.
// What is stored is not read again by the kernel, so no memory needs to be kept in order.
template <typename T, int V> DEVICE void store_neighbours(T* to, const Vec<T, V>& values) {
#ifndef GTAPE_EMULATOR
    if constexpr (sizeof(values) == 16) {
        const uint4& bits = reinterpret_cast<const uint4&>(values);
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                     "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w));
        return;
    } else if constexpr (sizeof(values) == 8) {
        const uint2& bits = reinterpret_cast<const uint2&>(values);
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                     "r"(bits.x), "r"(bits.y));
        return;
    }
#endif
    *(Vec<T, V>*)to = values;
}

// A thread's results, V at a time. `begin(r)` is where row r of the tile begins in `to`, or less
// than 0; the tile begins at `first` of `columns` columns.
template <int V, int G, typename T, typename A, typename F>
DEVICE void store_tile(T* __restrict__ to, const A (&sum)[4 * G][4 * G], F begin, long long first,
                       long long columns) {
    int ty = threadIdx.x >> 4, tx = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4 * G; ++i) {
        long long at = begin(64 * (i / 4) + 4 * ty + i % 4);
        if (at < 0) continue;
#pragma unroll
        for (int j = 0; j < 4 * G; j += V) {
            long long column = first + 64 * (j / 4) + 4 * tx + j % 4;
            Vec<T, V> made;
#pragma unroll
            for (int v = 0; v < V; ++v) made.v[v] = T(sum[i][j + v]);
            if (column < columns) store_neighbours(to + at + column, made);
        }
    }
}

// The same, as wide as columns and memory allow.
template <int G, typename T, typename A, typename F>
DEVICE void store_tile(T* __restrict__ to, const A (&sum)[4 * G][4 * G], F begin, long long first,
                       long long columns) {
    constexpr int V = Neighbours<T>::value;
    if (columns % V == 0 && aligned16(to)) store_tile<V, G>(to, sum, begin, first, columns);
    else store_tile<1, G>(to, sum, begin, first, columns);
}
