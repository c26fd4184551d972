// The trigonometric functions of doubles and their inverses. Reducing a large double takes a table
// of the bits of 2/π: sin, cos and tan are libm's, which are not vectorised.
#pragma once
#include "cpu_math_base.h"

namespace gtape_cpu {

GTAPE_INLINE double sin(double x) { return __builtin_sin(x); }
GTAPE_INLINE double cos(double x) { return __builtin_cos(x); }
GTAPE_INLINE double tan(double x) { return __builtin_tan(x); }

// ---------------------------------------------------------------- inverse trigonometric functions

// asin(s) for z = s² <= 0.39.
GTAPE_INLINE double asin_of(double s, double z) {
    return fused(s * z, polynomial(z, 0.16117086086577334, -0.36608779829559729,
                                   0.42979293716328604, -0.29532709248124261, 0.15183181595627415,
                                   -0.042797133820975219, 0.021012084844279438,
                                   0.0074158814668732181, 0.011873238984312121,
                                   0.013932681406280881, 0.017355069596228803,
                                   0.022372044301072119, 0.030381948236413631, 0.0446428570655076,
                                   0.075000000000860545, 0.16666666666666277), s);
}

// asin |x| up to 0.625; above, asin √((1 - |x|) / 2), which is (π/2 - asin |x|) / 2.
GTAPE_INLINE double asin_or_rest(double a) {
    double z = a > 0.625 ? fused(-0.5, a, 0.5) : a * a;
    return asin_of(a > 0.625 ? __builtin_sqrt(z) : a, z);
}

// 1.5 ulp.
GTAPE_INLINE double asin(double x) {
    double a = __builtin_fabs(x), part = asin_or_rest(a);
    double far = fused(-2.0, part - 3.06161699786838294e-17, 1.57079632679489661923);
    return __builtin_copysign(a > 0.625 ? far : part, x);
}

// 1.5 ulp.
GTAPE_INLINE double acos(double x) {
    double a = __builtin_fabs(x), part = asin_or_rest(a);
    double near = 1.57079632679489661923 - (__builtin_copysign(part, x) - 6.12323399573676604e-17);
    double below = fused(-2.0, part - 6.12323399573676604e-17, 3.14159265358979323846);
    double far = x < 0.0 ? below : 2.0 * part;
    return a > 0.625 ? far : near;
}

// atan(s) for 0 <= s <= 1.
GTAPE_INLINE double atan_of(double s) {
    double z = s * s;
    return fused(s * z, polynomial(z, -8.6493249140505559e-06, 0.0001038220685945927,
                                   -0.0005926572966568908, 0.0021509000946492098,
                                   -0.0056110051674687035, 0.011315621206680147,
                                   -0.018611946171757019, 0.026149736851207646,
                                   -0.032784137788609939, 0.038209385700361774,
                                   -0.042863628999595463, 0.047449170503656511,
                                   -0.052594315102829706, 0.058817157154484934,
                                   -0.066665836594067357, 0.076922997050871689,
                                   -0.090909085467603123, 0.11111111086423178,
                                   -0.14285714285035922, 0.19999999999990437,
                                   -0.33333333333333287), s);
}

// The angle of (x, y) for x, y >= 0.
GTAPE_INLINE double angle_of(double y, double x) {
    double part = atan_of((y > x ? x : y) / (y > x ? y : x));
    return y > x ? 1.57079632679489661923 - (part - 6.12323399573676604e-17) : part;
}

// 2 ulp.
GTAPE_INLINE double atan(double x) {
    return __builtin_copysign(angle_of(__builtin_fabs(x), 1.0), x);
}

// 2 ulp.
GTAPE_INLINE double atan2(double y, double x) {
    double a = __builtin_fabs(y), b = __builtin_fabs(x);
    double found = angle_of(a, b);
    found = a == b ? 0.78539816339744830962 : found;  // both may be infinite
    found = a == 0.0 ? 0.0 : found;
    double behind = 3.14159265358979323846 - (found - 1.22464679914735321e-16);
    found = (long long)bits_of(x) < 0 ? behind : found;
    return x != x || y != y ? x + y : __builtin_copysign(found, y);
}

}  // namespace gtape_cpu
