// Scalar functions that the scalar ops of gtape/ops are spelled with, where C++ has none that gives
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

// d/dx log Γ(x): in [1, 2] a series in 2x - 3 times the distance to the zero, up to 10 by the
// recurrence, then the asymptotic series, below 0 the reflection (DLMF 5.5.2, 5.5.4, 5.11.2).
static DEVICE double digamma(double x) {
    const double series[24] = {
        0.983570260441567, -0.2270640863346444, 0.03336889902393011, -0.005320077271596548,
        0.0008788656937820505, -0.00014773492650606044, 2.5060543468359146e-05,
        -4.2721034029993324e-06, 7.302769272465923e-07, -1.2502886813559594e-07,
        2.1425009322359472e-08, -3.673295918565179e-09, 6.299717236108931e-10,
        -1.080593028883266e-10, 1.853735192053638e-11, -3.18023536582553e-12,
        5.456147570322795e-13, -9.360993131036438e-14, 1.606064636295075e-14,
        -2.7555431377438815e-15, 4.727736178601912e-16, -8.11148420346509e-17,
        1.391707769474154e-17, -2.3877901082188625e-18};
    double value = 0;
    if (x <= 0) {
        if (x == floor(x)) return not_a_number<double>();
        double turn = x - rint(x);
        value = -3.14159265358979323846 / tan(3.14159265358979323846 * turn);
        x = 1 - x;
    }
    if (x >= 10) {
        double z = 1 / (x * x);
        double tail = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240
                      - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
        return value + log(x) - 0.5 / x - tail;
    }
    double steps = 0;
    if (x < 1) {
        steps = -1 / x;
        x += 1;
    }
    for (; x > 2; steps += 1 / x) x -= 1;
    double t = 2 * x - 3, newer = 0, older = 0;
    for (int k = 23; k > 0; --k) {
        double next = 2 * t * newer - older + series[k];
        older = newer;
        newer = next;
    }
    double slope = t * newer - older + series[0];
    return value + (steps + (x - 1.4616321449683622 - 9.549995429965697e-17) * slope);
}
static DEVICE float digamma(float x) { return (float)digamma((double)x); }

// lgamma(x) - ((x - 1/2) log x - x + log(2π) / 2) for x >= 10 (DLMF 5.11.1).
static DEVICE double stirling_correction(double x) {
    double z = 1 / (x * x);
    return (1. / 12 - z * (1. / 360 - z * (1. / 1260 - z * (1. / 1680 - z * (1. / 1188
            - z * (691. / 360360 - z * (1. / 156 - z * (3617. / 122400)))))))) / x;
}

// Where an argument is 10 and more the large terms of Stirling's series cancel on paper (Didonato &
// Morris 1992).
static DEVICE double log_of_beta(double a, double b) {
    double small = a < b ? a : b, large = a < b ? b : a, total = small + large;
    if (!(large >= 10)) return lgamma(small) + lgamma(large) - lgamma(total);
    double rest = stirling_correction(large) - stirling_correction(total)
                  - (large - 0.5) * log1p(small / large);
    if (small < 10) return lgamma(small) - small * (log(total) - 1) + rest;
    return 0.91893853320467274178 - 0.5 * log(small) + stirling_correction(small)
           - small * log1p(large / small) + rest;
}
static DEVICE float log_of_beta(float a, float b) {
    return (float)log_of_beta((double)a, (double)b);
}
