// The trigonometric functions of floats and their inverses, in the manner of cpu_math_float.h.
#pragma once
#include "cpu_math_base.h"

namespace gtape_cpu {

// ---------------------------------------------------------------- trigonometric functions

// |x| 2/π = 4 i + q + f with |f| <= 1/2 and a quadrant q, whose low 2 bits are returned: Payne &
// Hanek 1983 in double. 2/π is in three parts whose first two have 29 bits, so that their products
// with x are exact. For x >= 2^48, 2^75 and 2^102, which are multiples of 2^25, 2^52 and 2^79, the
// multiples of 4 are left out of 2/π times these.
GTAPE_INLINE unsigned quadrant_of(float x, double& f) {
    double a = __builtin_fabsf(x), high = 0x1.45f306cp-1, middle = 0x1.c9c882ap-29;
    double low = 0x1.4fe13abe8fa9ap-59;
    high = a >= 0x1p48 ? -0x1.236377ep-25 : high;
    middle = a >= 0x1p48 ? 0x1.4a7f09ep-54 : middle;
    low = a >= 0x1p48 ? -0x1.4170565911f92p-83 : low;
    high = a >= 0x1p75 ? 0x1.529fc28p-52 : high;
    middle = a >= 0x1p75 ? -0x1.505c15ap-81 : middle;
    low = a >= 0x1p75 ? 0x1.377036d8a5665p-110 : low;
    high = a >= 0x1p102 ? -0x1.505c158p-81 : high;
    middle = a >= 0x1p102 ? -0x1.6447e48p-109 : middle;
    low = a >= 0x1p102 ? -0x1.3ad4cd8778df8p-137 : low;
    double turns = a * high, more = a * middle;
    double whole = turns + 0x1.8p52, whole_more = more + 0x1.8p52;
    turns -= whole - 0x1.8p52;
    more -= whole_more - 0x1.8p52;
    double carry = turns + more + 0x1.8p52;
    f = turns - (carry - 0x1.8p52) + mad(a, low, more);
    return (unsigned)bits_of(whole) + (unsigned)bits_of(whole_more) + (unsigned)bits_of(carry);
}

// sin or cos of r by the quadrant, for |r| <= π/4.
GTAPE_INLINE float sine_of(unsigned quadrant, float r) {
    float z = r * r;
    float sine = fused(r * z, polynomial(z, 2.71830822e-06f, -0.000198393347f, 0.00833332911f,
                                         -0.166666672f), r);
    float cosine = fused(z * z, polynomial(z, 2.44384155e-05f, -0.00138873677f, 0.0416666456f),
                         fused(-0.5f, z, 1.0f));
    float found = quadrant & 1u ? cosine : sine;
    return float_of(bits_of(found) ^ (quadrant & 2u) << 30);
}

// 1.75 ulp.
GTAPE_INLINE float sin(float x) {
    double f;
    unsigned quadrant = quadrant_of(x, f);
    float found = sine_of(quadrant, (float)(f * 1.57079632679489661923));
    return float_of(bits_of(found) ^ (bits_of(x) & 0x80000000u));
}

// 1.75 ulp.
GTAPE_INLINE float cos(float x) {
    double f;
    unsigned quadrant = quadrant_of(x, f);
    return sine_of(quadrant + 1u, (float)(f * 1.57079632679489661923));
}

// 1 ulp: sin / cos in double.
GTAPE_INLINE float tan(float x) {
    double f;
    unsigned quadrant = quadrant_of(x, f);
    double r = f * 1.57079632679489661923, z = r * r;
    double sine = mad(r * z, polynomial(z, 2.7183082709933092e-06, -0.00019839334504065674,
                                        0.0083333293848775799, -0.16666666641617991), r);
    double cosine = polynomial(z, 2.4390413381303846e-05, -0.0013886763409693751,
                               0.041666623312615669, -0.49999999725009303, 1.0);
    double found = quadrant & 1u ? -cosine / sine : sine / cosine;
    return float_of(bits_of((float)found) ^ (bits_of(x) & 0x80000000u));
}

// asin(s) for z = s² <= 0.39.
GTAPE_INLINE float asin_of(float s, float z) {
    return fused(s * z, polynomial(z, 0.0646067709f, -0.0238965824f, 0.0374484211f, 0.0275596548f,
                                   0.044909209f, 0.0749889761f, 0.166666806f), s);
}

// asin |x| up to 0.625; above, asin √((1 - |x|) / 2), which is (π/2 - asin |x|) / 2.
GTAPE_INLINE float asin_or_rest(float a) {
    float z = a > 0.625f ? fused(-0.5f, a, 0.5f) : a * a;
    return asin_of(a > 0.625f ? __builtin_sqrtf(z) : a, z);
}

// 2 ulp.
GTAPE_INLINE float asin(float x) {
    float a = __builtin_fabsf(x), part = asin_or_rest(a);
    return __builtin_copysignf(a > 0.625f ? fused(-2.0f, part, 1.57079633f) : part, x);
}

// 1.5 ulp.
GTAPE_INLINE float acos(float x) {
    float a = __builtin_fabsf(x), part = asin_or_rest(a);
    float near = 1.57079633f - __builtin_copysignf(part, x);
    float far = x < 0.0f ? fused(-2.0f, part, 3.14159265f) : 2.0f * part;
    return a > 0.625f ? far : near;
}

// atan(s) for 0 <= s <= 1.
GTAPE_INLINE float atan_of(float s) {
    float z = s * s;
    return fused(s * z, polynomial(z, -0.00159757503f, 0.0100912061f, -0.0297605619f,
                                   0.0566728897f, -0.0833797753f, 0.109337129f, -0.142616212f,
                                   0.199984059f, -0.333332986f), s);
}

// 2 ulp.
GTAPE_INLINE float atan(float x) {
    float a = __builtin_fabsf(x);
    float part = atan_of((a > 1.0f ? 1.0f : a) / (a > 1.0f ? a : 1.0f));
    return __builtin_copysignf(a > 1.0f ? 1.57079633f - part : part, x);
}

// 2 ulp.
GTAPE_INLINE float atan2(float y, float x) {
    float a = __builtin_fabsf(y), b = __builtin_fabsf(x);
    float ratio = (a > b ? b : a) / (a > b ? a : b);
    ratio = a == b ? 1.0f : ratio;  // both may be infinite
    ratio = a == 0.0f ? 0.0f : ratio;
    float found = atan_of(ratio);
    found = a > b ? 1.57079633f - found : found;
    found = (int)bits_of(x) < 0 ? 3.14159265f - (found - -8.74227766e-08f) : found;
    return x != x || y != y ? x + y : __builtin_copysignf(found, y);
}

}  // namespace gtape_cpu
