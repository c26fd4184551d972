// half as CuPy's headers and simple kernels use it. Arithmetic is done in float and rounded, which
// gives the same number: a product or sum of two halves has fewer digits than a float keeps twice.
#pragma once

struct __half_raw { unsigned short x; };
struct __half {
    unsigned short __x;
    __half() = default;
    __half(const __half_raw& raw) : __x(raw.x) {}
    __half(float value) : __x(gtape_emulator::half_bits(value)) {}
    explicit __half(double value) : __half((float)value) {}
    template <typename T, typename = gtape_emulator::enable<gtape_emulator::is_integer<T>>>
    explicit __half(T value) : __half((float)value) {}
    operator float() const { return gtape_emulator::half_value(__x); }
    operator __half_raw() const { return {__x}; }
};
typedef __half half;

#define GTAPE_HALF_OPERATOR(sign)                                                     \
    inline __half operator sign(__half a, __half b) { return __half((float)a sign (float)b); } \
    inline __half& operator sign##=(__half& a, __half b) { return a = a sign b; }
GTAPE_HALF_OPERATOR(+) GTAPE_HALF_OPERATOR(-) GTAPE_HALF_OPERATOR(*) GTAPE_HALF_OPERATOR(/)
#undef GTAPE_HALF_OPERATOR
#define GTAPE_HALF_COMPARISON(sign) \
    inline bool operator sign(__half a, __half b) { return (float)a sign (float)b; }
GTAPE_HALF_COMPARISON(==) GTAPE_HALF_COMPARISON(!=) GTAPE_HALF_COMPARISON(<)
GTAPE_HALF_COMPARISON(<=) GTAPE_HALF_COMPARISON(>) GTAPE_HALF_COMPARISON(>=)
#undef GTAPE_HALF_COMPARISON
inline __half operator-(__half a) { return __half_raw{(unsigned short)(a.__x ^ 0x8000)}; }

inline __half __float2half(float value) { return value; }
inline __half __float2half_rn(float value) { return value; }
inline __half __double2half(double value) { return __half(value); }
inline float __half2float(__half value) { return value; }
inline unsigned short __half_as_ushort(__half value) { return value.__x; }
inline short __half_as_short(__half value) { return (short)value.__x; }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }
inline __half __short_as_half(short bits) { return __half_raw{(unsigned short)bits}; }
inline bool __hisnan(__half value) { return (value.__x & 0x7fff) > 0x7c00; }
inline int __hisinf(__half value) {
    return (value.__x & 0x7fff) != 0x7c00 ? 0 : value.__x & 0x8000 ? -1 : 1;
}
inline __half __hadd(__half a, __half b) { return a + b; }
inline __half __hsub(__half a, __half b) { return a - b; }
inline __half __hmul(__half a, __half b) { return a * b; }
inline __half __hdiv(__half a, __half b) { return a / b; }
inline __half __hneg(__half a) { return -a; }
