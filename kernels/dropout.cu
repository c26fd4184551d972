// Dropout: y = scale x where the lowest 23 bits of the element's random word are at least
// `threshold`, else 0. The words are drawn again wherever they are needed, so no mask is stored:
// the gradient of x is the same function of the gradient of y.
//
// Element i has word i of Philox at (key, high:low), as `bernoulli` in random.cu. Layout: x and y
// contiguous, n values. Geometry: any grid of 256 threads; 16 bytes are moved at a time where both
// are aligned. Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
// overfitting" (JMLR 15).
#include "philox.cuh"

template <typename T>
__global__ void __launch_bounds__(256)
dropout(const T* __restrict__ x, T* __restrict__ y, long long n, long long key, long long low,
        long long high, long long threshold, double scale) {
    using A = compute_t<T>;
    constexpr int W = Width<T>::value, G = W > 4 ? W : 4;
    Philox words(key, low, high);
    A factor = (A)scale;
    unsigned least = (unsigned)threshold;
    bool wide = aligned16(x, y);
    for (long long at = grid_index() * G; at < n; at += grid_size() * G) {
        bool whole = wide && at + G <= n;
        Vec<T, W> moved[G / W];
        T* values = moved[0].v;
        if (whole) {
#pragma unroll
            for (int j = 0; j < G / W; j++)
                moved[j] = reinterpret_cast<const Vec<T, W>*>(x + at)[j];
        } else {
#pragma unroll
            for (int j = 0; j < G; j++) values[j] = at + j < n ? x[at + j] : T(A(0));
        }
#pragma unroll
        for (int j = 0; j < G; j += 4) {
            Words w = words((at + j) / 4);
#pragma unroll
            for (int lane = 0; lane < 4; lane++) {
                bool kept = (w.v[lane] & 0x7fffffu) >= least;
                T* value = values + j + lane;
                *value = kept ? T((A)*value * factor) : T(A(0));
            }
        }
        if (whole) {
#pragma unroll
            for (int j = 0; j < G / W; j++) reinterpret_cast<Vec<T, W>*>(y + at)[j] = moved[j];
        } else {
#pragma unroll
            for (int j = 0; j < G; j++)
                if (at + j < n) y[at + j] = values[j];
        }
    }
}
