// softmax, log_softmax and log-sum-exp of the rows of x[rows, cols], and the gradient of the last.
//
//   Softmax        y = e^(x - m) / s          m = max x, s = sum e^(x - m)
//   LogSoftmax     y = x - m - log s
//   LogSumExp      y = m + log s              y[rows]
//   Share          y = w e^(x - m) / s        w[rows]; 0 where s is 0
//
// Softmax and LogSoftmax of a row with nan or +inf, or of -inf alone, are nan; LogSumExp is inf for
// +inf and -inf for -inf alone. Computed in float for two-byte floats.
//
// Geometry: softmax_lanes takes blocks of 128 threads, `lanes` of which share a row; the others a
// block per row of at most 256 (softmax_block) or 1024 threads. A row has at most lanes * N or
// threads * N columns, any number in the two that go by tiles. softmax_shared takes the bytes of a
// row as dynamic shared memory. y may be x.
#include "softmax_rows.cuh"

// Nothing beside the row of results.
struct PlainRow {
    static constexpr bool passes = true, writes = true;
    template <typename T> DEVICE void open(const T*, long long) {}
    template <typename Team> DEVICE void close(const Team&, long long, bool) {}
};

struct Softmax {
    template <typename T> struct Row : PlainRow {
        using C = compute_t<T>;
        static constexpr bool exponentials = true, bounded = false;
        C factor;
        DEVICE Row(const T*, T*) {}
        DEVICE void known(C, C total) { factor = C(1) / total; }
        template <int N> DEVICE void apply(const C (&e)[N], T (&out)[N], const Slice<T, N>&) const {
#pragma unroll
            for (int i = 0; i < N; ++i) out[i] = T(e[i] * factor);
        }
    };
};

struct LogSoftmax {
    template <typename T> struct Row : PlainRow {
        using C = compute_t<T>;
        static constexpr bool exponentials = false, bounded = false;
        C log_total;
        DEVICE Row(const T*, T*) {}
        DEVICE void known(C, C total) { log_total = log(total); }
        template <int N> DEVICE void apply(const C (&z)[N], T (&out)[N], const Slice<T, N>&) const {
#pragma unroll
            for (int i = 0; i < N; ++i) out[i] = T(z[i] - log_total);
        }
    };
};

struct LogSumExp {
    template <typename T> struct Row {
        using C = compute_t<T>;
        static constexpr bool exponentials = true, bounded = true, passes = false, writes = false;
        T* sums;
        C sum;
        DEVICE Row(const T*, T* y) : sums(y) {}
        DEVICE void open(const T*, long long) {}
        DEVICE void known(C m, C total) { sum = log(total) + m; }
        template <int N> DEVICE void apply(const C (&)[N], T (&)[N], const Slice<T, N>&) const {}
        template <typename Team> DEVICE void close(const Team& team, long long row, bool active) {
            if (active && team.rank == 0) sums[row] = T(sum);
        }
    };
};

struct Share {
    template <typename T> struct Row : PlainRow {
        using C = compute_t<T>;
        static constexpr bool exponentials = true, bounded = true;
        const T* weights;
        C weight, factor;
        DEVICE Row(const T* w, T*) : weights(w) {}
        DEVICE void open(const T*, long long row) { weight = weights[row]; }
        DEVICE void known(C, C total) { factor = total == C(0) ? C(1) : C(1) / total; }
        template <int N> DEVICE void apply(const C (&e)[N], T (&out)[N], const Slice<T, N>&) const {
#pragma unroll
            for (int i = 0; i < N; ++i) out[i] = T(e[i] * factor * weight);
        }
    };
};

template <typename R, typename T> DEVICE bool softmax_wide(const T* x, const T* y, long long cols) {
    return cols % Width<T>::value == 0 && aligned16(x, R::writes ? y : x);
}

template <typename T, int N, typename Result>
__global__ void __launch_bounds__(128)
softmax_lanes(const T* x, const T* weights, T* y, long long rows, long long cols,
              long long lanes) {
    using R = typename Result::template Row<T>;
    rows_in_lanes<T, N>(x, y, rows, cols, lanes, softmax_wide<R>(x, y, cols), R(weights, y));
}

template <typename T, int N, typename Result>
__global__ void __launch_bounds__(256, 3)
softmax_block(const T* x, const T* weights, T* y, long long rows, long long cols) {
    using R = typename Result::template Row<T>;
    __shared__ compute_t<T> scratch[32];
    rows_in_block<T, N>(x, y, rows, cols, softmax_wide<R>(x, y, cols), scratch, R(weights, y));
}

template <typename T, int N, typename Result>
__global__ void __launch_bounds__(1024)
softmax_shared(const T* x, const T* weights, T* y, long long rows, long long cols) {
    using R = typename Result::template Row<T>;
    __shared__ compute_t<T> scratch[32];
    DYNAMIC_SHARED(T, cache);
    rows_in_tiles<T, N, true>(x, y, cache, rows, cols, softmax_wide<R>(x, y, cols), scratch,
                              R(weights, y));
}

template <typename T, int N, typename Result>
__global__ void __launch_bounds__(1024)
softmax_stream(const T* x, const T* weights, T* y, long long rows, long long cols) {
    using R = typename Result::template Row<T>;
    __shared__ compute_t<T> scratch[32];
    T* no_cache = nullptr;
    rows_in_tiles<T, N, false>(x, y, no_cache, rows, cols, softmax_wide<R>(x, y, cols), scratch,
                               R(weights, y));
}
