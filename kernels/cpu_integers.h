// Division of integers as in NumPy, and tests of numbers.
#pragma once
#include "cpu_math_base.h"
#include "cpu_threads.h"

namespace gtape_cpu {

// Quotients rounded down, and what they leave; quotients rounded towards zero, and what they leave.
// The lowest number divided by -1, which C++ leaves open, is itself: it wraps.
template <typename T> static GTAPE_INLINE bool minus_one(T b) { return T(-1) < T(0) && b == T(-1); }
struct Floored {
    template <typename T> static GTAPE_INLINE T of(T a, T b) {
        if (minus_one(b)) return T(T(0) - a);
        const T q = T(a / b);
        return T(q - T(T(q * b) != a && (a < T(0)) != (b < T(0))));
    }
};
struct FlooredRest {
    template <typename T> static GTAPE_INLINE T of(T a, T b) {
        return T(a - T(Floored::of(a, b) * b));
    }
};
struct Truncated {
    template <typename T> static GTAPE_INLINE T of(T a, T b) {
        return minus_one(b) ? T(T(0) - a) : T(a / b);
    }
};
struct TruncatedRest {
    template <typename T> static GTAPE_INLINE T of(T a, T b) {
        return T(a - T(Truncated::of(a, b) * b));
    }
};

// out[i] by `How`; where there is one b, its step is 0. False where a b is 0.
template <typename How, typename T>
static bool divided(const T* a, const T* b, T* out, long count, long step_a, long step_b) {
    bool zero = false;
    for (long i = 0; i < (step_b ? count : 1); i++) zero |= b[i] == T(0);
    if (zero) return false;
    if (step_b == 0) {
        const T divisor = *b;
        for (long i = 0; i < count; i++) out[i] = How::of(a[i * step_a], divisor);
    } else {
        for (long i = 0; i < count; i++) out[i] = How::of(a[i * step_a], b[i]);
    }
    return true;
}

// out[i] = sum[i] / n, rounded towards zero; and of sums of upper and of lower 32 bits.
template <typename W, typename T> static void means(const W* sum, T* out, long count, long n) {
    for (long i = 0; i < count; i++) out[i] = (T)(sum[i] / (W)n);
}
template <typename T>
static void means(const T* high, const T* low, T* out, long count, long n) {
    for (long i = 0; i < count; i++)
        out[i] = (T)(((__int128)high[i] * ((__int128)1 << 32) + (__int128)low[i]) / n);
}

// Whether all numbers are finite.
template <typename T> static bool all_finite(const T* x, long count) {
    int bad = 0;
#pragma omp simd reduction(|:bad)
    for (long i = 0; i < count; i++) bad |= !(x[i] - x[i] == T(0));
    return !bad;
}

}  // namespace gtape_cpu
