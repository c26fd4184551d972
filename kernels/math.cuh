// Scalar functions that the letters of gtape/ops are spelled with, where C++ has none that gives
// NumPy's value for nan, infinities and integers.
#pragma once
#include "gtape.cuh"

// nan if either is nan.
template <typename T> DEVICE T larger(T a, T b) { return a >= b || a != a ? a : b; }
template <typename T> DEVICE T smaller(T a, T b) { return a <= b || a != a ? a : b; }

template <typename T> DEVICE T absolute(T x) { return x < T(0) ? T(-x) : x; }
template <> DEVICE float absolute<float>(float x) { return fabsf(x); }
template <> DEVICE double absolute<double>(double x) { return fabs(x); }

template <typename T> DEVICE T sign_of(T x) { return x != x ? x : T((x > T(0)) - (x < T(0))); }

template <typename T> DEVICE bool nan_at(T x) { return x != x; }
template <typename T> DEVICE bool inf_at(T) { return false; }
template <> DEVICE bool inf_at<float>(float x) { return fabsf(x) == infinity<float>(); }
template <> DEVICE bool inf_at<double>(double x) { return fabs(x) == infinity<double>(); }
template <typename T> DEVICE bool finite_at(T x) { return !nan_at(x) && !inf_at(x); }

template <typename T> DEVICE T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }

// Shifts by the width and more, which C++ leaves open: every bit is gone.
template <typename T> DEVICE T shifted_left(T a, T b) {
    return b >= T(0) && b < T(8 * sizeof(T)) ? T((unsigned long long)a << b) : T(0);
}
template <typename T> DEVICE T shifted_right(T a, T b) {
    return b >= T(0) && b < T(8 * sizeof(T)) ? T(a >> b) : a < T(0) ? T(-1) : T(0);
}

// The remainder with the divisor's sign: numpy.mod.
template <typename T> DEVICE T floor_remainder(T a, T b) {
    T r = fmod(a, b);
    return r != T(0) ? ((r < T(0)) != (b < T(0)) ? r + b : r) : copysign(T(0), b);
}

// d/dx log Γ(x): the reflection for x <= 0, the recurrence up to 10, then the asymptotic series
// (Abramowitz & Stegun 6.3.18).
template <typename T> DEVICE T digamma(T x) {
    T shift = 0;
    if (x <= T(0)) {
        if (x == floor(x)) return not_a_number<T>();
        T turn = x - floor(x);
        shift = -T(3.14159265358979323846) / tan(T(3.14159265358979323846) * turn);
        x = T(1) - x;
    }
    while (x < T(10)) {
        shift -= T(1) / x;
        x += T(1);
    }
    T z = T(1) / (x * x);
    T series = z * (T(1) / T(12) - z * (T(1) / T(120) - z * (T(1) / T(252) - z * (T(1) / T(240)
               - z * (T(5) / T(660) - z * (T(691) / T(32760) - z / T(12)))))));
    return shift + log(x) - T(0.5) / x - series;
}

template <typename T> DEVICE T log_of_beta(T a, T b) { return lgamma(a) + lgamma(b) - lgamma(a + b); }
