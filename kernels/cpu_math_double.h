// The functions of cpu_math_float.h for doubles, by the same methods; three are libm's.
#pragma once
#include "cpu_math_base.h"

namespace gtape_cpu {

// ---------------------------------------------------------------- exponentials

// x = k log 2 + r with |r| <= log(2) / 2 (Cody & Waite 1980), and bits whose low 12 are k + 2046.
GTAPE_INLINE double log2_remainder(double x, unsigned long long& power) {
    double shifted = fused(x, 1.44269504088896338700, 0x1.8p52 + 2046.0);
    double k = shifted - (0x1.8p52 + 2046.0);
    power = bits_of(shifted);
    return fused(k, -1.90821492927058770002e-10, fused(k, -6.93147180369123816490e-01, x));
}

// eʳ for |r| <= log(2) / 2.
GTAPE_INLINE double exp_of_remainder(double r) {
    return polynomial(r, 2.500004362594217e-08, 2.7630377480841331e-07, 2.7557587084982003e-06,
                      2.4801492765728746e-05, 0.00019841269505062708, 0.0013888888943920153,
                      0.008333333333495483, 0.041666666666529198, 0.1666666666666641,
                      0.50000000000000111, 1.0, 1.0);
}

// eˣ for x that neither over- nor underflows.
GTAPE_INLINE double small_exp(double x) {
    unsigned long long power;
    double sum = exp_of_remainder(log2_remainder(x, power));
    return sum * double_of((power - 1023) << 52);
}

// 1 ulp; subnormal results are rounded like others.
GTAPE_INLINE double exp(double x) {
    unsigned long long power;
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double sum = exp_of_remainder(log2_remainder(x, power));
    return sum * double_of(power >> 1 << 52) * double_of((power - (power >> 1)) << 52);
}

// 2 ulp. 2^-54 / (2^-54 + 2^-54 e^-x), with e^-x as 2^k (eʳ - 1) + 2^k.
GTAPE_INLINE double sigmoid(double x) {
    unsigned long long power;
    double y = -x;
    y = y > 746.0 ? 746.0 : y;
    y = y < -40.0 ? -40.0 : y;
    double r = log2_remainder(y, power), scale = double_of((power - 1077) << 52);
    double tail = polynomial(r, 2.500004362594217e-08, 2.7630377480841331e-07,
                             2.7557587084982003e-06, 2.4801492765728746e-05,
                             0.00019841269505062708, 0.0013888888943920153, 0.008333333333495483,
                             0.041666666666529198, 0.1666666666666641, 0.50000000000000111);
    return 0x1p-54 / (fused(scale, fused(r * r, tail, r), 0x1p-54) + scale);
}

// 2 ulp. 2^k (eʳ - 1) + (2^k - 1), halved where 2^k alone would overflow.
GTAPE_INLINE double expm1(double x) {
    unsigned long long power;
    double bounded = x > 710.0 ? 710.0 : x;
    bounded = bounded < -38.0 ? -38.0 : bounded;
    double r = log2_remainder(bounded, power);
    double tail = polynomial(r, 2.0875321220769927e-09, 2.5109079822619233e-08,
                             2.7557402937892133e-07, 2.7557244108838441e-06,
                             2.4801587171885392e-05, 0.00019841269886203118,
                             0.0013888888888962854, 0.00833333333332161, 0.041666666666666505,
                             0.16666666666666677, 0.5);
    double scale = double_of((power - 1024) << 52);
    double found = fused(scale, fused(r * r, tail, r), scale - 0.5);
    return __builtin_fabs(x) < 0x1p-55 ? x : found + found;
}

// 1.75 ulp. 1 - 2 / (e^2a + 1); for a < 0.55 a polynomial.
GTAPE_INLINE double tanh(double x) {
    double a = __builtin_fabs(x), z = a * a;
    double near = fused(a * z, polynomial(z, -1.8636622469719763e-05, 8.1929517804418234e-05,
                                          -0.00023241781847727503, 0.00058806814791519243,
                                          -0.0014554522460042683, 0.003592078151444337,
                                          -0.0088632312536404672, 0.021869488305778829,
                                          -0.053968253961066269, 0.1333333333332222,
                                          -0.33333333333333276), a);
    double far = 1.0 - 2.0 / (small_exp(a > 20.0 ? 40.0 : a + a) + 1.0);
    return __builtin_copysign(a < 0.55 ? near : far, x);
}

// eˣ / 4 for 0 <= x <= 710.5.
GTAPE_INLINE double quarter_exp(double x) {
    unsigned long long power;
    double sum = exp_of_remainder(log2_remainder(x, power));
    return sum * double_of((power - 1025) << 52);
}

// 1.75 ulp. For a < 1 a polynomial.
GTAPE_INLINE double sinh(double x) {
    double a = __builtin_fabs(x), z = a * a;
    double near = fused(a * z, polynomial(z, 7.7605745162901445e-13, 1.6057211720198432e-10,
                                          2.5052123545520887e-08, 2.755731915627543e-06,
                                          0.00019841269841426639, 0.0083333333333331719,
                                          0.16666666666666669), a);
    double e = quarter_exp(a > 710.5 ? 710.5 : a);
    return __builtin_copysign(a < 1.0 ? near : fused(2.0, e, -0.125 / e), x);
}

// 1.5 ulp.
GTAPE_INLINE double cosh(double x) {
    double a = __builtin_fabs(x), e = quarter_exp(a > 710.5 ? 710.5 : a);
    return fused(2.0, e, 0.125 / e);
}

// ---------------------------------------------------------------- logarithms

// log(2^k (1 + f)) for 1 + f between 1/√2 and √2, from 2 atanh(f / (2 + f)) (Tang 1990).
GTAPE_INLINE double log_of_parts(double k, double f) {
    double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
    double tail = 2.0 * z * polynomial(z, 0.074062750700485833, 0.076564837906648406,
                                       0.090917894638648716, 0.11111099478183398,
                                       0.14285714365249313, 0.19999999999757473,
                                       0.33333333333333554);
    double small = mad(s, half_square + tail, k * 1.90821492927058770002e-10);
    return fused(k, 6.93147180369123816490e-01, f - (half_square - small));
}

// The bits of x / 2^k, which is between 1/√2 and √2. k is made a number by the low bits of 2^52.
GTAPE_INLINE unsigned long long centred(unsigned long long bits, double& k) {
    unsigned long long above = bits + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
    k = double_of(above >> 52 | 0x4330000000000000ull) - (0x1p52 + 1023.0);
    return (above & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull;
}

// 1 ulp.
GTAPE_INLINE double log(double x) {
    double k, normal = x < 0x1p-1022 ? x * 0x1p52 : x;
    double f = double_of(centred(bits_of(normal), k)) - 1.0;
    double found = log_of_parts(k - (x < 0x1p-1022 ? 52.0 : 0.0), f);
    found = x < infinity<double>() ? found : x;
    found = x < 0.0 ? not_a_number<double>() : found;
    return x == 0.0 ? -infinity<double>() : found;
}

// 1.5 ulp. f = 2^-k (1 + x) - 1 is rounded once.
GTAPE_INLINE double log1p(double x) {
    double k, mantissa = double_of(centred(bits_of(1.0 + x), k));
    double scale = double_of((bits_of(0x1.8p52 - k) + 1023) << 52);
    double f = x > 0x1p54 ? mantissa - 1.0 : fused(scale, x, scale - 1.0);
    double found = log_of_parts(k, f);
    found = x < infinity<double>() ? found : x;
    found = x < -1.0 ? not_a_number<double>() : found;
    found = x == -1.0 ? -infinity<double>() : found;
    return x == 0.0 ? x : found;
}

// ---------------------------------------------------------------- inverse hyperbolic functions

// 2 ulp. log(1 + a + a² / (1 + √(1 + a²))).
GTAPE_INLINE double asinh(double x) {
    double a = __builtin_fabs(x), z = a * a;
    bool large = a > 0x1p500;
    double found = log1p(large ? a : a + z / (1.0 + __builtin_sqrt(1.0 + z)));
    return __builtin_copysign(large ? found + 0.69314718055994530942 : found, x);
}

// 2.5 ulp. log(1 + t + √(t (t + 2))) with t = x - 1.
GTAPE_INLINE double acosh(double x) {
    double t = x - 1.0;
    bool large = x > 0x1p500;
    double found = log1p(large ? x : t + __builtin_sqrt(fused(t, t, t + t)));
    found = large ? found + 0.69314718055994530942 : found;
    return x < 1.0 ? not_a_number<double>() : found;
}

// 2 ulp. log(1 + 2 a / (1 - a)) / 2.
GTAPE_INLINE double atanh(double x) {
    double a = __builtin_fabs(x);
    return __builtin_copysign(0.5 * log1p((a + a) / (1.0 - a)), x);
}

// ---------------------------------------------------------------- roots

GTAPE_INLINE double sqrt(double x) { return __builtin_sqrt(x); }         // half an ulp
GTAPE_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }  // 1.5 ulp

// ---------------------------------------------------------------- the error function

// 1.5 ulp. 1 - e^(-a²) t P(t) with t = 1 / (1 + 0.35 a); for a < 1 a polynomial.
GTAPE_INLINE double erf(double x) {
    double a = __builtin_fabs(x), z = a * a;
    double near = fused(a, polynomial(z, 5.9597970084698497e-11, -1.1374785638481764e-09,
                                      1.4660398167228335e-08, -1.6350427654539943e-07,
                                      1.6461013975941344e-06, -1.4925596320229692e-05,
                                      0.00012055331167188258, -0.00085483269827994171,
                                      0.0052239776248634443, -0.026866170645083291,
                                      0.1128379167095493, -0.37612638903183748,
                                      0.12837916709551259), a);
    double y = a > 6.0 ? 6.0 : a, t = 1.0 / mad(0.35, y, 1.0);
    double scaled = t * polynomial(t, -0.0093123048734625805, 0.089422663446107706,
                                   -0.37235539214534574, 0.87849984071853482, -1.2961366571468578,
                                   1.2875045299559178, -0.9641440496921172, 0.5482825490428368,
                                   -0.17483871781577728, 0.15879520121345181, 0.11020117975544592,
                                   0.16409708878478618, 0.18502726714285214, 0.19749130061902753,
                                   0.19746551747506072);
    double far = fused(-small_exp(-y * y), scaled, 1.0);
    return __builtin_copysign(a < 1.0 ? near : far, x);
}

// libm's, which are not vectorised.
GTAPE_INLINE double erfc(double x) { return __builtin_erfc(x); }

// erfc(t) / 2 for -x / √2 = t + rest: erfc changes by the share -2 t rest where t is large, and
// where it is not that is nothing.
GTAPE_INLINE double normcdf(double x) {
    double t = x * -0.70710678118654752440;
    double rest = fused(x, -0.70710678118654752440, -t) + x * 4.83364665672645672e-17;
    double found = 0.5 * __builtin_erfc(t);
    return found - (t > 1.0 && found > 0.0 ? found * (t + t) * rest : 0.0);
}
GTAPE_INLINE double pow(double a, double b) {
    return root_power(b) ? square_root_power(a) : __builtin_pow(a, b);
}

}  // namespace gtape_cpu
