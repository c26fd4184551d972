// What the scalar functions of generated CPU code stand on: bits of floating-point numbers, number
// types, fused multiplication; and the scalar ops' helpers that are exact.
#pragma once

#define GTAPE_INLINE inline __attribute__((always_inline))

namespace gtape_cpu {

// ---------------------------------------------------------------- bits

GTAPE_INLINE unsigned bits_of(float x) {
    unsigned u;
    __builtin_memcpy(&u, &x, 4);
    return u;
}
GTAPE_INLINE unsigned long long bits_of(double x) {
    unsigned long long u;
    __builtin_memcpy(&u, &x, 8);
    return u;
}
GTAPE_INLINE float float_of(unsigned u) {
    float x;
    __builtin_memcpy(&x, &u, 4);
    return x;
}
GTAPE_INLINE double double_of(unsigned long long u) {
    double x;
    __builtin_memcpy(&x, &u, 8);
    return x;
}

template <typename T> GTAPE_INLINE T infinity();
template <> GTAPE_INLINE float infinity<float>() { return __builtin_inff(); }
template <> GTAPE_INLINE double infinity<double>() { return __builtin_inf(); }

template <typename T> GTAPE_INLINE T not_a_number();
template <> GTAPE_INLINE float not_a_number<float>() { return __builtin_nanf(""); }
template <> GTAPE_INLINE double not_a_number<double>() { return __builtin_nan(""); }

// ---------------------------------------------------------------- numbers of two bytes

// Below the smallest normal number 2^-14 a half counts in 2^-24, and adding 0.5 makes a float
// count in 2^-24 too.
GTAPE_INLINE unsigned short half_bits(float value) {
    unsigned u = bits_of(value), magnitude = u & 0x7fffffffu;
    unsigned rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    unsigned tiny = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
    unsigned found = magnitude < 0x38800000u ? tiny : rounded;
    found = magnitude >= 0x477ff000u ? 0x7c00u : found;  // 65520 and above
    found = magnitude > 0x7f800000u ? (magnitude >> 13 & 0x3ffu) | 0x7e00u : found;
    return (unsigned short)((u >> 16 & 0x8000u) | found);
}

// The exponents of the two formats differ by 112, of subnormal numbers too.
GTAPE_INLINE float half_value(unsigned short bits) {
    unsigned magnitude = (bits & 0x7fffu) << 13;
    unsigned found = bits_of(float_of(magnitude) * 0x1p112f);
    found = magnitude >= 0x0f800000u ? found | 0x7f800000u : found;
    return float_of(found | (bits & 0x8000u) << 16);
}

GTAPE_INLINE unsigned short bfloat16_bits(float value) {
    unsigned u = bits_of(value), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    return (unsigned short)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
}

// A loop that stores floats by `operator=` is vectorised; by a temporary `half(x)` it is not.

// IEEE binary16, rounded to nearest even. Arithmetic is done in float.
struct half {
    unsigned short bits;
    half() = default;
    GTAPE_INLINE half(float value) : bits(half_bits(value)) {}
    GTAPE_INLINE half& operator=(float value) { return bits = half_bits(value), *this; }
    GTAPE_INLINE operator float() const { return half_value(bits); }
};

// The upper half of a float, rounded to nearest even. Arithmetic is done in float.
struct bfloat16 {
    unsigned short bits;
    bfloat16() = default;
    GTAPE_INLINE bfloat16(float value) : bits(bfloat16_bits(value)) {}
    GTAPE_INLINE bfloat16& operator=(float value) { return bits = bfloat16_bits(value), *this; }
    GTAPE_INLINE operator float() const { return float_of((unsigned)bits << 16); }
};

// What a float becomes in a type of two bytes, still as a float: the conversion there and back,
// without the bits in between.
template <typename T> GTAPE_INLINE float rounded(float value);
template <> GTAPE_INLINE float rounded<half>(float value) {
    const unsigned u = bits_of(value), magnitude = u & 0x7fffffffu;
    // The power of two at or below a number, at least 2^-14, times 2^13: a sum with it counts in
    // 2^-10 of that power, as halves do.
    const unsigned power = magnitude & 0x7f800000u;
    const float step = float_of((power > 0x38800000u ? power : 0x38800000u) + (13u << 23));
    const float near = (float_of(magnitude) + step) - step;
    const float found = float_of(magnitude) >= 65520.0f ? infinity<float>() : near;
    return float_of(bits_of(found) | (u & 0x80000000u));
}
template <> GTAPE_INLINE float rounded<bfloat16>(float value) {
    const unsigned u = bits_of(value), nearest = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
    return value != value ? value : float_of(nearest);
}

// A double cut off to a float whose last bit says whether anything was cut off ("round to odd"):
// rounding it on to half is rounding the double once (Boldo & Melquiond 2008).
GTAPE_INLINE float to_odd(double value) {
    const float near = (float)value;
    const unsigned u = bits_of(near);
    const double back = near;
    // One towards zero where rounding went away from it; zero and infinity have no fraction.
    const unsigned cut = __builtin_fabs(back) > __builtin_fabs(value) ? u - 1u : u;
    return float_of(back != value && value == value ? cut | 1u : u);
}

// ---------------------------------------------------------------- a * b + c

// `fused` rounds once, on any machine. `mad` may round twice where there is no such instruction.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMA)
GTAPE_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
GTAPE_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
GTAPE_INLINE float mad(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
GTAPE_INLINE double mad(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
// A product of two floats is exact in double; its sum rounded twice is off by 2^-29 of an ulp.
GTAPE_INLINE float fused(float a, float b, float c) { return (float)((double)a * b + c); }
GTAPE_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
GTAPE_INLINE float mad(float a, float b, float c) { return a * b + c; }
GTAPE_INLINE double mad(double a, double b, double c) { return a * b + c; }
#endif

// Horner's rule; the coefficient of the highest power is the first.
template <typename T> GTAPE_INLINE T polynomial(T, T c) { return c; }
template <typename T, typename... C> GTAPE_INLINE T polynomial(T x, T high, T next, C... rest) {
    return polynomial(x, mad(high, x, next), rest...);
}

// ---------------------------------------------------------------- comparisons and signs

// nan if either is nan. A constant b, as in relu, leaves one comparison.
template <typename T> GTAPE_INLINE T larger(T a, T b) { return a < b || b != b ? b : a; }
template <typename T> GTAPE_INLINE T smaller(T a, T b) { return a > b || b != b ? b : a; }

template <typename T> GTAPE_INLINE T absolute(T x) { return x < T(0) ? T(-x) : x; }
template <> GTAPE_INLINE float absolute<float>(float x) { return __builtin_fabsf(x); }
template <> GTAPE_INLINE double absolute<double>(double x) { return __builtin_fabs(x); }

template <typename T> GTAPE_INLINE T sign_of(T x) {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x != x ? x : T(0);
}

template <typename T> GTAPE_INLINE bool nan_at(T x) { return x != x; }
template <typename T> GTAPE_INLINE bool inf_at(T) { return false; }
template <> GTAPE_INLINE bool inf_at<float>(float x) {
    return __builtin_fabsf(x) == infinity<float>();
}
template <> GTAPE_INLINE bool inf_at<double>(double x) {
    return __builtin_fabs(x) == infinity<double>();
}
template <typename T> GTAPE_INLINE bool finite_at(T x) { return !nan_at(x) && !inf_at(x); }

GTAPE_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
GTAPE_INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }

// ---------------------------------------------------------------- rounding and remainders

GTAPE_INLINE float floor(float x) { return __builtin_floorf(x); }
GTAPE_INLINE double floor(double x) { return __builtin_floor(x); }
GTAPE_INLINE float ceil(float x) { return __builtin_ceilf(x); }
GTAPE_INLINE double ceil(double x) { return __builtin_ceil(x); }
GTAPE_INLINE float trunc(float x) { return __builtin_truncf(x); }
GTAPE_INLINE double trunc(double x) { return __builtin_trunc(x); }
GTAPE_INLINE float rint(float x) { return __builtin_rintf(x); }
GTAPE_INLINE double rint(double x) { return __builtin_rint(x); }

// The exact remainder takes a loop over the bits of the quotient: libm's.
GTAPE_INLINE float fmod(float a, float b) { return __builtin_fmodf(a, b); }
GTAPE_INLINE double fmod(double a, double b) { return __builtin_fmod(a, b); }

// The remainder with the divisor's sign: numpy.mod.
template <typename T> GTAPE_INLINE T floor_remainder(T a, T b) {
    T r = fmod(a, b);
    return r != T(0) ? ((r < T(0)) != (b < T(0)) ? r + b : r) : copysign(T(0), b);
}

// ---------------------------------------------------------------- a power that is a root

// Whether an exponent is 1/2 by the program's text. Powers with it are roots but at -0 and -inf,
// which are 0 and inf.
template <typename T> GTAPE_INLINE bool root_power(T b) {
    return __builtin_constant_p(b) && b == T(0.5);
}
GTAPE_INLINE float square_root_power(float a) {
    return a == -infinity<float>() ? -a : __builtin_sqrtf(a) + 0.0f;
}
GTAPE_INLINE double square_root_power(double a) {
    return a == -infinity<double>() ? -a : __builtin_sqrt(a) + 0.0;
}

// ---------------------------------------------------------------- shifts

// Shifts by the width and more, which C++ leaves open: every bit is gone.
template <typename T> GTAPE_INLINE T shifted_left(T a, T b) {
    return b >= T(0) && b < T(8 * sizeof(T)) ? T((unsigned long long)a << b) : T(0);
}
template <typename T> GTAPE_INLINE T shifted_right(T a, T b) {
    return b >= T(0) && b < T(8 * sizeof(T)) ? T(a >> b) : a < T(0) ? T(-1) : T(0);
}

}  // namespace gtape_cpu
