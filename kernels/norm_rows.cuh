// Normalisation of rows, of which layer_norm.cu and rms_norm.cu are instances.
//
// With n = (x - m) f and f = 1 / sqrt(mean (x - m)^2 + eps), where m is the mean of the row
// (CENTRED) or 0, the forward pass gives y = n scale + shift and keeps m and f in the type of
// computing. For the cotangent g of y and a = g scale the backward pass gives
//     dx = f (a - mean a - n mean(a n))  per row; `mean a` only where CENTRED,
//     dscale = sum g n and dshift = sum g  over the rows.
//
// Layout: x, g, y, dx are [rows, cols]; scale and shift [cols]; m and f [rows]; partial sums
// [2 or 1 quantities][parts][cols]. `share` is 1 / cols: a division in the kernel costs registers.
//
// Geometry: a row is held in the registers of `group` threads, V * K values in each, so it is read
// once: a group is a power of two of at most 32 lanes (several rows in a block), or the block. The
// blocks walk over the rows; in the backward pass each thread keeps the sums of its columns, and a
// block writes them once: deterministic, without atomics. Longer rows and arrays that are not
// aligned are served by norm_streams.cuh.
//
// Source: Ba, Kiros & Hinton 2016, arXiv:1607.06450; Zhang & Sennrich 2019, arXiv:1910.07467.
#pragma once
#include "gtape.cuh"

// How many threads a block has where groups are of at most 32 lanes.
#define GROUPED_THREADS 128

// The sums of N values over a group, known to each of its threads. `scratch` holds 32 * N.
template <int N, typename A> DEVICE void group_sums(A (&values)[N], int group, A* scratch) {
    int span = group < 32 ? group : 32;
    for (int d = span >> 1; d; d >>= 1)
#pragma unroll
        for (int n = 0; n < N; ++n) values[n] += __shfl_xor_sync(FULL_WARP, values[n], d);
    if (group <= 32) return;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = group >> 5;
    __syncthreads();  // an earlier sum may still be reading scratch
    if (lane == 0)
#pragma unroll
        for (int n = 0; n < N; ++n) scratch[n * 32 + warp] = values[n];
    __syncthreads();
#pragma unroll
    for (int n = 0; n < N; ++n)
        values[n] = warp_reduce<Sum>(lane < warps ? scratch[n * 32 + lane] : A(0));
}

// The part of a row that one thread of a group holds: K pieces of V neighbours.
template <typename T, int V, int K> struct Part {
    int thread, group, cols;

    DEVICE int at(int k) const { return (k * group + thread) * V; }
    DEVICE bool inside(int k) const { return at(k) < cols; }
    DEVICE Vec<T, V> load(const T* row, int k, bool live = true) const {
        return live && inside(k) ? *reinterpret_cast<const Vec<T, V>*>(row + at(k)) : Vec<T, V>{};
    }
    DEVICE void store(T* row, int k, const Vec<T, V>& held) const {
        if (inside(k)) *reinterpret_cast<Vec<T, V>*>(row + at(k)) = held;
    }
};

template <typename T, int V, int K, bool CENTRED>
DEVICE void rows_forward(const T* __restrict__ x, const T* __restrict__ scale,
                         const T* __restrict__ shift, T* y, compute_t<T>* mean,
                         compute_t<T>* factor, long long rows, int cols, int group,
                         compute_t<T> share, compute_t<T> eps, compute_t<T>* scratch) {
    using A = compute_t<T>;
    int thread = threadIdx.x % group, here = threadIdx.x / group, per_block = blockDim.x / group;
    Part<T, V, K> part{thread, group, cols};
    for (long long first = (long long)blockIdx.x * per_block; first < rows;
         first += (long long)gridDim.x * per_block) {
        long long row = first + here;
        bool live = row < rows;
        Vec<T, V> held[K];
#pragma unroll
        for (int k = 0; k < K; ++k) held[k] = part.load(x + row * cols, k, live);
        A m = A(0), sum[1] = {A(0)};
        if (CENTRED) {
#pragma unroll
            for (int k = 0; k < K; ++k)
#pragma unroll
                for (int v = 0; v < V; ++v) sum[0] += A(held[k].v[v]);
            group_sums(sum, group, scratch);
            m = sum[0] * share;
            sum[0] = A(0);
        }
#pragma unroll
        for (int k = 0; k < K; ++k)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                A d = A(held[k].v[v]) - m;
                sum[0] += part.inside(k) ? d * d : A(0);
            }
        group_sums(sum, group, scratch);
        A f = rsqrt(sum[0] * share + eps);
        if (!live) continue;
        if (thread == 0) {
            if (CENTRED) mean[row] = m;
            factor[row] = f;
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
            Vec<T, V> of = part.load(scale, k), by{}, made;
            if (CENTRED) by = part.load(shift, k);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                A n = (A(held[k].v[v]) - m) * f * A(of.v[v]);
                made.v[v] = T(CENTRED ? n + A(by.v[v]) : n);
            }
            part.store(y + row * cols, k, made);
        }
    }
}

// The sums of a thread's columns over the rows that its group walked: summed over the groups of
// the block in shared memory, then written to the block's row of `partial`.
template <typename T, int V, int K, typename A>
DEVICE void write_part(const Part<T, V, K>& part, A (&sums)[K][V], A* partial, A* buffer) {
    int group = part.group, here = threadIdx.x / group, groups = blockDim.x / group;
    for (int half = groups / 2; half; half /= 2) {
        __syncthreads();
        if (here >= half && here < 2 * half)
#pragma unroll
            for (int e = 0; e < K * V; ++e)
                buffer[e * (GROUPED_THREADS / 2) + threadIdx.x - half * group] = sums[e / V][e % V];
        __syncthreads();
        if (here < half)
#pragma unroll
            for (int e = 0; e < K * V; ++e)
                sums[e / V][e % V] += buffer[e * (GROUPED_THREADS / 2) + threadIdx.x];
    }
    if (here != 0) return;
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
        for (int v = 0; v < V; ++v)
            if (part.inside(k)) partial[part.at(k) + v] = sums[k][v];
}

template <typename T, int V, int K, bool CENTRED>
DEVICE void rows_backward(const T* __restrict__ g, const T* __restrict__ x,
                          const T* __restrict__ scale, const compute_t<T>* __restrict__ mean,
                          const compute_t<T>* __restrict__ factor, T* dx, compute_t<T>* partial,
                          long long rows, int cols, int group, compute_t<T> share,
                          compute_t<T>* scratch, compute_t<T>* buffer) {
    using A = compute_t<T>;
    int thread = threadIdx.x % group, here = threadIdx.x / group, per_block = blockDim.x / group;
    Part<T, V, K> part{thread, group, cols};
    A d_scale[K][V] = {}, d_shift[K][V] = {};
    for (long long first = (long long)blockIdx.x * per_block; first < rows;
         first += (long long)gridDim.x * per_block) {
        long long row = first + here;
        bool live = row < rows;
        Vec<T, V> of_x[K], of_g[K];
#pragma unroll
        for (int k = 0; k < K; ++k) {
            of_x[k] = part.load(x + row * cols, k, live);
            of_g[k] = part.load(g + row * cols, k, live);
        }
        A m = live && CENTRED ? mean[row] : A(0), f = live ? factor[row] : A(0);
        A sum[2] = {A(0), A(0)};  // of a (x - m), of a
#pragma unroll
        for (int k = 0; k < K; ++k) {
            Vec<T, V> s = part.load(scale, k);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                A cotangent = A(of_g[k].v[v]), along = cotangent * (A(of_x[k].v[v]) - m);
                d_scale[k][v] += along * f;
                if (CENTRED) d_shift[k][v] += cotangent;
                sum[0] += along * A(s.v[v]);
                sum[1] += cotangent * A(s.v[v]);
            }
        }
        group_sums(sum, group, scratch);
        if (!live) continue;
        A slope = sum[0] * share * f * f, level = CENTRED ? sum[1] * share : A(0);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            Vec<T, V> s = part.load(scale, k), made;
#pragma unroll
            for (int v = 0; v < V; ++v)
                made.v[v] = T(f * (A(of_g[k].v[v]) * A(s.v[v]) - level
                                   - (A(of_x[k].v[v]) - m) * slope));
            part.store(dx + row * cols, k, made);
        }
    }
    A* mine = partial + (long long)blockIdx.x * cols;
    write_part(part, d_scale, mine, buffer);
    if (CENTRED) write_part(part, d_shift, mine + (long long)gridDim.x * cols, buffer);
}
