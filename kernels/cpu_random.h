// Random arrays: Philox4x32-10, and the distributions that take a fixed number of words a value.
//
// Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (SC'11). The
// words of many counters are made side by side, then the values of a whole block. The numbers are
// those of gtape/numerics/distributions.py bit by bit.
#pragma once
#include "cpu_math.h"
#include "cpu_threads.h"

namespace gtape_cpu {

typedef unsigned long long Word64;

// Counters, and words, of one block.
static constexpr int COUNTERS = 64, WORDS = 4 * COUNTERS;
// Words from which on threads share the work.
static constexpr long SHARED_WORDS = 1 << 14;

// The key and the 128-bit counter of the first words of a stream.
struct Stream {
    unsigned first, second;
    Word64 low, high;
};

// The words of the counters low + at, ..., four of each.
static inline void philox(const Stream& stream, Word64 at, unsigned* words) {
    const Word64 start = stream.low + at, high = stream.high + (start < at);
#pragma omp simd
    for (int i = 0; i < COUNTERS; i++) {
        const Word64 low = start + (Word64)i, upper = high + (low < start);
        unsigned a = (unsigned)low, b = (unsigned)(low >> 32);
        unsigned c = (unsigned)upper, d = (unsigned)(upper >> 32);
        unsigned key_a = stream.first, key_c = stream.second;
#pragma GCC unroll 10
        for (int turn = 0; turn < 10; turn++) {
            const Word64 of_a = (Word64)a * 0xD2511F53u, of_c = (Word64)c * 0xCD9E8D57u;
            a = (unsigned)(of_c >> 32) ^ b ^ key_a;
            b = (unsigned)of_c;
            c = (unsigned)(of_a >> 32) ^ d ^ key_c;
            d = (unsigned)of_a;
            key_a += 0x9E3779B9u;
            key_c += 0xBB67AE85u;
        }
        words[4 * i] = a;
        words[4 * i + 1] = b;
        words[4 * i + 2] = c;
        words[4 * i + 3] = d;
    }
}

// ---------------------------------------------------------------- positions

// A Philox key that depends on every bit of the numbers.
template <typename... N> static inline Stream mixed(N... numbers) {
    Stream made = {0x67746170u, 0x65206B79u, 0, 0};
    unsigned words[WORDS];
    const Word64 all[] = {(Word64)numbers...};
    for (Word64 number : all) {
        philox(made, number, words);
        made.first = words[0];
        made.second = words[1];
    }
    return made;
}

static inline Stream stream_at(const long long* position) {
    return {(unsigned)position[0], (unsigned)position[1], (Word64)position[2],
            (Word64)position[3]};
}

// The same for distributions that use the upper half of the counter themselves.
static inline Stream folded_stream_at(const long long* position) {
    Stream found = stream_at(position);
    if (!found.high) return found;
    Stream made = mixed((Word64)position[0], (Word64)position[1], found.high);
    made.low = found.low;
    return made;
}

static inline void keep_position(const Stream& stream, long long* position) {
    position[0] = stream.first;
    position[1] = stream.second;
    position[2] = (long long)stream.low;
    position[3] = (long long)stream.high;
}

// ---------------------------------------------------------------- words as numbers

// The lowest BITS bits of a word as a fraction in [0, 1), by placing them below the exponent of 1.
template <int BITS> GTAPE_INLINE float fraction(unsigned word) {
    return float_of(0x3f800000u | (word & ((1u << BITS) - 1u)) << (23 - BITS)) - 1.0f;
}

// 20 bits of one word and 32 of the next.
GTAPE_INLINE double wide_fraction(unsigned upper, unsigned lower) {
    const Word64 kept = (Word64)(upper & 0xfffffu) << 32 | lower;
    return double_of(0x3ff0000000000000ull | kept) - 1.0;
}

GTAPE_INLINE Word64 joined(unsigned lower, unsigned upper) { return (Word64)upper << 32 | lower; }

// What a dtype is computed in, and its mantissa's bits.
template <typename T> struct Float { typedef T Type; static constexpr int BITS = 23; };
template <> struct Float<half> { typedef float Type; static constexpr int BITS = 10; };
template <> struct Float<bfloat16> { typedef float Type; static constexpr int BITS = 7; };

template <typename T> GTAPE_INLINE float unit_at(const unsigned* words, int i, T*) {
    return fraction<Float<T>::BITS>(words[i]);
}
GTAPE_INLINE double unit_at(const unsigned* words, int i, double*) {
    return wide_fraction(words[2 * i], words[2 * i + 1]);
}

template <typename T> struct PerCounter { static constexpr int VALUES = 4; };
template <> struct PerCounter<double> { static constexpr int VALUES = 2; };

// ---------------------------------------------------------------- distributions

// Each has its number of VALUES of a counter, and `block`, which makes those of WORDS words.

// first + span u, the product and the sum each rounded; `last` where that reaches `end`.
template <typename T> struct Uniform {
    typedef typename Float<T>::Type Wide;
    typedef T Made;
    static constexpr int VALUES = PerCounter<T>::VALUES;
    Wide span, first, end, last;

    void block(const unsigned* words, T* out) const {
#pragma omp simd
        for (int i = 0; i < COUNTERS * VALUES; i++) {
            T part;
            part = unit_at(words, i, out) * span;
            T made;
            made = (Wide)part + first;
            out[i] = (Wide)made < end ? (Wide)made : last;
        }
    }
};

// The formulas of gtape/numerics/distributions.py, every operation rounded as there.
template <typename T> struct Form;
template <> struct Form<float> {
    typedef int Bits;
    static constexpr int ROOT = 0x3f3504f3, DIGITS = 23, LOG = 4, SIN = 4, COS = 5;
    static constexpr float ROUND = 0x1.8p23f;
    static GTAPE_INLINE int of(float x) { return (int)bits_of(x); }
    static GTAPE_INLINE float from(int bits) { return float_of((unsigned)bits); }
};
template <> struct Form<double> {
    typedef long long Bits;
    static constexpr long long ROOT = 0x3fe6a09e667f3bcd;
    static constexpr int DIGITS = 52, LOG = 10, SIN = 8, COS = 9;
    static constexpr double ROUND = 0x1.8p52;
    static GTAPE_INLINE long long of(double x) { return (long long)bits_of(x); }
    static GTAPE_INLINE double from(long long bits) { return double_of((Word64)bits); }
};

// Coefficient k of 2 artanh, and of sin (first = 1) and cos (0).
constexpr double artanh_term(int k) { return 1.0 / (2 * k + 1); }
constexpr double taylor_term(int first, int k) {
    double value = 1.0;
    for (int j = 1; j <= k; j++) value /= -((2 * j + first) * (2 * j + first - 1));
    return value;
}

// log x of positive normal x = m 2^e: e log 2 + 2 artanh s with s = (m - 1) / (m + 1).
template <typename T> GTAPE_INLINE T log_plainly(T x) {
    typedef Form<T> F;
    const typename F::Bits bits = F::of(x), exponent = (bits - F::ROOT) >> F::DIGITS;
    const T m = F::from(bits - exponent * (typename F::Bits(1) << F::DIGITS));
    const T s = (m - T(1)) / (m + T(1)), twice = s + s, z = s * s;
    T tail = T(artanh_term(F::LOG)) * z;
#pragma GCC unroll 16
    for (int k = F::LOG - 1; k > 0; k--) tail = (tail + T(artanh_term(k))) * z;
    return (T)exponent * T(0.6931471805599453) + (twice + twice * tail);
}

// sin and cos of 2 pi turns, for turns in [0, 1).
template <typename T> GTAPE_INLINE void circle(T turns, T& s, T& c) {
    typedef Form<T> F;
    const T quarters = turns * T(4), shifted = quarters + F::ROUND;
    const T x = (quarters - (shifted - F::ROUND)) * T(1.5707963267948966), z = x * x;
    T sine = T(taylor_term(1, F::SIN)) * z, cosine = T(taylor_term(0, F::COS)) * z;
#pragma GCC unroll 16
    for (int k = F::SIN - 1; k > 0; k--) sine = (sine + T(taylor_term(1, k))) * z;
#pragma GCC unroll 16
    for (int k = F::COS - 1; k > 0; k--) cosine = (cosine + T(taylor_term(0, k))) * z;
    sine = x + x * sine;
    cosine = cosine + T(1);
    const typename F::Bits quadrant = F::of(shifted);
    s = (quadrant & 1 ? cosine : sine) * (T)(1 - (int)(quadrant & 2));
    c = (quadrant & 1 ? sine : cosine) * (T)(1 - (int)((quadrant + 1) & 2));
}

// mean + stddev r (sin, cos)(2 pi v) with r = sqrt(-2 log u): Box & Muller 1958, "A note on the
// generation of random normal deviates".
template <typename T> struct Normal {
    typedef typename Float<T>::Type Wide;
    typedef T Made;
    static constexpr int VALUES = PerCounter<Wide>::VALUES;
    Wide mean, stddev;

    void block(const unsigned* words, T* out) const {
        Wide* none = nullptr;
#pragma omp simd
        for (int i = 0; i < COUNTERS * VALUES / 2; i++) {
            const Wide u = unit_at(words, 2 * i, none), v = unit_at(words, 2 * i + 1, none);
            const Wide radius = sqrt(log_plainly(u < Wide(1e-7) ? Wide(1e-7) : u) * Wide(-2));
            Wide s, c;
            circle(v, s, c);
            out[2 * i] = radius * s * stddev + mean;
            out[2 * i + 1] = radius * c * stddev + mean;
        }
    }
};

GTAPE_INLINE float inner_fraction(const unsigned* words, int i, float*) {
    return ((float)(int)(words[2 * i + 1] >> 9) + 0.5f) * 0x1p-23f;
}
GTAPE_INLINE double inner_fraction(const unsigned* words, int i, double*) {
    const Word64 word = joined(words[4 * i + 2], words[4 * i + 3]);
    return ((double)(long long)(word >> 12) + 0.5) * 0x1p-52;
}

// mean + stddev times a standard normal value within [-2, 2], by the inverse of its distribution:
// sqrt(2) y f(-log(1 - y^2)), with the Chebyshev series of f over [0, 6.25].
template <typename T, int TERMS> struct TruncatedNormal {
    typedef typename Float<T>::Type Wide;
    typedef T Made;
    static constexpr int VALUES = PerCounter<Wide>::VALUES / 2;
    Wide mean, stddev;
    double series[TERMS];

    void block(const unsigned* words, T* out) const {
        Wide* none = nullptr;
#pragma omp simd
        for (int i = 0; i < COUNTERS * VALUES; i++) {
            const Wide y = (Wide(2) * inner_fraction(words, i, none) - Wide(1)) *
                           Wide(0.9544997361036416);
            const double wide = y, t = -log((1.0 - wide) * (1.0 + wide)) / 3.125 - 1.0;
            double newer = series[TERMS - 1], older = 0.0;  // Clenshaw 1955
#pragma GCC unroll 32
            for (int k = TERMS - 2; k > 0; k--) {
                const double next = 2.0 * t * newer - older + series[k];
                older = newer;
                newer = next;
            }
            const Wide inverse = (Wide)(wide * (t * newer - older + series[0]));
            const Wide standard = Wide(1.4142135623730951) * inverse;
            out[i] = smaller(larger(standard, Wide(-2)), Wide(2)) * stddev + mean;
        }
    }
};

// Whether the lowest 23 bits are at least `threshold`.
struct Bernoulli {
    typedef bool Made;
    static constexpr int VALUES = 4;
    unsigned threshold;

    void block(const unsigned* words, bool* out) const {
#pragma omp simd
        for (int i = 0; i < WORDS; i++) out[i] = (words[i] & 0x7fffffu) >= threshold;
    }
};

// first + r mod span for 64-bit words r; a span of 0 stands for 2^64. `inverse` is floor(2^64 /
// span), at most 2^64 - 1: the quotient that it gives is at most one too small.
template <typename T> struct Integers {
    typedef T Made;
    static constexpr int VALUES = 2;
    Word64 first, span, inverse;

    void block(const unsigned* words, T* out) const {
        for (int i = 0; i < 2 * COUNTERS; i++) {
            Word64 raw = joined(words[2 * i], words[2 * i + 1]);
            if (span) {
                raw -= (Word64)((unsigned __int128)raw * inverse >> 64) * span;
                raw -= raw >= span ? span : 0;
            }
            out[i] = (T)(raw + first);
        }
    }
};

// ---------------------------------------------------------------- whole arrays

template <typename D> struct Draw {
    Stream stream;
    D distribution;
    typename D::Made* out;
    long count;
};

template <typename D> static void drawn_part(void* given, int part, int parts) {
    constexpr long EACH = COUNTERS * D::VALUES;
    const Draw<D>& draw = *(const Draw<D>*)given;
    const long blocks = (draw.count + EACH - 1) / EACH;
    unsigned words[WORDS];
    typename D::Made rest[EACH];
    for (long b = blocks * part / parts; b < blocks * (part + 1) / parts; b++) {
        const long at = b * EACH, left = draw.count - at;
        philox(draw.stream, (Word64)(b * COUNTERS), words);
        draw.distribution.block(words, left < EACH ? rest : draw.out + at);
        if (left < EACH)
            __builtin_memcpy(draw.out + at, rest, sizeof(rest[0]) * (unsigned long)left);
    }
}

template <typename D>
static void drawn(const Stream& stream, const D& distribution, typename D::Made* out, long count) {
    Draw<D> draw = {stream, distribution, out, count};
    if (count * 4 / D::VALUES >= SHARED_WORDS)
        gtape_parallel(drawn_part<D>, &draw, gtape_threads());
    else
        drawn_part<D>(&draw, 0, 1);
}

}  // namespace gtape_cpu
