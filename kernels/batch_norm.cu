// Batch normalisation of [rows, cols], statistics of each column: training, inference, backward.
//
//     y = (x - mean) f scale + shift,   f = 1 / sqrt(variance + eps)
//
// In training mean and variance are those of the column, found by Welford's recurrence in each
// thread and merged by the formulas of Chan, Golub & LeVeque. For the cotangent g of y,
// n = (x - mean) f and N rows the backward pass gives
//     dshift = sum g,   dscale = sum g n,   dx = scale f (g - dshift / N - n dscale / N).
//
// Layout: x, g, y, dx [rows, cols]; scale, shift [cols]; mean, variance [cols], in training of
// the type of computing; partial [2][chunks][cols]: means and sums of squares about them, or sums
// of g n and of g; sums [2][cols]: dscale and dshift.
// Geometry: tiles of columns times chunks of rows, column_sums.cuh.
//
// Source: Ioffe & Szegedy 2015, arXiv:1502.03167; Chan, Golub & LeVeque 1983, "Algorithms for
// computing the sample variance: analysis and recommendations".
#include "column_sums.cuh"

// Mean and sum of squares about it of `count` values, joined with those of `others` more.
template <typename A> DEVICE void join(long long count, A& mean, A& spread, long long others,
                                       A other_mean, A other_spread) {
    if (others == 0) return;
    A share = A(others) / A(count + others), d = other_mean - mean;
    bool finite = mean - mean == A(0);  // d of an infinite mean would turn it into nan
    mean = count == 0 ? other_mean : mean + (finite ? d * share : other_mean);
    spread += other_spread + (count ? d * d * share * A(count) : A(0));
}

template <typename T, int V>
__global__ void __launch_bounds__(COLUMN_THREADS, 2)
batch_norm_moments(const T* __restrict__ x, compute_t<T>* partial, long long rows, long long cols,
                   long long lanes, long long each) {
    using A = compute_t<T>;
    __shared__ A buffer[COLUMN_THREADS * V];
    __shared__ long long counts[COLUMN_THREADS];
    with_tile<T, V>(aligned16(x) && cols % V == 0, cols, lanes, [&](auto tile) {
        Chunk chunk(rows, each);
        A mean[V] = {}, spread[V] = {}, sum[V] = {};
        long long count = 0;
#pragma unroll 4
        for (long long r = chunk.begin + tile.walker; r < chunk.end; r += tile.walkers) {
            Vec<T, V> held = tile.load(x + r * cols);
            A share = A(1) / A(++count);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                A d = A(held.v[j]) - mean[j];
                mean[j] += d * share;
                spread[j] += d * (A(held.v[j]) - mean[j]);
                sum[j] += A(held.v[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < V; ++j)
            if (mean[j] != mean[j]) mean[j] = sum[j];  // the recurrence turns inf into nan
        constexpr int HALF = COLUMN_THREADS / 2;
        for (int half = tile.walkers / 2; half; half /= 2) {
            __syncthreads();
            if (tile.walker >= half && tile.walker < 2 * half) {
                int to = threadIdx.x - half * tile.lanes;
                counts[to] = count;
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    buffer[j * HALF + to] = mean[j];
                    buffer[(V + j) * HALF + to] = spread[j];
                }
            }
            __syncthreads();
            if (tile.walker < half) {
#pragma unroll
                for (int j = 0; j < V; ++j)
                    join(count, mean[j], spread[j], counts[threadIdx.x],
                         buffer[j * HALF + threadIdx.x], buffer[(V + j) * HALF + threadIdx.x]);
                count += counts[threadIdx.x];
            }
        }
        if (tile.walker != 0) return;
        tile.scatter(partial + blockIdx.y * cols, mean);
        tile.scatter(partial + ((long long)gridDim.y + blockIdx.y) * cols, spread);
    });
}

// The moments of each column from those of its chunks. A warp has a column.
template <typename A>
__global__ void __launch_bounds__(COLUMN_THREADS, 2)
batch_norm_merge(const A* __restrict__ partial, A* mean, A* variance, long long chunks,
                 long long rows, long long cols, long long each) {
    long long column = grid_index() >> 5;
    if (column >= cols) return;
    const A* means = partial + column;
    const A* spreads = means + chunks * cols;
    A share = A(1) / A(rows), m = A(0), found = A(0);
    for (long long p = threadIdx.x & 31; p < chunks; p += 32) {
        long long left = rows - p * each;
        m += means[p * cols] * (A(left < each ? left : each) * share);
    }
    m = warp_reduce<Sum>(m);
    for (long long p = threadIdx.x & 31; p < chunks; p += 32) {
        long long left = rows - p * each;
        A d = means[p * cols] - m;
        found += (spreads[p * cols] + d * d * A(left < each ? left : each)) * share;
    }
    found = warp_reduce<Sum>(found);
    if ((threadIdx.x & 31) != 0) return;
    mean[column] = m;
    variance[column] = found;
}

template <typename T, typename P, int V>
__global__ void __launch_bounds__(COLUMN_THREADS, 2)
batch_norm_apply(const T* __restrict__ x, const P* __restrict__ mean,
                 const P* __restrict__ variance, const T* __restrict__ scale,
                 const T* __restrict__ shift, T* y, long long rows, long long cols,
                 long long lanes, long long each, double eps) {
    using A = compute_t<T>;
    with_tile<T, V>(aligned16(x, y) && cols % V == 0, cols, lanes, [&](auto tile) {
        Chunk chunk(rows, each);
        A m[V], factor[V], by[V], of[V];
        tile.gather(mean, m);
        tile.gather(variance, factor);
        tile.gather(scale, of);
        tile.gather(shift, by);
#pragma unroll
        for (int j = 0; j < V; ++j) factor[j] = of[j] * rsqrt(factor[j] + A(eps));
#pragma unroll 4
        for (long long r = chunk.begin + tile.walker; r < chunk.end; r += tile.walkers) {
            Vec<T, V> held = tile.load(x + r * cols);
#pragma unroll
            for (int j = 0; j < V; ++j)
                held.v[j] = T((A(held.v[j]) - m[j]) * factor[j] + by[j]);
            tile.store(y + r * cols, held);
        }
    });
}

template <typename T, int V>
__global__ void __launch_bounds__(COLUMN_THREADS, 2)
batch_norm_sums(const T* __restrict__ g, const T* __restrict__ x,
                const compute_t<T>* __restrict__ mean, const compute_t<T>* __restrict__ variance,
                compute_t<T>* partial, long long rows, long long cols, long long lanes,
                long long each, double eps) {
    using A = compute_t<T>;
    __shared__ A buffer[COLUMN_THREADS / 2 * V];
    with_tile<T, V>(aligned16(g, x) && cols % V == 0, cols, lanes, [&](auto tile) {
        Chunk chunk(rows, each);
        A m[V], factor[V], d_scale[V] = {}, d_shift[V] = {};
        tile.gather(mean, m);
        tile.gather(variance, factor);
#pragma unroll 2
        for (long long r = chunk.begin + tile.walker; r < chunk.end; r += tile.walkers) {
            Vec<T, V> of_x = tile.load(x + r * cols), of_g = tile.load(g + r * cols);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                d_scale[j] += A(of_g.v[j]) * (A(of_x.v[j]) - m[j]);
                d_shift[j] += A(of_g.v[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < V; ++j) d_scale[j] *= rsqrt(factor[j] + A(eps));
        tile.combine(d_scale, buffer);
        tile.combine(d_shift, buffer);
        if (tile.walker != 0) return;
        tile.scatter(partial + blockIdx.y * cols, d_scale);
        tile.scatter(partial + ((long long)gridDim.y + blockIdx.y) * cols, d_shift);
    });
}

template <typename T, int V>
__global__ void __launch_bounds__(COLUMN_THREADS, 2)
batch_norm_backward(const T* __restrict__ g, const T* __restrict__ x, const T* __restrict__ scale,
                    const compute_t<T>* __restrict__ mean,
                    const compute_t<T>* __restrict__ variance,
                    const compute_t<T>* __restrict__ sums, T* dx, T* d_scale, T* d_shift,
                    long long rows, long long cols, long long lanes,
                long long each, double eps) {
    using A = compute_t<T>;
    with_tile<T, V>(aligned16(g, x, dx) && cols % V == 0, cols, lanes, [&](auto tile) {
        Chunk chunk(rows, each);
        A m[V], factor[V], along[V], level[V], of[V], share = A(1) / A(rows);
        tile.gather(mean, m);
        tile.gather(variance, factor);
        tile.gather(scale, of);
        tile.gather(sums, along);
        tile.gather(sums + cols, level);
        if (blockIdx.y == 0 && tile.walker == 0) {
            tile.scatter(d_scale, along);
            tile.scatter(d_shift, level);
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
            A f = rsqrt(factor[j] + A(eps));
            factor[j] = of[j] * f;
            along[j] *= f * share;
            level[j] *= share;
        }
#pragma unroll 2
        for (long long r = chunk.begin + tile.walker; r < chunk.end; r += tile.walkers) {
            Vec<T, V> of_x = tile.load(x + r * cols), of_g = tile.load(g + r * cols);
#pragma unroll
            for (int j = 0; j < V; ++j)
                of_x.v[j] = T(factor[j] * (A(of_g.v[j]) - level[j]
                                           - (A(of_x.v[j]) - m[j]) * along[j]));
            tile.store(dx + r * cols, of_x);
        }
    });
}
