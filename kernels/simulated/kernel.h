// What stands before the text of every kernel that the simulated GPU compiles: the emulator's CUDA,
// and what NVRTC's compiler knows beyond it. Like NVRTC it includes no header of the system.
#pragma once

#include "emulator.h"

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDA_VERSION 13000
#define __cudart_builtin__
#define __device_builtin__
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__
#define __restrict __restrict__
#define __inline__ inline
#define assert(...)               \
    ((__VA_ARGS__) ? (void)0 : gtape_emulator::stop("assertion `" #__VA_ARGS__ "` failed", \
                                                    __FILE__, __LINE__))
#define NAN __builtin_nanf("")
#define INFINITY __builtin_huge_valf()
#define HUGE_VAL __builtin_huge_val()

// Variables of a module: out of .bss, which is shared memory here, and by name for the driver.
#undef __constant__
#define SIMULATED_VARIABLE __attribute__((visibility("default"), section("gtape_variables")))
#define __managed__ SIMULATED_VARIABLE
#define SIMULATED_DYNAMIC(name, ...)                                                   \
    gtape_emulator::plain<__VA_ARGS__>* name =                                     \
        reinterpret_cast<gtape_emulator::plain<__VA_ARGS__>*>(gtape_emulator::dynamic_shared)

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long long clock_t;
extern "C" int printf(const char* format, ...);

// The compiler makes these of braces; its own header is one of the system.
namespace std {
template <typename T> class initializer_list {
    const T* first;
    size_t count;
    constexpr initializer_list(const T* first, size_t count) : first(first), count(count) {}

public:
    using value_type = T;
    using reference = const T&;
    using const_reference = const T&;
    using size_type = size_t;
    using iterator = const T*;
    using const_iterator = const T*;
    constexpr initializer_list() noexcept : first(nullptr), count(0) {}
    constexpr size_t size() const noexcept { return count; }
    constexpr const T* begin() const noexcept { return first; }
    constexpr const T* end() const noexcept { return first + count; }
};
}  // namespace std

namespace gtape_emulator {

// ---------------------------------------------------------------- traits

template <bool, typename T = void> struct enabled {};
template <typename T> struct enabled<true, T> { using type = T; };
template <bool condition, typename T = void> using enable = typename enabled<condition, T>::type;
template <typename T> struct unqualified { using type = T; };
template <typename T> struct unqualified<const T> { using type = T; };
template <typename T> struct unqualified<volatile T> { using type = T; };
template <typename T> struct unqualified<const volatile T> { using type = T; };
template <typename T> using plain = typename unqualified<T>::type;
template <typename T, typename U> constexpr bool same = false;
template <typename T> constexpr bool same<T, T> = true;
template <typename T> constexpr bool is_float = same<T, float> || same<T, double>;
template <typename T> constexpr bool is_integer =
    same<T, bool> || same<T, char> || same<T, signed char> || same<T, unsigned char> ||
    same<T, short> || same<T, unsigned short> || same<T, int> || same<T, unsigned> ||
    same<T, long> || same<T, unsigned long> || same<T, long long> || same<T, unsigned long long>;
template <typename T> constexpr bool is_number = is_integer<T> || is_float<T>;
// Two numbers that the emulator has no overload of its own for.
template <typename T, typename U> constexpr bool mixed =
    is_number<T> && is_number<U> && !(same<T, U> && is_float<T>);

// ---------------------------------------------------------------- what a library exports

struct KernelEntry { void (*body)(void**); const unsigned* sizes; int count; };

template <typename... A> struct Calls {
    static constexpr unsigned sizes[sizeof...(A) + 1] = {(unsigned)sizeof(A)..., 0u};
    template <void (*kernel)(A...)> static void call(void** given) {
        struct Call {
            Call(A... values) { kernel(values...); }
        };
        Call{*static_cast<A*>(*given++)...};  // braces: from left to right
        (void)given;
    }
};
template <typename... A> Calls<A...> calls_of(void (*)(A...));
template <auto kernel> constexpr KernelEntry kernel_entry() {
    using C = decltype(calls_of(kernel));
    return {&C::template call<kernel>, C::sizes, (int)(sizeof(C::sizes) / sizeof(unsigned)) - 1};
}

}  // namespace gtape_emulator

#define SIMULATED_KERNEL(symbol, ...)                                                           \
    extern "C" __attribute__((visibility("default"))) const gtape_emulator::KernelEntry     \
        gtape_kernel_##symbol = gtape_emulator::kernel_entry<__VA_ARGS__>();
#define SIMULATED_SIZE(name)                                                                    \
    extern "C" __attribute__((visibility("default"))) const unsigned long gtape_size_##name = \
        sizeof(name);
#define SIMULATED_SHARED                                                                        \
    __attribute__((used)) unsigned char gtape_bss[16];                                      \
    extern "C" unsigned char __bss_start[] __attribute__((visibility("hidden")));           \
    extern "C" unsigned char _end[] __attribute__((visibility("hidden")));                  \
    extern "C" __attribute__((visibility("default")))                                       \
    unsigned char* const gtape_simulated_shared[] = {__bss_start, _end};

// ---------------------------------------------------------------- functions of other types

#define GTAPE_OF_INTEGER(name)                                                       \
    template <typename T, typename = gtape_emulator::enable<gtape_emulator::is_integer<T>>> \
    inline double name(T x) { return name((double)x); }
#define GTAPE_OF_MIXED(name)                                                         \
    template <typename T, typename U,                                                \
              typename = gtape_emulator::enable<gtape_emulator::mixed<T, U>>>        \
    inline double name(T x, U y) { return name((double)x, (double)y); }
GTAPE_OF_INTEGER(acos) GTAPE_OF_INTEGER(acosh) GTAPE_OF_INTEGER(asin) GTAPE_OF_INTEGER(asinh)
GTAPE_OF_INTEGER(atan) GTAPE_OF_INTEGER(atanh) GTAPE_OF_INTEGER(cbrt) GTAPE_OF_INTEGER(ceil)
GTAPE_OF_INTEGER(cos) GTAPE_OF_INTEGER(cosh) GTAPE_OF_INTEGER(erf) GTAPE_OF_INTEGER(erfc)
GTAPE_OF_INTEGER(exp) GTAPE_OF_INTEGER(exp2) GTAPE_OF_INTEGER(expm1) GTAPE_OF_INTEGER(fabs)
GTAPE_OF_INTEGER(floor) GTAPE_OF_INTEGER(lgamma) GTAPE_OF_INTEGER(log) GTAPE_OF_INTEGER(log10)
GTAPE_OF_INTEGER(log1p) GTAPE_OF_INTEGER(log2) GTAPE_OF_INTEGER(logb) GTAPE_OF_INTEGER(nearbyint)
GTAPE_OF_INTEGER(rint) GTAPE_OF_INTEGER(round) GTAPE_OF_INTEGER(sin) GTAPE_OF_INTEGER(sinh)
GTAPE_OF_INTEGER(sqrt) GTAPE_OF_INTEGER(tan) GTAPE_OF_INTEGER(tanh) GTAPE_OF_INTEGER(tgamma)
GTAPE_OF_INTEGER(trunc)
GTAPE_OF_MIXED(atan2) GTAPE_OF_MIXED(copysign) GTAPE_OF_MIXED(fdim) GTAPE_OF_MIXED(fmax)
GTAPE_OF_MIXED(fmin) GTAPE_OF_MIXED(fmod) GTAPE_OF_MIXED(hypot) GTAPE_OF_MIXED(nextafter)
GTAPE_OF_MIXED(pow) GTAPE_OF_MIXED(remainder)
#undef GTAPE_OF_INTEGER
#undef GTAPE_OF_MIXED

template <typename T> inline gtape_emulator::enable<gtape_emulator::is_integer<T>, bool> isnan(T) {
    return false;
}
template <typename T> inline gtape_emulator::enable<gtape_emulator::is_integer<T>, bool> isinf(T) {
    return false;
}
template <typename T>
inline gtape_emulator::enable<gtape_emulator::is_integer<T>, bool> isfinite(T) { return true; }
template <typename T>
inline gtape_emulator::enable<gtape_emulator::is_integer<T>, bool> signbit(T x) { return x < T(0); }

template <typename T, typename U>
inline auto min(T a, U b) -> gtape_emulator::enable<
    gtape_emulator::mixed<T, U> && !gtape_emulator::same<T, U>, decltype(true ? a : b)> {
    using C = decltype(true ? a : b);
    return (C)b < (C)a ? (C)b : (C)a;
}
template <typename T, typename U>
inline auto max(T a, U b) -> gtape_emulator::enable<
    gtape_emulator::mixed<T, U> && !gtape_emulator::same<T, U>, decltype(true ? a : b)> {
    using C = decltype(true ? a : b);
    return (C)a < (C)b ? (C)b : (C)a;
}

// ---------------------------------------------------------------- conversions, bits, clocks

inline long long __float2ll_rn(float x) { return llrintf(x); }
inline long long __double2ll_rn(double x) { return llrint(x); }
inline double __ll2double_rn(long long x) { return (double)x; }
inline double __int2double_rn(int x) { return (double)x; }
inline float __ull2float_rn(unsigned long long x) { return (float)x; }
inline double __ull2double_rn(unsigned long long x) { return (double)x; }
// CUDA's conversions keep to the range of the integer, and turn nan into 0.
inline unsigned __float2uint_rn(float x) {
    return !(x > 0) ? 0u : x >= 4294967296.0f ? ~0u : (unsigned)llrintf(x);
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i)
        result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return result;
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
inline long long clock64() { static long long ticks; return ++ticks; }
inline clock_t clock() { return clock64(); }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
inline double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
inline void sincos(double x, double* s, double* c) { *s = sin(x); *c = cos(x); }
inline void sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
inline void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
inline double erfcx(double x) { return exp(x * x) * erfc(x); }
inline float erfcxf(float x) { return (float)erfcx((double)x); }
inline float erfcx(float x) { return erfcxf(x); }
inline double erfcinv(double x) { return -normcdfinv(0.5 * x) * 0.70710678118654752440; }
inline float erfcinvf(float x) { return (float)erfcinv((double)x); }
inline float erfcinv(float x) { return erfcinvf(x); }
inline float erfinv(float x) { return erfinvf(x); }
inline float normcdf(float x) { return normcdff(x); }
inline float normcdfinv(float x) { return normcdfinvf(x); }
inline float cyl_bessel_i0(float x) { return cyl_bessel_i0f(x); }
inline float cyl_bessel_i1(float x) { return cyl_bessel_i1f(x); }
