// Sums over the rows of [rows, cols] arrays, for the gradients of values that rows share.
//
// Geometry: a block of 256 threads is `lanes` (a power of two of at most 32) times `walkers`. The
// lanes lie side by side over a tile of lanes * V columns; the walkers go down the rows. Block
// (x, y) has tile x of the columns and chunk y of the rows; what the walkers found is combined in
// shared memory in a fixed order, and the chunks' results by another kernel: deterministic, without
// atomics.
#pragma once
#include "gtape.cuh"

#define COLUMN_THREADS 256

// The place of a thread in the tile of its block, and its V columns: WIDE neighbours, moved by one
// access, or columns `lanes` apart.
template <typename T, int V, bool WIDE> struct Tile {
    long long first, cols;
    int lanes, lane, walker, walkers;

    DEVICE Tile(long long cols, long long lanes_)
        : first((long long)blockIdx.x * lanes_ * V), cols(cols), lanes((int)lanes_),
          lane(threadIdx.x % lanes), walker(threadIdx.x / lanes), walkers(blockDim.x / lanes) {}

    DEVICE long long column(int j) const {
        return first + (WIDE ? lane * V + j : j * lanes + lane);
    }
    DEVICE bool inside(int j) const { return column(WIDE ? 0 : j) < cols; }

    DEVICE Vec<T, V> load(const T* row) const {
        Vec<T, V> held{};
        if constexpr (WIDE) {
            if (inside(0)) held = *reinterpret_cast<const Vec<T, V>*>(row + column(0));
        } else {
#pragma unroll
            for (int j = 0; j < V; ++j)
                if (inside(j)) held.v[j] = row[column(j)];
        }
        return held;
    }
    DEVICE void store(T* row, const Vec<T, V>& held) const {
        if constexpr (WIDE) {
            if (inside(0)) *reinterpret_cast<Vec<T, V>*>(row + column(0)) = held;
        } else {
#pragma unroll
            for (int j = 0; j < V; ++j)
                if (inside(j)) row[column(j)] = held.v[j];
        }
    }
    // The values of the thread's columns in a [cols] array; 0 beside the array.
    template <typename P> DEVICE void gather(const P* p, compute_t<T> (&values)[V]) const {
#pragma unroll
        for (int j = 0; j < V; ++j)
            values[j] = inside(j) ? compute_t<T>(p[column(j)]) : compute_t<T>(0);
    }
    template <typename P> DEVICE void scatter(P* p, const compute_t<T> (&values)[V]) const {
#pragma unroll
        for (int j = 0; j < V; ++j)
            if (inside(j)) p[column(j)] = P(values[j]);
    }
    // Sums over the walkers, in a fixed order; the first walker holds them. `buffer` has
    // COLUMN_THREADS / 2 * V values.
    template <typename A> DEVICE void combine(A (&values)[V], A* buffer) const {
        for (int half = walkers / 2; half; half /= 2) {
            __syncthreads();
            if (walker >= half && walker < 2 * half)
#pragma unroll
                for (int j = 0; j < V; ++j)
                    buffer[j * (COLUMN_THREADS / 2) + threadIdx.x - half * lanes] = values[j];
            __syncthreads();
            if (walker < half)
#pragma unroll
                for (int j = 0; j < V; ++j)
                    values[j] += buffer[j * (COLUMN_THREADS / 2) + threadIdx.x];
        }
    }
};

// The rows of chunk blockIdx.y, of which each has `each`; the last may have fewer.
struct Chunk {
    long long begin, end;
    DEVICE Chunk(long long rows, long long each) : begin(each * blockIdx.y) {
        end = begin + each < rows ? begin + each : rows;
    }
};

// f(tile), with wide accesses or without.
template <typename T, int V, typename F>
DEVICE void with_tile(bool wide, long long cols, long long lanes, F f) {
    if (wide)
        f(Tile<T, V, true>(cols, lanes));
    else
        f(Tile<T, V, false>(cols, lanes));
}
