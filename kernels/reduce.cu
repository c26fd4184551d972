// y = R over one axis of the array x: Sum (and the mean), Prod, Max (and any), Min (and all).
//
// x is [outer, reduced, inner], C-contiguous, of S; y is [outer, parts, inner]: of T, or of the
// accumulator A = running_t<R, T> where `count` is 0, for a further launch with S = A to finish.
// `count` is what a sum of floats is divided by: 1, or the number of elements for the mean. Maths,
// functors and launch geometry: reduce.cuh.
#include "reduce_types.cuh"

// Stores partial or final results. Which of the two is known at launch, so that one instance
// serves both.
template <typename R, typename T> struct Results {
    using A = running_t<R, T>;
    void* y;
    long long count;
    DEVICE T finished(A value) const {
        if constexpr (Is<R, Sum>::value && A(1) / A(2) != A(0)) return T(value / A(count));
        else return T(value);
    }
    DEVICE void operator()(long long i, A value) const {
        if (count) static_cast<T*>(y)[i] = finished(value);
        else static_cast<A*>(y)[i] = value;
    }
    template <int W> DEVICE void vector(long long i, const A (&v)[W]) const {
        if (count) {
            Vec<T, W> made;
#pragma unroll
            for (int k = 0; k < W; k++) made.v[k] = finished(v[k]);
            store_wide<T, W>(static_cast<T*>(y), i, made);
        } else {
            Vec<A, W> made;
#pragma unroll
            for (int k = 0; k < W; k++) made.v[k] = v[k];
            store_wide<A, W>(static_cast<A*>(y), i, made);
        }
    }
};

// inner == 1.
template <typename R, typename S, typename T, int V>
__global__ void __launch_bounds__(REDUCE_THREADS, V > 8 ? 2 : 4)
reduce_rows_kernel(const S* x, void* y, long long outer, long long reduced, long long lanes,
                   long long part_length, long long count) {
    using A = running_t<R, T>;
    reduce_rows<R, A, V>(Contiguous<S, A, V>{x}, Results<R, T>{y, count}, outer, reduced,
                         (int)lanes, part_length);
}

template <typename R, typename S, typename T, int V>
__global__ void __launch_bounds__(REDUCE_THREADS, V > 8 ? 2 : 4)
reduce_columns_kernel(const S* x, void* y, long long outer, long long reduced, long long inner,
                      long long lanes, long long part_length, long long count) {
    using A = running_t<R, T>;
    reduce_columns<R, A, V>(Contiguous<S, A, V>{x}, Results<R, T>{y, count}, outer, reduced, inner,
                            (int)lanes, part_length);
}
