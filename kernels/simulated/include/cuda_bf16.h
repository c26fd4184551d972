// bfloat16 as CuPy's headers use it.
#pragma once

struct __nv_bfloat16_raw { unsigned short x; };
struct __nv_bfloat16 {
    unsigned short __x;
    __nv_bfloat16() = default;
    __nv_bfloat16(const __nv_bfloat16_raw& raw) : __x(raw.x) {}
    __nv_bfloat16(float value) {
        unsigned bits = __float_as_uint(value);
        __x = (bits & 0x7fffffffu) > 0x7f800000u
            ? 0x7fff : (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
    explicit __nv_bfloat16(double value) : __nv_bfloat16((float)value) {}
    template <typename T, typename = gtape_emulator::enable<gtape_emulator::is_integer<T>>>
    explicit __nv_bfloat16(T value) : __nv_bfloat16((float)value) {}
    operator float() const { return __uint_as_float((unsigned)__x << 16); }
    operator __nv_bfloat16_raw() const { return {__x}; }
};

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.__x; }
inline short __bfloat16_as_short(__nv_bfloat16 value) { return (short)value.__x; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
inline __nv_bfloat16 __short_as_bfloat16(short bits) {
    return __nv_bfloat16_raw{(unsigned short)bits};
}
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat16 __float2bfloat16(float value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
inline __nv_bfloat16 __hneg(__nv_bfloat16 a) {
    return __nv_bfloat16_raw{(unsigned short)(a.__x ^ 0x8000)};
}
inline bool __hisnan(__nv_bfloat16 value) { return (value.__x & 0x7fff) > 0x7f80; }
inline int __hisinf(__nv_bfloat16 value) {
    return (value.__x & 0x7fff) != 0x7f80 ? 0 : value.__x & 0x8000 ? -1 : 1;
}
