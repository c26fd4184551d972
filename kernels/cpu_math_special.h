// Gamma, quantile and Bessel functions, whose loops are not vectorised.
#pragma once
#include "cpu_math_base.h"

namespace gtape_cpu {

GTAPE_INLINE float lgamma(float x) { return __builtin_lgammaf(x); }
GTAPE_INLINE double lgamma(double x) { return __builtin_lgamma(x); }

// lgamma(x) - ((x - 1/2) log x - x + log(2π) / 2) for x >= 10 (DLMF 5.11.1).
static inline double stirling_correction(double x) {
    double z = 1 / (x * x);
    return (1. / 12 - z * (1. / 360 - z * (1. / 1260 - z * (1. / 1680 - z * (1. / 1188
            - z * (691. / 360360 - z * (1. / 156 - z * (3617. / 122400)))))))) / x;
}

// Where an argument is 10 and more the large terms of Stirling's series cancel on paper (Didonato &
// Morris 1992).
static inline double log_of_beta(double a, double b) {
    double small = a < b ? a : b, large = a < b ? b : a, total = small + large;
    if (!(large >= 10))
        return __builtin_lgamma(small) + __builtin_lgamma(large) - __builtin_lgamma(total);
    double rest = stirling_correction(large) - stirling_correction(total)
                  - (large - 0.5) * __builtin_log1p(small / large);
    if (small < 10)
        return __builtin_lgamma(small) - small * (__builtin_log(total) - 1) + rest;
    return 0.91893853320467274178 - 0.5 * __builtin_log(small) + stirling_correction(small)
           - small * __builtin_log1p(large / small) + rest;
}
static inline float log_of_beta(float a, float b) {
    return float(log_of_beta(double(a), double(b)));
}

// d/dx log Γ(x): in [1, 2] a series in 2x - 3 times the distance to the zero, up to 10 by the
// recurrence, then the asymptotic series, below 0 the reflection (DLMF 5.5.2, 5.5.4, 5.11.2).
static inline double digamma(double x) {
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
        if (x == __builtin_floor(x)) return not_a_number<double>();
        double turn = x - __builtin_rint(x);
        value = -3.14159265358979323846 / __builtin_tan(3.14159265358979323846 * turn);
        x = 1 - x;
    }
    if (x >= 10) {
        double z = 1 / (x * x);
        double tail = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240
                      - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
        return value + __builtin_log(x) - 0.5 / x - tail;
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
static inline float digamma(float x) { return float(digamma(double(x))); }

static inline double standard_normal_tail(double x) {
    return normcdf(-x);
}

// The inverse of erf for |x| <= 1/2, by Newton's iteration.
static inline double middle_erfinv(double x) {
    double y = 0.88622692545275801365 * x;
    for (int i = 0; i < 6; ++i)
        y -= (__builtin_erf(y) - x) * __builtin_exp(y * y) * 0.88622692545275801365;
    return y;
}

// The normal quantile. About the median it is the inverse of erf; elsewhere Newton's iteration on
// log(p), where the quantile is almost straight, and a last step on p, which cancels less.
static inline double normcdfinv(double p) {
    if (!(p > 0 && p < 1)) {
        double edge = p == 0 ? -infinity<double>() : infinity<double>();
        return p == 0 || p == 1 ? edge : not_a_number<double>();
    }
    double offset = p - 0.5;
    if (__builtin_fabs(offset) <= 0.25) return 1.41421356237309504880 * middle_erfinv(2 * offset);
    if (offset > 0) return -normcdfinv(1 - p);
    double x = 1.8 - __builtin_sqrt(-2 * __builtin_log(p)), step = 1;
    for (int i = 0; i < 60 && __builtin_fabs(step) > 1e-9 * __builtin_fabs(x); ++i) {
        double cdf = standard_normal_tail(-x);
        double density = __builtin_exp(-0.5 * x * x) * 0.39894228040143267794;
        step = (__builtin_log(cdf) - __builtin_log(p)) * cdf / density;
        x -= step;
    }
    double cdf = standard_normal_tail(-x);
    double density = __builtin_exp(-0.5 * x * x) * 0.39894228040143267794;
    return density > 0 ? x - (cdf - p) / density : x;
}
static inline float normcdfinv(float p) { return float(normcdfinv(double(p))); }

// By the quantile where 1 - |x| is exact.
static inline double erfinv(double x) {
    double size = __builtin_fabs(x);
    if (!(size > 0.5)) return middle_erfinv(x);
    return __builtin_copysign(normcdfinv(0.5 * (1 - size)) * 0.70710678118654752440, x);
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
