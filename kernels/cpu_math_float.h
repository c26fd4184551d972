// Exponentials, logarithms, error functions and powers of floats, without a branch, so that loops
// over them are vectorised. Polynomials are minimax fits by the exchange of Remez (1934).
//
// The errors named are the largest, in units in the last place, against the exact value; without
// fused multiplication they grow by up to 0.25. The results for nan, infinities and zeros are those
// of IEEE 754 and C.
#pragma once
#include "cpu_math_base.h"
#include "cpu_math_double.h"

namespace gtape_cpu {

// ---------------------------------------------------------------- exponentials

// x = k log 2 + r with |r| <= log(2) / 2 (Cody & Waite 1980), and bits whose low 9 are k + 254:
// adding 1.5 2^23 rounds to an integer and leaves it in the low bits.
GTAPE_INLINE float log2_remainder(float x, unsigned& power) {
    float shifted = fused(x, 1.44269504f, 0x1.8p23f + 254.0f);
    float k = shifted - (0x1.8p23f + 254.0f);
    power = bits_of(shifted);
    return fused(k, -1.42860677e-06f, fused(k, -0.693145752f, x));
}

// 2^(k/2), twice: the product of both, taken one after the other, over- and underflows as eˣ does.
GTAPE_INLINE float first_half(unsigned power) { return float_of(power >> 1 << 23); }
GTAPE_INLINE float second_half(unsigned power) { return float_of((power - (power >> 1)) << 23); }

// eʳ for |r| <= log(2) / 2.
GTAPE_INLINE float exp_of_remainder(float r) {
    return polynomial(r, 0.00138144568f, 0.00836877991f, 0.0416683927f, 0.166665196f,
                      0.49999994f, 1.0f, 1.0f);
}

// eˣ for x that neither over- nor underflows.
GTAPE_INLINE float small_exp(float x) {
    unsigned power;
    float sum = exp_of_remainder(log2_remainder(x, power));
    return sum * float_of((power - 127) << 23);
}

// 1 ulp; subnormal results are rounded like others.
GTAPE_INLINE float exp(float x) {
    unsigned power;
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float sum = exp_of_remainder(log2_remainder(x, power));
    return sum * first_half(power) * second_half(power);
}

// 2 ulp. 2^-24 / (2^-24 + 2^-24 e^-x), with e^-x as 2^k (eʳ - 1) + 2^k. Subnormal results are
// rounded like others.
GTAPE_INLINE float sigmoid(float x) {
    unsigned power;
    float y = -x;
    y = y > 105.0f ? 105.0f : y;
    y = y < -20.0f ? -20.0f : y;
    float r = log2_remainder(y, power), scale = float_of((power - 151) << 23);
    float tail = polynomial(r, 0.00138144568f, 0.00836877991f, 0.0416683927f, 0.166665196f,
                            0.49999994f);
    return 0x1p-24f / (fused(scale, fused(r * r, tail, r), 0x1p-24f) + scale);
}

// 1.5 ulp. 2^k (eʳ - 1) + (2^k - 1), halved where 2^k alone would overflow.
GTAPE_INLINE float expm1(float x) {
    unsigned power;
    float bounded = x > 89.0f ? 89.0f : x;
    bounded = bounded < -18.0f ? -18.0f : bounded;
    float r = log2_remainder(bounded, power);
    float tail = polynomial(r, 0.000198459034f, 0.00139407197f, 0.00833338965f, 0.0416663587f,
                            0.166666657f, 0.5f);
    float scale = float_of((power - 128) << 23);
    float found = fused(scale, fused(r * r, tail, r), scale - 0.5f);
    return __builtin_fabsf(x) < 0x1p-26f ? x : found + found;
}

// 1.75 ulp. 1 - 2 / (e^2a + 1); for a < 0.55 a polynomial.
GTAPE_INLINE float tanh(float x) {
    float a = __builtin_fabsf(x), z = a * a;
    float near = fused(a * z, polynomial(z, -0.00627081795f, 0.0210694019f, -0.0538517945f,
                                         0.133325815f, -0.333333164f), a);
    float far = 1.0f - 2.0f / (small_exp(a > 10.0f ? 20.0f : a + a) + 1.0f);
    return __builtin_copysignf(a < 0.55f ? near : far, x);
}

// eˣ / 4 for 0 <= x <= 89.5.
GTAPE_INLINE float quarter_exp(float x) {
    unsigned power;
    float sum = exp_of_remainder(log2_remainder(x, power));
    return sum * float_of((power - 129) << 23);
}

// 1.75 ulp. For a < 1 a polynomial.
GTAPE_INLINE float sinh(float x) {
    float a = __builtin_fabsf(x), z = a * a;
    float near = fused(a * z, polynomial(z, 2.81701227e-06f, 0.000198361493f, 0.00833335053f,
                                         0.166666672f), a);
    float e = quarter_exp(a > 89.5f ? 89.5f : a);
    return __builtin_copysignf(a < 1.0f ? near : fused(2.0f, e, -0.125f / e), x);
}

// 1.5 ulp.
GTAPE_INLINE float cosh(float x) {
    float a = __builtin_fabsf(x), e = quarter_exp(a > 89.5f ? 89.5f : a);
    return fused(2.0f, e, 0.125f / e);
}

// ---------------------------------------------------------------- logarithms

// log(2^k (1 + f)) for 1 + f between 1/√2 and √2.
GTAPE_INLINE float log_of_parts(float k, float f) {
    float tail = polynomial(f, 0.067465879f, -0.116755918f, 0.118881576f, -0.124056004f,
                            0.142195553f, -0.166679949f, 0.200021178f, -0.250000089f,
                            0.333333135f, -0.5f);
    float small = fused(f * f, tail, k * 1.42860677e-06f);
    return fused(k, 0.693145752f, f + small);
}

// The bits of x / 2^k, which is between 1/√2 and √2; k is left as the exponent's bits.
GTAPE_INLINE unsigned centred(unsigned bits, int& k) {
    unsigned above = bits - 0x3f3504f3u;
    k = (int)above >> 23;
    return (above & 0x7fffffu) + 0x3f3504f3u;
}

// 1 ulp.
GTAPE_INLINE float log(float x) {
    int k;
    float normal = x < 0x1p-126f ? x * 0x1p23f : x;
    float f = float_of(centred(bits_of(normal), k)) - 1.0f;
    float found = log_of_parts((float)k - (x < 0x1p-126f ? 23.0f : 0.0f), f);
    found = x < infinity<float>() ? found : x;
    found = x < 0.0f ? not_a_number<float>() : found;
    return x == 0.0f ? -infinity<float>() : found;
}

// 1.5 ulp. f = 2^-k (1 + x) - 1 is rounded once.
GTAPE_INLINE float log1p(float x) {
    int k;
    float mantissa = float_of(centred(bits_of(1.0f + x), k));
    float scale = float_of(0x3f800000u - ((unsigned)k << 23));
    float f = x > 0x1p25f ? mantissa - 1.0f : fused(scale, x, scale - 1.0f);
    float found = log_of_parts((float)k, f);
    found = x < infinity<float>() ? found : x;
    found = x < -1.0f ? not_a_number<float>() : found;
    found = x == -1.0f ? -infinity<float>() : found;
    return x == 0.0f ? x : found;
}

// 1 ulp, by the functions of double.
GTAPE_INLINE float asinh(float x) { return (float)asinh((double)x); }
GTAPE_INLINE float acosh(float x) { return (float)acosh((double)x); }
GTAPE_INLINE float atanh(float x) { return (float)atanh((double)x); }

// ---------------------------------------------------------------- roots

GTAPE_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }          // half an ulp
GTAPE_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }  // 1.5 ulp

// ---------------------------------------------------------------- error functions

// e^(x²) erfc(x) for x >= 0, as t P(t) with t = 1 / (1 + 0.35 x).
GTAPE_INLINE double scaled_erfc(double x) {
    double t = 1.0 / mad(0.35, x, 1.0);
    return t * polynomial(t, 0.039775000156941021, -0.16657866480849576, 0.1999493718371719,
                          -0.05311030028583133, 0.10885212160971243, 0.13389494634102267,
                          0.15555303242185983, 0.18692597998992205, 0.19726139189497807,
                          0.19747712901921116);
}

// 1.25 ulp. 1 - e^P(a); for a < 0.9 a polynomial.
GTAPE_INLINE float erf(float x) {
    float a = __builtin_fabsf(x), z = a * a;
    float near = fused(a, polynomial(z, 8.10139099e-05f, -0.000806675584f, 0.00519277342f,
                                     -0.0268550832f, 0.112835854f, -0.37612623f, 0.128379166f), a);
    float y = a > 4.0f ? 4.0f : a;
    float exponent = polynomial(y, -7.47298145e-07f, -1.11749441e-05f, 0.000378041441f,
                                -0.00399142643f, 0.0247691032f, -0.107851364f, -0.633668602f,
                                -1.129379511f, 0.00015018633f);
    float far = 1.0f - small_exp(exponent);
    return __builtin_copysignf(a < 0.9f ? near : far, x);
}

// 1.75 ulp. e^(-a²), with the square in two parts, times the function above.
GTAPE_INLINE float erfc(float x) {
    float a = __builtin_fabsf(x);
    a = a > 11.0f ? 11.0f : a;
    float square = a * a, low = fused(a, a, -square);
    double e = exp(-square), tail = (e - e * low) * scaled_erfc(a);
    return (float)(x < 0.0f ? 2.0 - tail : tail);
}

// 1.75 ulp. erfc(-x / √2) / 2.
GTAPE_INLINE float normcdf(float x) {
    float a = __builtin_fabsf(x);
    a = a > 15.0f ? 15.0f : a;
    float square = a * a, low = 0.5f * fused(a, a, -square);
    double e = 0.5f * exp(-0.5f * square);
    double tail = (e - e * low) * scaled_erfc(a * 0.70710678118654752440);
    return (float)(x < 0.0f ? tail : 1.0 - tail);
}

// ---------------------------------------------------------------- powers

// log2 of a positive x, within 2^-38 of itself, from 2 atanh((m - 1) / (m + 1)).
GTAPE_INLINE double log2_of(float x) {
    int k;
    float normal = x < 0x1p-126f ? x * 0x1p23f : x;
    double m = float_of(centred(bits_of(normal), k));
    double s = (m - 1.0) / (m + 1.0);
    double fraction = s * polynomial(s * s, 0.34074899157600885, 0.4116717443359334,
                                     0.57708360037853712, 0.96179667326579676, 2.8853900817901428);
    return (x < 0x1p-126f ? (double)k - 23.0 : (double)k) + fraction;
}

// 2^x for -1000 < x < 1000.
GTAPE_INLINE double exp2_of(double x) {
    double shifted = x + 0x1.8p52, f = x - (shifted - 0x1.8p52);
    double sum = polynomial(f, 0.00015345846935501975, 0.0013399931298790633,
                            0.0096184888126199346, 0.055503287761174358, 0.24022646892120161,
                            0.69314720573818367, 1.0000000005539635);
    return sum * double_of((bits_of(shifted) + 1023) << 52);
}

// 1 ulp. 2^(b log2 |a|) in double; then the sign, which is that of a where b is odd.
GTAPE_INLINE float pow(float a, float b) {
    if (root_power(b)) return square_root_power(a);
    float size = __builtin_fabsf(a);
    double exponent = log2_of(size);
    exponent = size < infinity<float>() ? exponent : (double)size;
    exponent = size == 0.0f ? -infinity<double>() : exponent;
    exponent = size == 1.0f || b == 0.0f ? 0.0 : exponent * b;
    exponent = exponent > 200.0 ? 200.0 : exponent;
    exponent = exponent < -200.0 ? -200.0 : exponent;
    float found = (float)exp2_of(exponent);
    bool whole = __builtin_rintf(b) == b;
    bool odd = whole && __builtin_rintf(0.5f * b) != 0.5f * b;
    found = odd ? __builtin_copysignf(found, a) : found;
    bool undefined = a < 0.0f && size < infinity<float>() && !whole;
    return undefined ? not_a_number<float>() : found;
}

}  // namespace gtape_cpu
