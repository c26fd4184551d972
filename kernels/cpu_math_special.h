// Gamma, quantile and Bessel functions, whose loops are not vectorised.
#pragma once
#include "cpu_math_base.h"

namespace gtape_cpu {

GTAPE_INLINE float lgamma(float x) { return __builtin_lgammaf(x); }
GTAPE_INLINE double lgamma(double x) { return __builtin_lgamma(x); }
template <typename T> GTAPE_INLINE T log_of_beta(T a, T b) {
    return T(__builtin_lgamma(a) + __builtin_lgamma(b) - __builtin_lgamma(double(a) + b));
}

// d/dx log Γ(x): the reflection for x <= 0, the recurrence up to 10, then the asymptotic series
// (Abramowitz & Stegun 6.3.18).
static inline double digamma(double x) {
    double shift = 0;
    if (x <= 0) {
        if (x == __builtin_floor(x)) return not_a_number<double>();
        double turn = x - __builtin_rint(x);
        shift = -3.14159265358979323846 / __builtin_tan(3.14159265358979323846 * turn);
        x = 1 - x;
    }
    for (; x < 10; x += 1) shift -= 1 / x;
    double z = 1 / (x * x);
    double series = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240
                    - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
    return shift + __builtin_log(x) - 0.5 / x - series;
}
static inline float digamma(float x) { return float(digamma(double(x))); }

static inline double standard_normal_tail(double x) {
    return 0.5 * __builtin_erfc(x * 0.70710678118654752440);
}

// The normal quantile: a start that is right in the tails and at the median, then Newton's
// iteration on log(p), where the quantile is almost straight.
static inline double normcdfinv(double p) {
    if (!(p > 0 && p < 1)) {
        double edge = p == 0 ? -infinity<double>() : infinity<double>();
        return p == 0 || p == 1 ? edge : not_a_number<double>();
    }
    if (p > 0.5) return -normcdfinv(1 - p);
    double tail = __builtin_sqrt(-2 * __builtin_log(p));
    double x = p > 0.1 ? (p - 0.5) * 2.50662827463100050242 : 1.8 - tail;
    for (int i = 0; i < 60; ++i) {
        double cdf = standard_normal_tail(-x);
        double density = __builtin_exp(-0.5 * x * x) * 0.39894228040143267794;
        double step = (__builtin_log(cdf) - __builtin_log(p)) * cdf / density;
        x -= step;
        if (__builtin_fabs(step) <= 4e-16 * __builtin_fabs(x)) break;
    }
    return x;
}
static inline float normcdfinv(float p) { return float(normcdfinv(double(p))); }

// The inverse of erf: by the quantile where 1 - |x| is exact, by Newton's iteration elsewhere.
static inline double erfinv(double x) {
    double size = __builtin_fabs(x);
    if (size > 0.5)
        return __builtin_copysign(normcdfinv(0.5 * (1 - size)) * 0.70710678118654752440, x);
    double y = 0.88622692545275801365 * x;
    for (int i = 0; i < 8; ++i)
        y -= (__builtin_erf(y) - x) * __builtin_exp(y * y) * 0.88622692545275801365;
    return y;
}
static inline float erfinv(float x) { return float(erfinv(double(x))); }

// Modified Bessel functions of order 0 and 1: the power series, and the asymptotic one, whose
// terms fall until k is about 2x. Abramowitz and Stegun, 9.6.10 and 9.7.1.
static inline double modified_bessel(int order, double x) {
    double a = __builtin_fabs(x), term = order ? 0.5 * a : 1, sum = term;
    if (a == __builtin_inf()) return order ? x : a;
    if (a < 30) {
        for (int k = 1; k < 200 && term > 1e-17 * sum; ++k) {
            term *= 0.25 * a * a / (double(k) * (k + order));
            sum += term;
        }
    } else {
        term = sum = 1;
        for (int k = 1; k < 60 && __builtin_fabs(term) > 1e-17; ++k) {
            double odd = 2. * k - 1;
            term *= (odd * odd - 4. * order) / (8. * k * a);
            sum += term;
        }
        sum *= __builtin_exp(0.5 * a) / __builtin_sqrt(6.28318530717958647693 * a);
        sum *= __builtin_exp(0.5 * a);
    }
    return order && x < 0 ? -sum : sum;
}
static inline double cyl_bessel_i0(double x) { return modified_bessel(0, x); }
static inline double cyl_bessel_i1(double x) { return modified_bessel(1, x); }
static inline float cyl_bessel_i0(float x) { return float(modified_bessel(0, x)); }
static inline float cyl_bessel_i1(float x) { return float(modified_bessel(1, x)); }

}  // namespace gtape_cpu
