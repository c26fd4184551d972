// Reductions over one axis of a C-contiguous array seen as [outer, reduced, inner]:
//
//     y[o, j] = epilogue(R over k of x[o, k, j])
//
// reduce_rows serves inner == 1, reduce_columns serves any inner. Both are device functions over
// functors, so that whatever makes the elements and whatever becomes of the results is part of the
// same kernel:
//
//     Load    A operator()(long long i)             the element at flat index i of x
//             void vector(long long i, A (&v)[V])   elements i .. i + V - 1; i is a multiple of V
//                                                   and the elements lie in one row (the last
//                                                   axis) of x
//             bool can_vector()                     whether `vector` may be called: alignment
//     Output  void operator()(long long i, A value) takes result i of [outer, parts, inner]
//             void vector(long long i, const A (&v)[W])  results i .. i + W - 1, i a multiple of W
//
// Contiguous is the Load of a plain array. Output<T, Epilogue> stores T from an epilogue
// `T operator()(long long i, A value)`. A is trivially copyable, R has identity<A>() and
// combine(A, A), which must be associative and commutative.
//
// An axis too long for one block is cut into gridDim.y parts of `part_length`; the results are then
// A's of shape [outer, parts, inner], and a second launch over [outer, parts, inner] finishes. The
// geometry of a launch fixes the order in which it combines: no atomics, the same bits every time.
// Blocks have one dimension, of at most REDUCE_THREADS threads; gridDim.x may be anything. The
// geometry is chosen by gtape/devices/cuda/kernels/reduction_geometry.py.
//
// Loops whose length is known at run time only are not unrolled: one family has hundreds of
// instances, and the loads in flight are counted by hand in `accumulate`.
//
// The row means of exp(x):
//
//     struct Exponential {
//         const float* x;
//         DEVICE float operator()(long long i) const { return expf(x[i]); }
//         DEVICE void vector(long long i, float (&v)[4]) const {
//             Vec<float, 4> w = *reinterpret_cast<const Vec<float, 4>*>(x + i);
//             for (int k = 0; k < 4; k++) v[k] = expf(w.v[k]);
//         }
//         DEVICE bool can_vector() const { return aligned16(x); }
//     };
//     struct Mean {
//         long long n;
//         DEVICE float operator()(long long i, float total) const { return total / n; }
//     };
//     __global__ void __launch_bounds__(REDUCE_THREADS)
//     mean_exp(const float* x, float* y, long long rows, long long length, long long lanes) {
//         reduce_rows<Sum, float, 4>(Exponential{x}, Output<float, Mean>{y, {length}}, rows,
//                                    length, lanes, length);
//     }
#pragma once
#include "gtape.cuh"

#define REDUCE_THREADS 256

// ---------------------------------------------------------------- elements in, results out

// The plain array x of S as values of A.
template <typename S, typename A, int V> struct Contiguous {
    const S* x;
    DEVICE A operator()(long long i) const { return A(x[i]); }
    DEVICE void vector(long long i, A (&v)[V]) const {
        Vec<S, V> wide = *reinterpret_cast<const Vec<S, V>*>(x + i);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = A(wide.v[k]);
    }
    DEVICE bool can_vector() const { return aligned16(x); }
};

// W values to y + i, by 16 bytes where y is aligned; i is a multiple of W.
template <typename T, int W> DEVICE void store_wide(T* y, long long i, const Vec<T, W>& values) {
    constexpr int full = 16 / (int)sizeof(T), width = W < full ? W : full;
    if (!aligned16(y)) {
#pragma unroll
        for (int k = 0; k < W; k++) y[i + k] = values.v[k];
        return;
    }
#pragma unroll
    for (int k = 0; k < W; k += width) {
        Vec<T, width> part;
#pragma unroll
        for (int l = 0; l < width; l++) part.v[l] = values.v[k + l];
        *reinterpret_cast<Vec<T, width>*>(y + i + k) = part;
    }
}

// y[i] = epilogue(i, value).
template <typename T, typename Epilogue> struct Output {
    T* y;
    Epilogue epilogue;
    template <typename A> DEVICE void operator()(long long i, A value) const {
        y[i] = epilogue(i, value);
    }
    template <typename A, int W> DEVICE void vector(long long i, const A (&v)[W]) const {
        Vec<T, W> made;
#pragma unroll
        for (int k = 0; k < W; k++) made.v[k] = epilogue(i + k, v[k]);
        store_wide<T, W>(y, i, made);
    }
};

// An epilogue that keeps partial results as they are.
struct Partial {
    template <typename A> DEVICE A operator()(long long, A value) const { return value; }
};

// ---------------------------------------------------------------- what one thread reads

template <int W, typename A, typename Load>
DEVICE void read_wide(const Load& load, long long i, A (&v)[W]) {
    if constexpr (W == 1) v[0] = load(i);
    else load.vector(i, v);
}

// The reduction of N values, a power of two, as a tree.
template <typename R, int N, typename A> DEVICE A fold(const A* values) {
    if constexpr (N == 1) return values[0];
    else return R::combine(fold<R, N / 2>(values), fold<R, N / 2>(values + N / 2));
}

// total[w] = R over i = first, first + step, … < last of the element i + w.
template <typename R, int W, typename A, typename Load>
DEVICE void accumulate(const Load& load, long long first, long long last, long long step,
                       A (&total)[W]) {
    // Loads issued before the first is used: this many bytes in flight hide the memory's latency.
    constexpr int ahead = W > 8 || W * sizeof(A) > 64 ? 2 : 4;
#pragma unroll
    for (int w = 0; w < W; w++) total[w] = R::template identity<A>();
    long long i = first;
#pragma unroll 1
    for (; i + (ahead - 1) * step < last; i += ahead * step) {
        A v[ahead][W];
#pragma unroll
        for (int u = 0; u < ahead; u++) read_wide<W>(load, i + u * step, v[u]);
#pragma unroll
        for (int w = 0; w < W; w++) {
            A column[ahead];
#pragma unroll
            for (int u = 0; u < ahead; u++) column[u] = v[u][w];
            total[w] = R::combine(total[w], fold<R, ahead>(column));
        }
    }
#pragma unroll 1
    for (; i < last; i += step) {
        A v[W];
        read_wide<W>(load, i, v);
#pragma unroll
        for (int w = 0; w < W; w++) total[w] = R::combine(total[w], v[w]);
    }
}

// Lane `lane` of `lanes`' share of the elements begin .. end - 1.
template <typename R, int V, typename A, typename Load>
DEVICE A reduce_span(const Load& load, long long begin, long long end, int lane, int lanes) {
    if (!load.can_vector()) {
        A total[1];
        accumulate<R, 1>(load, begin + lane, end, lanes, total);
        return total[0];
    }
    // A row may begin and end between multiples of V: its edges are read one by one.
    long long first = (begin + V - 1) / V * V, last = end / V * V;
    if (first > end) first = end;
    if (last < first) last = first;
    A total[V];
    accumulate<R, V>(load, first + (long long)lane * V, last, (long long)lanes * V, total);
    A value = fold<R, V>(total);
    int before = (int)(first - begin), edges = before + (int)(end - last);
#pragma unroll 1
    for (int e = lane; e < edges; e += lanes)
        value = R::combine(value, load(e < before ? begin + e : last + (e - before)));
    return value;
}

// ---------------------------------------------------------------- between threads

template <typename A> DEVICE A exchange(A value, int distance) {
    return __shfl_xor_sync(FULL_WARP, value, distance);
}

// The reduction over groups of `lanes` neighbouring threads, a power of two, known to each of them.
// `scratch` is shared memory for 32 values. All threads of the block must call it.
template <typename R, typename A> DEVICE A reduce_lanes(A value, int lanes, A* scratch) {
#pragma unroll 1
    for (int d = (lanes < 32 ? lanes : 32) >> 1; d; d >>= 1)
        value = R::combine(value, exchange(value, d));
    if (lanes <= 32) return value;
    int warp = threadIdx.x >> 5, warps = lanes >> 5, first = warp & ~(warps - 1);
    __syncthreads();  // an earlier reduction may still be reading scratch
    if ((threadIdx.x & 31) == 0) scratch[warp] = value;
    __syncthreads();
    value = scratch[first];
#pragma unroll 1
    for (int k = 1; k < warps; k++) value = R::combine(value, scratch[first + k]);
    return value;
}

// ---------------------------------------------------------------- rows

// Result [row, part] = R over that part of the row. `lanes` threads, a power of two that divides
// the block, work on each.
template <typename R, typename A, int V, typename Load, typename Out>
DEVICE void reduce_rows(const Load& load, const Out& output, long long rows, long long length,
                        int lanes, long long part_length) {
    __shared__ A scratch[32];
    int lane = threadIdx.x & (lanes - 1), groups = blockDim.x / lanes;
    long long stride = (long long)gridDim.x * groups, offset = blockIdx.y * part_length;
    for (long long base = (long long)blockIdx.x * groups; base < rows; base += stride) {
        long long row = base + threadIdx.x / lanes;
        A value = R::template identity<A>();
        if (row < rows) {
            long long begin = row * length + offset, end = begin + part_length;
            if (end > (row + 1) * length) end = (row + 1) * length;
            value = reduce_span<R, V, A>(load, begin, end, lane, lanes);
        }
        value = reduce_lanes<R>(value, lanes, scratch);
        if (lane == 0 && row < rows) output(row * gridDim.y + blockIdx.y, value);
    }
}

// ---------------------------------------------------------------- columns

// a / b for a >= 0, b > 0. The compiler's division of 64 bits is a slow call, which spills.
DEVICE long long quotient(long long a, long long b) {
    if (!((a | b) >> 32)) return (long long)((unsigned)a / (unsigned)b);
    float inverse = __fdividef(1.0f, (float)b);
    long long q = 0;
    // Each round leaves 2^-21 of the remainder, or less than b.
#pragma unroll 1
    for (int round = 0; round < 4; round++) {
        long long step = (long long)((float)a * inverse);
        q += step;
        a -= step * b;
    }
#pragma unroll 1
    for (; a < 0; a += b) q--;
#pragma unroll 1
    for (; a >= b; a -= b) q++;
    return q;
}

// total = R over the block's threads of the same lane, in its first `lanes` threads. `scratch` is
// shared memory for W values of each thread. All threads of the block must call it.
template <typename R, typename A, int W>
DEVICE void combine_slices(A (&total)[W], int lanes, A* scratch) {
    int lane = threadIdx.x & (lanes - 1), width = lanes < 32 ? 32 : lanes;
    int slice = threadIdx.x / width, slices = blockDim.x / width;
#pragma unroll 1
    for (int d = 16; d >= lanes; d >>= 1)
#pragma unroll
        for (int w = 0; w < W; w++) total[w] = R::combine(total[w], exchange(total[w], d));
    __syncthreads();  // the slices of the tile before may still be read
    if ((threadIdx.x & (width - 1)) < lanes)
#pragma unroll
        for (int w = 0; w < W; w++) scratch[(slice * W + w) * lanes + lane] = total[w];
    __syncthreads();
    if (threadIdx.x < lanes)
#pragma unroll 1
        for (int k = 1; k < slices; k++)
#pragma unroll
            for (int w = 0; w < W; w++)
                total[w] = R::combine(total[w], scratch[(k * W + w) * lanes + lane]);
}

// reduce_columns with W columns to a thread: `lanes` neighbouring threads have neighbouring
// columns, and the threads in between them share the reduced axis.
template <typename R, int W, typename A, typename Load, typename Out>
DEVICE void reduce_wide_columns(const Load& load, const Out& output, long long outer,
                                long long reduced, long long inner, int lanes,
                                long long part_length, A* scratch) {
    int lane = threadIdx.x & (lanes - 1), depth = blockDim.x / lanes, slice = threadIdx.x / lanes;
    long long across = inner / W, columns = outer * across;
    long long begin = blockIdx.y * part_length, end = begin + part_length;
    if (end > reduced) end = reduced;
    for (long long tile = (long long)blockIdx.x * lanes; tile < columns;
         tile += (long long)gridDim.x * lanes) {
        long long column = tile + lane, o = outer == 1 ? 0 : quotient(column, across);
        long long j = (column - o * across) * W, start = o * reduced * inner + j;
        A total[W];
        accumulate<R, W>(load, start + (begin + slice) * inner,
                         column < columns ? start + end * inner : 0, depth * inner, total);
        if (depth > 1) combine_slices<R>(total, lanes, scratch);
        if (slice == 0 && column < columns)
            output.vector((o * gridDim.y + blockIdx.y) * inner + j, total);
    }
}

// Result [o, part, j] = R over that part of x[o, :, j]. `lanes` is a power of two that divides the
// block; the block has a multiple of 32 threads.
template <typename R, typename A, int V, typename Load, typename Out>
DEVICE void reduce_columns(const Load& load, const Out& output, long long outer, long long reduced,
                           long long inner, int lanes, long long part_length) {
    __shared__ A scratch[REDUCE_THREADS * V];
    if (inner % V == 0 && load.can_vector())
        reduce_wide_columns<R, V>(load, output, outer, reduced, inner, lanes, part_length, scratch);
    else
        reduce_wide_columns<R, 1>(load, output, outer, reduced, inner, lanes, part_length, scratch);
}
