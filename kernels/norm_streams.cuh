// The normalisation of norm_rows.cuh where registers do not hold a row, or its arrays are not
// aligned: a group streams a row once for each sum and once to write, after the first time from the
// cache. In the backward pass the blocks then read the arrays again, down the columns.
#pragma once
#include "norm_rows.cuh"

// The columns that a thread has, W neighbours at a time.
#define FOR_PIECES(i, W, thread, group, cols) \
    for (long long i = (long long)(thread) * W; i < cols; i += (long long)(group) * W)

template <int W, typename T> DEVICE Vec<T, W> piece(const T* row, long long i) {
    return *reinterpret_cast<const Vec<T, W>*>(row + i);
}

template <typename T, int W, bool CENTRED>
DEVICE void stream_forward(const T* __restrict__ x, const T* __restrict__ scale,
                           const T* __restrict__ shift, T* y, compute_t<T>* mean,
                           compute_t<T>* factor, long long rows, long long cols, int group,
                           compute_t<T> share, compute_t<T> eps, compute_t<T>* scratch) {
    using A = compute_t<T>;
    int thread = threadIdx.x % group, here = threadIdx.x / group, per_block = blockDim.x / group;
    for (long long first = (long long)blockIdx.x * per_block; first < rows;
         first += (long long)gridDim.x * per_block) {
        long long r = first + here, mine = r < rows ? cols : 0;
        const T* row = x + r * cols;
        A m = A(0), sum[1] = {A(0)};
        if (CENTRED) {
            FOR_PIECES(i, W, thread, group, mine) {
                Vec<T, W> held = piece<W>(row, i);
#pragma unroll
                for (int w = 0; w < W; ++w) sum[0] += A(held.v[w]);
            }
            group_sums(sum, group, scratch);
            m = sum[0] * share;
            sum[0] = A(0);
        }
        FOR_PIECES(i, W, thread, group, mine) {
            Vec<T, W> held = piece<W>(row, i);
#pragma unroll
            for (int w = 0; w < W; ++w) sum[0] += (A(held.v[w]) - m) * (A(held.v[w]) - m);
        }
        group_sums(sum, group, scratch);
        A f = rsqrt(sum[0] * share + eps);
        if (thread == 0 && r < rows) {
            if (CENTRED) mean[r] = m;
            factor[r] = f;
        }
        FOR_PIECES(i, W, thread, group, mine) {
            Vec<T, W> held = piece<W>(row, i), of = piece<W>(scale, i), by{};
            if (CENTRED) by = piece<W>(shift, i);
#pragma unroll
            for (int w = 0; w < W; ++w) {
                A n = (A(held.v[w]) - m) * f * A(of.v[w]);
                held.v[w] = T(CENTRED ? n + A(by.v[w]) : n);
            }
            *reinterpret_cast<Vec<T, W>*>(y + r * cols + i) = held;
        }
    }
}

template <typename T, int W, bool CENTRED>
DEVICE void stream_backward(const T* __restrict__ g, const T* __restrict__ x,
                            const T* __restrict__ scale, const compute_t<T>* __restrict__ mean,
                            const compute_t<T>* __restrict__ factor, T* dx, long long rows,
                            long long cols, int group, compute_t<T> share,
                            compute_t<T>* scratch) {
    using A = compute_t<T>;
    int thread = threadIdx.x % group, here = threadIdx.x / group, per_block = blockDim.x / group;
    for (long long first = (long long)blockIdx.x * per_block; first < rows;
         first += (long long)gridDim.x * per_block) {
        long long r = first + here, mine = r < rows ? cols : 0;
        A m = mine && CENTRED ? mean[r] : A(0), f = mine ? factor[r] : A(0);
        A sum[2] = {A(0), A(0)};  // of a (x - m), of a
        FOR_PIECES(i, W, thread, group, mine) {
            Vec<T, W> of_x = piece<W>(x + r * cols, i), of_g = piece<W>(g + r * cols, i);
            Vec<T, W> s = piece<W>(scale, i);
#pragma unroll
            for (int w = 0; w < W; ++w) {
                A a = A(of_g.v[w]) * A(s.v[w]);
                sum[0] += a * (A(of_x.v[w]) - m);
                sum[1] += a;
            }
        }
        group_sums(sum, group, scratch);
        A slope = sum[0] * share * f * f, level = CENTRED ? sum[1] * share : A(0);
        FOR_PIECES(i, W, thread, group, mine) {
            Vec<T, W> of_x = piece<W>(x + r * cols, i), of_g = piece<W>(g + r * cols, i);
            Vec<T, W> s = piece<W>(scale, i);
#pragma unroll
            for (int w = 0; w < W; ++w)
                of_x.v[w] = T(f * (A(of_g.v[w]) * A(s.v[w]) - level - (A(of_x.v[w]) - m) * slope));
            *reinterpret_cast<Vec<T, W>*>(dx + r * cols + i) = of_x;
        }
    }
}

// The block's row of `partial`: sums over every gridDim.x-th row.
template <typename T, int W, bool CENTRED>
DEVICE void stream_columns(const T* __restrict__ g, const T* __restrict__ x,
                           const compute_t<T>* __restrict__ mean,
                           const compute_t<T>* __restrict__ factor, compute_t<T>* partial,
                           long long rows, long long cols) {
    using A = compute_t<T>;
    FOR_PIECES(i, W, threadIdx.x, blockDim.x, cols) {
        A d_scale[W] = {}, d_shift[W] = {};
#pragma unroll 4
        for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
            Vec<T, W> of_x = piece<W>(x + r * cols, i), of_g = piece<W>(g + r * cols, i);
            A m = CENTRED ? mean[r] : A(0), f = factor[r];
#pragma unroll
            for (int w = 0; w < W; ++w) {
                d_scale[w] += A(of_g.v[w]) * ((A(of_x.v[w]) - m) * f);
                if (CENTRED) d_shift[w] += A(of_g.v[w]);
            }
        }
        A* mine = partial + (long long)blockIdx.x * cols + i;
#pragma unroll
        for (int w = 0; w < W; ++w) {
            mine[w] = d_scale[w];
            if (CENTRED) mine[(long long)gridDim.x * cols + w] = d_shift[w];
        }
    }
}
