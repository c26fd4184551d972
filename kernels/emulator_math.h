// The functions that CUDA's compiler brings along: those of <math.h> with float overloads, CUDA's
// own, integer and bit intrinsics, and conversions of half.
#pragma once

// ---------------------------------------------------------------- bits

#define GTAPE_CAST(name, To, From)         \
    inline To name(From value) {           \
        To bits;                           \
        memcpy(&bits, &value, sizeof(To)); \
        return bits;                       \
    }
GTAPE_CAST(__float_as_uint, unsigned, float)
GTAPE_CAST(__uint_as_float, float, unsigned)
GTAPE_CAST(__float_as_int, int, float)
GTAPE_CAST(__int_as_float, float, int)
GTAPE_CAST(__longlong_as_double, double, long long)
GTAPE_CAST(__double_as_longlong, long long, double)
#undef GTAPE_CAST
inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
inline double __hiloint2double(int hi, int lo) {
    return __longlong_as_double((long long)hi << 32 | (unsigned)lo);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
    return reversed;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned by) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned by) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (by & 31));
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

// ---------------------------------------------------------------- half

namespace gtape_emulator {

// IEEE binary16, rounded to nearest even, as cvt.rn.f16.f32 does it.
inline unsigned short half_bits(float value) {
    unsigned u = __float_as_uint(value), magnitude = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);  // 65520 and above
    if (magnitude < 0x38800000u) {
        // Below the smallest normal number 2^-14 a half counts in 2^-24, and adding 0.5 makes a
        // float count in 2^-24 too.
        float shifted = __uint_as_float(magnitude) + 0.5f;
        return (unsigned short)(sign | (__float_as_uint(shifted) - 0x3f000000u));
    }
    unsigned odd = magnitude >> 13 & 1u;
    return (unsigned short)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float half_value(unsigned short bits) {
    unsigned sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)
        return __uint_as_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x400u) {
        float subnormal = (float)magnitude * 0x1p-24f;
        return sign ? -subnormal : subnormal;
    }
    return __uint_as_float(sign | ((magnitude << 13) + 0x38000000u));
}

}  // namespace gtape_emulator

// ---------------------------------------------------------------- <math.h>, and float overloads

// With the C library's own header, a small kernel would take a third longer to compile.
#define GTAPE_UNARY(name)                      \
    extern "C" double name(double) noexcept;   \
    extern "C" float name##f(float) noexcept;  \
    inline float name(float x) { return name##f(x); }
#define GTAPE_BINARY(name)                           \
    extern "C" double name(double, double) noexcept; \
    extern "C" float name##f(float, float) noexcept; \
    inline float name(float x, float y) { return name##f(x, y); }
#define GTAPE_INTEGER(T, name)               \
    extern "C" T name(double) noexcept;      \
    extern "C" T name##f(float) noexcept;    \
    inline T name(float x) { return name##f(x); }
#define GTAPE_SCALED(name, T)                    \
    extern "C" double name(double, T) noexcept;  \
    extern "C" float name##f(float, T) noexcept; \
    inline float name(float x, T by) { return name##f(x, by); }
GTAPE_UNARY(acos) GTAPE_UNARY(acosh) GTAPE_UNARY(asin) GTAPE_UNARY(asinh) GTAPE_UNARY(atan)
GTAPE_UNARY(atanh) GTAPE_UNARY(cbrt) GTAPE_UNARY(ceil) GTAPE_UNARY(cos) GTAPE_UNARY(cosh)
GTAPE_UNARY(erf) GTAPE_UNARY(erfc) GTAPE_UNARY(exp) GTAPE_UNARY(exp10) GTAPE_UNARY(exp2)
GTAPE_UNARY(expm1) GTAPE_UNARY(fabs) GTAPE_UNARY(floor) GTAPE_UNARY(j0) GTAPE_UNARY(j1)
GTAPE_UNARY(lgamma) GTAPE_UNARY(log) GTAPE_UNARY(log10) GTAPE_UNARY(log1p) GTAPE_UNARY(log2)
GTAPE_UNARY(logb) GTAPE_UNARY(nearbyint) GTAPE_UNARY(rint) GTAPE_UNARY(round) GTAPE_UNARY(sin)
GTAPE_UNARY(sinh) GTAPE_UNARY(sqrt) GTAPE_UNARY(tan) GTAPE_UNARY(tanh) GTAPE_UNARY(tgamma)
GTAPE_UNARY(trunc) GTAPE_UNARY(y0) GTAPE_UNARY(y1)
GTAPE_BINARY(atan2) GTAPE_BINARY(copysign) GTAPE_BINARY(fdim) GTAPE_BINARY(fmax)
GTAPE_BINARY(fmin) GTAPE_BINARY(fmod) GTAPE_BINARY(hypot) GTAPE_BINARY(nextafter)
GTAPE_BINARY(pow) GTAPE_BINARY(remainder)
GTAPE_INTEGER(int, ilogb) GTAPE_INTEGER(long, lrint) GTAPE_INTEGER(long, lround)
GTAPE_INTEGER(long long, llrint) GTAPE_INTEGER(long long, llround)
GTAPE_SCALED(frexp, int*) GTAPE_SCALED(ldexp, int) GTAPE_SCALED(scalbln, long)
GTAPE_SCALED(scalbn, int)
#undef GTAPE_UNARY
#undef GTAPE_BINARY
#undef GTAPE_INTEGER
#undef GTAPE_SCALED
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double modf(double, double*) noexcept;
extern "C" float modff(float, float*) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float modf(float x, float* whole) { return modff(x, whole); }
inline float pow(float x, int y) { return powf(x, (float)y); }
inline double pow(double x, int y) { return pow(x, (double)y); }

#define GTAPE_CLASS(T)                                                \
    inline bool isnan(T x) { return __builtin_isnan(x); }             \
    inline bool isinf(T x) { return __builtin_isinf(x); }             \
    inline bool isfinite(T x) { return __builtin_isfinite(x); }       \
    inline bool signbit(T x) { return __builtin_signbit(x); }
GTAPE_CLASS(float)
GTAPE_CLASS(double)
#undef GTAPE_CLASS

#define GTAPE_MINMAX(T)                                   \
    inline T min(T a, T b) { return a < b ? a : b; }      \
    inline T max(T a, T b) { return a > b ? a : b; }
GTAPE_MINMAX(int)
GTAPE_MINMAX(unsigned)
GTAPE_MINMAX(long)
GTAPE_MINMAX(unsigned long)
GTAPE_MINMAX(long long)
GTAPE_MINMAX(unsigned long long)
#undef GTAPE_MINMAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline long labs(long x) { return x < 0 ? -x : x; }
inline long long llabs(long long x) { return x < 0 ? -x : x; }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }

// ---------------------------------------------------------------- fast and rounded forms

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

namespace gtape_emulator {

// CUDA's conversions to integers keep to the range of the integer, and turn nan into 0.
inline int int_of(double x) {
    if (x != x) return 0;
    return x <= -0x1p31 ? -2147483647 - 1 : x >= 0x1p31 ? 2147483647 : (int)x;
}

}  // namespace gtape_emulator

inline int __float2int_rn(float x) { return gtape_emulator::int_of(rint((double)x)); }
inline int __float2int_rz(float x) { return gtape_emulator::int_of(x); }
inline int __float2int_rd(float x) { return gtape_emulator::int_of(floor((double)x)); }
inline int __float2int_ru(float x) { return gtape_emulator::int_of(ceil((double)x)); }
inline int __double2int_rn(double x) { return gtape_emulator::int_of(rint(x)); }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }

// ---------------------------------------------------------------- functions of CUDA alone

inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrtf(float x) { return (float)rsqrt((double)x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float rcbrtf(float x) { return (float)rcbrt((double)x); }
inline double sinpi(double x) { return sin(3.14159265358979323846 * remainder(x, 2.0)); }
inline double cospi(double x) { return cos(3.14159265358979323846 * remainder(x, 2.0)); }
inline float sinpif(float x) { return (float)sinpi((double)x); }
inline float cospif(float x) { return (float)cospi((double)x); }
// erfc(t) / 2 for -x / √2 = t + rest: erfc changes by the share -2 t rest where t is large, and
// where it is not that is nothing.
inline double normcdf(double x) {
    double t = x * -0.70710678118654752440;
    double rest = fma(x, -0.70710678118654752440, -t) + x * 4.83364665672645672e-17;
    double found = 0.5 * erfc(t);
    return found - (t > 1.0 && found > 0.0 ? found * (t + t) * rest : 0.0);
}
inline float normcdff(float x) { return (float)normcdf((double)x); }

namespace gtape_emulator {

// The inverse of erf for |x| <= 1/2, by Newton's iteration.
inline double middle_erfinv(double x) {
    double y = 0.88622692545275801365 * x;
    for (int i = 0; i < 6; ++i) y -= (erf(y) - x) * exp(y * y) * 0.88622692545275801365;
    return y;
}

}  // namespace gtape_emulator

// The normal quantile. About the median it is the inverse of erf; elsewhere Newton's iteration on
// log(p), where the quantile is almost straight, and a last step on p, which cancels less.
inline double normcdfinv(double p) {
    if (p == 0.0 || p == 1.0) return p == 0.0 ? -__builtin_inf() : __builtin_inf();
    if (!(p > 0.0 && p < 1.0)) return __builtin_nan("");
    double offset = p - 0.5;
    if (fabs(offset) <= 0.25)
        return 1.41421356237309504880 * gtape_emulator::middle_erfinv(2.0 * offset);
    if (offset > 0.0) return -normcdfinv(1.0 - p);
    double x = 1.8 - sqrt(-2.0 * log(p)), step = 1.0;
    for (int i = 0; i < 60 && fabs(step) > 1e-9 * fabs(x); ++i) {
        double cdf = normcdf(x), density = exp(-0.5 * x * x) * 0.39894228040143267794;
        step = (log(cdf) - log(p)) * cdf / density;
        x -= step;
    }
    double density = exp(-0.5 * x * x) * 0.39894228040143267794;
    return density > 0.0 ? x - (normcdf(x) - p) / density : x;
}
inline float normcdfinvf(float p) { return (float)normcdfinv((double)p); }
// The inverse of erf: by the quantile where 1 - |x| is exact.
inline double erfinv(double x) {
    if (!(fabs(x) > 0.5)) return gtape_emulator::middle_erfinv(x);
    return copysign(normcdfinv(0.5 * (1.0 - fabs(x))) * 0.70710678118654752440, x);
}
inline float erfinvf(float x) { return (float)erfinv((double)x); }

namespace gtape_emulator {

// Modified Bessel functions of order 0 and 1: the power series, and the asymptotic one, whose
// terms fall until k is about 2x. Abramowitz and Stegun, 9.6.10 and 9.7.1.
inline double bessel_i(int order, double x) {
    double a = fabs(x), term = order ? 0.5 * a : 1.0, sum = term;
    if (isinf(a)) return order ? x : a;
    if (a < 30.0) {
        for (int k = 1; k < 200 && term > 1e-17 * sum; ++k) {
            term *= 0.25 * a * a / ((double)k * (k + order));
            sum += term;
        }
    } else {
        term = sum = 1.0;
        double mu = 4.0 * order * order;
        for (int k = 1; k < 60 && fabs(term) > 1e-17; ++k) {
            double odd = 2.0 * k - 1.0;
            term *= (odd * odd - mu) / (8.0 * k * a);
            sum += term;
        }
        sum *= exp(0.5 * a) / sqrt(6.28318530717958647693 * a) * exp(0.5 * a);
    }
    return order && x < 0.0 ? -sum : sum;
}

}  // namespace gtape_emulator

inline double cyl_bessel_i0(double x) { return gtape_emulator::bessel_i(0, x); }
inline double cyl_bessel_i1(double x) { return gtape_emulator::bessel_i(1, x); }
inline float cyl_bessel_i0f(float x) { return (float)cyl_bessel_i0((double)x); }
inline float cyl_bessel_i1f(float x) { return (float)cyl_bessel_i1((double)x); }
