// Philox4x32-10: random words as a pure function of a key and a counter, drawn where they are used.
//
// Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (SC'11). Word
// 4 i + j of a stream is word j of the counter start + i. The numbers are those of
// gtape/numerics/distributions.py, so that a seed gives the same program everywhere.
#pragma once
#include "gtape.cuh"

struct Words { unsigned v[4]; };

// The stream of one draw. `key` holds two 32-bit words; the 128-bit counter starts at high:low.
struct Philox {
    unsigned key0, key1;
    unsigned long long low, high;

    DEVICE Philox(long long key, long long first_low, long long first_high)
        : key0((unsigned)key), key1((unsigned)((unsigned long long)key >> 32)),
          low((unsigned long long)first_low), high((unsigned long long)first_high) {}

    // The four words of the counter start + `at`.
    DEVICE Words operator()(long long at) const {
        unsigned long long lower = low + (unsigned long long)at;
        unsigned long long upper = high + (lower < low);
        unsigned a = (unsigned)lower, b = (unsigned)(lower >> 32);
        unsigned c = (unsigned)upper, d = (unsigned)(upper >> 32);
        unsigned k0 = key0, k1 = key1;
#pragma unroll
        for (int turn = 0; turn < 10; turn++) {
            unsigned long long of_a = 0xD2511F53ull * a, of_c = 0xCD9E8D57ull * c;
            a = (unsigned)(of_c >> 32) ^ b ^ k0;
            b = (unsigned)of_c;
            c = (unsigned)(of_a >> 32) ^ d ^ k1;
            d = (unsigned)of_a;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        return {a, b, c, d};
    }
};

template <typename T> struct MantissaBits { static constexpr int value = 23; };
template <> struct MantissaBits<half> { static constexpr int value = 10; };
template <> struct MantissaBits<bfloat16> { static constexpr int value = 7; };

// The lowest BITS bits of a word as a fraction in [0, 1), by placing them below the exponent of 1.
template <int BITS> DEVICE float fraction(unsigned word) {
    unsigned kept = (word & ((1u << BITS) - 1u)) << (23 - BITS);
    return __uint_as_float(0x3f800000u | kept) - 1.0f;
}

// 20 bits of one word and 32 of the next.
DEVICE double wide_fraction(unsigned upper, unsigned lower) {
    unsigned long long kept = (unsigned long long)(upper & 0xfffffu) << 32 | lower;
    return __longlong_as_double((long long)(0x3ff0000000000000ull | kept)) - 1.0;
}

DEVICE unsigned long long joined(unsigned lower, unsigned upper) {
    return (unsigned long long)upper << 32 | lower;
}
