// Sliding windows over two spatial axes, channels last: what convolution and pooling share on
// CPUs.
//
// A geometry G is a struct of `static constexpr long`: N, H, W, C (the input), P, Q (the window),
// SH, SW (strides), DH, DW (dilations), TOP, LEFT (padding before), OH, OW (the result), and for
// convolutions O, the channels of the result. All of N, H, W, C, P, Q, O, OH, OW are at least 1.
// Output o sees in its tap t the input o * stride + t * dilation - padding. One axis is two with
// H = P = 1.
#pragma once
#include "cpu_threads.h"

#define WINDOWS_INLINE inline __attribute__((always_inline))
#define WINDOWS_INLINE_LAMBDA __attribute__((always_inline))
#if defined(__clang__)
#define WINDOWS_UNROLL _Pragma("clang loop unroll(full)")
#define WINDOWS_MULTIPLY_ADD
#define WINDOWS_FUSED _Pragma("clang fp contract(fast)")
#else
#define WINDOWS_UNROLL _Pragma("GCC unroll 64")
#define WINDOWS_MULTIPLY_ADD __attribute__((optimize("fp-contract=fast")))
#define WINDOWS_FUSED
#endif

namespace windows {

#if defined(__AVX512F__)
constexpr long VECTOR_BYTES = 64, REGISTERS = 32;
#elif defined(__AVX2__)
constexpr long VECTOR_BYTES = 32, REGISTERS = 16;
#elif defined(__aarch64__)
constexpr long VECTOR_BYTES = 16, REGISTERS = 32;
#else
constexpr long VECTOR_BYTES = 16, REGISTERS = 16;
#endif

template <typename T, long L> struct VectorOf {
    typedef T type __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T))));
};
template <typename T> struct VectorOf<T, 1> { typedef T type; };
// L neighbouring numbers, at any address of a T.
template <typename T, long L> using Vector = typename VectorOf<T, L>::type;

constexpr long least(long a, long b) { return a < b ? a : b; }
constexpr long most(long a, long b) { return a > b ? a : b; }
constexpr long ceil_div(long a, long b) { return (a + b - 1) / b; }
constexpr long gcd(long a, long b) { return b == 0 ? a : gcd(b, a % b); }
constexpr long divisor(long n, long limit) {
    long best = 1;
    for (long d = 1; d <= least(n, limit); ++d)
        if (n % d == 0) best = d;
    return best;
}

// The widest vector, of a power of two of at least 16 bytes, that `count` numbers fill; else 1.
template <typename T> constexpr long lanes(long count) {
    long wide = VECTOR_BYTES / (long)sizeof(T), narrow = 16 / (long)sizeof(T);
    while (wide > count && wide > narrow) wide /= 2;
    return wide <= count ? wide : 1;
}

// The same address, of which the compiler knows nothing: it does not keep in registers, which are
// all taken, what it will load again from there.
template <typename T> WINDOWS_INLINE T* opaque(T* address) {
    __asm__("" : "+r"(address));
    return address;
}

template <long I> struct Constant {
    static constexpr long value = I;
    constexpr operator long() const { return I; }
};

// f(Constant<0>), f(Constant<1>), ..., f(Constant<COUNT - 1>).
template <long COUNT, long I = 0, class F> WINDOWS_INLINE void unrolled(const F& f) {
    if constexpr (I < COUNT) {
        f(Constant<I>{});
        unrolled<COUNT, I + 1>(f);
    }
}

// Tap t of output o reads input o * STEP + BASE + t * GAP; GAP and STEP are positive.
template <long IN_, long OUT_, long STEP_, long BASE_, long TAPS_, long GAP_> struct Axis {
    static constexpr long IN = IN_, OUT = OUT_, STEP = STEP_, BASE = BASE_, TAPS = TAPS_,
                          GAP = GAP_;
    static constexpr long at(long o, long t) { return o * STEP + BASE + t * GAP; }
    static constexpr bool inside(long o, long t) { return at(o, t) >= 0 && at(o, t) < IN; }
    // Output o sees the input in its taps first_tap(o), ..., end_tap(o) - 1.
    static constexpr long first_tap(long o) {
        return at(o, 0) >= 0 ? 0 : least(TAPS, ceil_div(-at(o, 0), GAP));
    }
    static constexpr long end_tap(long o) {
        return at(o, 0) >= IN ? 0 : least(TAPS, ceil_div(IN - at(o, 0), GAP));
    }
    // Tap t sees the input in the outputs first_output(t), ..., end_output(t) - 1.
    static constexpr long first_output(long t) {
        return at(0, t) >= 0 ? 0 : least(OUT, ceil_div(-at(0, t), STEP));
    }
    static constexpr long end_output(long t) {
        return at(0, t) >= IN ? 0 : least(OUT, ceil_div(IN - at(0, t), STEP));
    }
    // In the outputs INNER, ..., INNER_END - 1 every tap sees the input.
    static constexpr long INNER = TAPS ? first_output(0) : 0;
    static constexpr long INNER_END = TAPS ? most(INNER, end_output(TAPS - 1)) : OUT;
    static constexpr bool ALL_INSIDE = INNER == 0 && INNER_END == OUT;
};
template <class G> using RowsOf = Axis<G::H, G::OH, G::SH, -G::TOP, G::P, G::DH>;
template <class G> using ColumnsOf = Axis<G::W, G::OW, G::SW, -G::LEFT, G::Q, G::DW>;

// Splits `units` of equal work among the threads: body(first unit, end). Below `SERIAL` operations
// waking a thread costs more than it saves.
constexpr long SERIAL = 1 << 18;

template <class Body> struct Share {
    const Body* body;
    long units;
    static void call(void* context, int part, int parts) {
        const Share& self = *(const Share*)context;
        (*self.body)(self.units * part / parts, self.units * (part + 1) / parts);
    }
};

template <class Body> inline void parallel(const Body& body, long units, double operations) {
    const int threads = gtape_threads();
    if (threads == 1 || units == 1 || operations < SERIAL) return body(0, units);
    // More parts than threads: a thread that the system holds up leaves its share to the others.
    Share<Body> share{&body, units};
    gtape_parallel(Share<Body>::call, &share, (int)least(units, 4l * threads));
}

}  // namespace windows
