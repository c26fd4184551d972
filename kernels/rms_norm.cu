// Root mean square normalisation over the last axis, forward and backward: norm_rows.cuh without
// the mean.
//
//     y = x / sqrt(mean x^2 + eps) * scale
//
// x, g, y, dx: [rows, cols]; scale: [cols]; factor: [rows], of the type of computing.
// Geometry: norm_rows.cuh; the _stream kernels are for rows that registers do not hold.
// Source: Zhang & Sennrich 2019, arXiv:1910.07467.
#include "norm_rows.cuh"
#include "norm_streams.cuh"

template <typename T, int V, int K>
__global__ void __launch_bounds__(1024, 1)
rms_norm_forward(const T* __restrict__ x, const T* __restrict__ scale, T* y, compute_t<T>* factor,
                 long long rows, long long cols, long long group, double share,
                 double eps) {
    __shared__ compute_t<T> scratch[32];
    if (aligned16(x, scale, y) && cols % V == 0)
        rows_forward<T, V, K, false>(x, scale, nullptr, y, nullptr, factor, rows, cols, group,
                                     share, eps, scratch);
    else
        stream_forward<T, 1, false>(x, scale, nullptr, y, nullptr, factor, rows, cols, group, share,
                                    eps, scratch);
}

template <typename T, int V>
__global__ void __launch_bounds__(512, 1)
rms_norm_forward_stream(const T* __restrict__ x, const T* __restrict__ scale, T* y,
                        compute_t<T>* factor, long long rows, long long cols, double share,
                        double eps) {
    __shared__ compute_t<T> scratch[32];
    int group = blockDim.x;
    if (aligned16(x, scale, y) && cols % V == 0)
        stream_forward<T, V, false>(x, scale, nullptr, y, nullptr, factor, rows, cols, group, share,
                                    eps, scratch);
    else
        stream_forward<T, 1, false>(x, scale, nullptr, y, nullptr, factor, rows, cols, group, share,
                                    eps, scratch);
}

template <typename T, int V, int K, int THREADS>
__global__ void __launch_bounds__(THREADS, 1)
rms_norm_backward(const T* __restrict__ g, const T* __restrict__ x, const T* __restrict__ scale,
                  const compute_t<T>* __restrict__ factor, T* dx, compute_t<T>* partial,
                  long long rows, long long cols, long long group, double share) {
    __shared__ compute_t<T> scratch[64], buffer[GROUPED_THREADS / 2 * V * K];
    if (aligned16(g, x, scale, dx) && cols % V == 0) {
        rows_backward<T, V, K, false>(g, x, scale, nullptr, factor, dx, partial, rows, cols, group,
                                      share, scratch, buffer);
    } else {
        stream_backward<T, 1, false>(g, x, scale, nullptr, factor, dx, rows, cols, group, share,
                                     scratch);
        stream_columns<T, 1, false>(g, x, nullptr, factor, partial, rows, cols);
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(512, 1)
rms_norm_backward_stream(const T* __restrict__ g, const T* __restrict__ x,
                         const T* __restrict__ scale, const compute_t<T>* __restrict__ factor,
                         T* dx, compute_t<T>* partial, long long rows, long long cols,
                         double share) {
    __shared__ compute_t<T> scratch[64];
    int group = blockDim.x;
    if (aligned16(g, x, scale, dx) && cols % V == 0) {
        stream_backward<T, V, false>(g, x, scale, nullptr, factor, dx, rows, cols, group, share,
                                     scratch);
        stream_columns<T, V, false>(g, x, nullptr, factor, partial, rows, cols);
    } else {
        stream_backward<T, 1, false>(g, x, scale, nullptr, factor, dx, rows, cols, group, share,
                                     scratch);
        stream_columns<T, 1, false>(g, x, nullptr, factor, partial, rows, cols);
    }
}
