// Random arrays, filled in one pass that only writes.
//
// out[i] is a function of the words of Philox at (key, high:low + i / values per counter), the same
// as in gtape/numerics/distributions.py: uniform floats and integers and truth values are equal to
// those of the CPU bit by bit; normal values are equal but for the rounding of log, sin and cos.
// Layout: out is contiguous, n values. Geometry: any grid of 256 threads; each thread makes the
// values of whole counters and stores 16 bytes at a time where out is aligned.
// Sources: Box & Muller 1958, "A note on the generation of random normal deviates"; the inverse of
// the normal distribution function after Giles 2012, "Approximating the erfinv function".
#include "philox.cuh"

// out[i] for i < n from draw(c, values), which makes the PER values of counter c.
template <int PER, typename T, typename Draw>
DEVICE void fill(T* out, long long n, Draw draw) {
    constexpr int W = Width<T>::value, G = W > PER ? W : PER;
    bool wide = aligned16(out);
    for (long long at = grid_index() * G; at < n; at += grid_size() * G) {
        Vec<T, W> made[G / W];
        T* values = made[0].v;
#pragma unroll
        for (int j = 0; j < G; j += PER) draw((at + j) / PER, values + j);
        if (wide && at + G <= n) {
#pragma unroll
            for (int j = 0; j < G / W; j++)
                reinterpret_cast<Vec<T, W>*>(out + at)[j] = made[j];
        } else {
#pragma unroll
            for (int j = 0; j < G; j++)
                if (at + j < n) out[at + j] = values[j];
        }
    }
}

// A product and a sum each rounded by itself, as NumPy does it.
#ifdef GTAPE_EMULATOR
DEVICE float scaled(float u, float span, float first) { return u * span + first; }
DEVICE double scaled(double u, double span, double first) { return u * span + first; }
#else
DEVICE float scaled(float u, float span, float first) {
    return __fadd_rn(__fmul_rn(u, span), first);
}
DEVICE double scaled(double u, double span, double first) {
    return __dadd_rn(__dmul_rn(u, span), first);
}
#endif

// The two-byte floats round after the product too.
DEVICE float placed(float u, double span, double first) {
    return scaled(u, (float)span, (float)first);
}
DEVICE double placed(double u, double span, double first) { return scaled(u, span, first); }
template <typename T> DEVICE T placed(T u, double span, double first) {
    return T(scaled((float)T((float)u * (float)span), 1.0f, (float)first));
}

template <typename T> DEVICE void fractions(const Words& w, T* values) {
#pragma unroll
    for (int j = 0; j < 4; j++) values[j] = T(fraction<MantissaBits<T>::value>(w.v[j]));
}
DEVICE void fractions(const Words& w, double* values) {
    values[0] = wide_fraction(w.v[0], w.v[1]);
    values[1] = wide_fraction(w.v[2], w.v[3]);
}

// How many words a value of the working type takes, and so how many values a counter gives.
template <typename T> struct PerCounter { static constexpr int value = 4; };
template <> struct PerCounter<double> { static constexpr int value = 2; };

// span u + first for u in [0, 1); `last` where rounding reaches `end`, which is outside.
template <typename T>
__global__ void __launch_bounds__(256)
uniform(T* out, long long n, long long key, long long low, long long high, double span,
        double first, double end, double last) {
    constexpr int PER = PerCounter<T>::value;
    Philox words(key, low, high);
    fill<PER>(out, n, [=](long long c, T* values) {
        fractions(words(c), values);
#pragma unroll
        for (int j = 0; j < PER; j++) {
            T value = placed(values[j], span, first);
            values[j] = (compute_t<T>)value < (compute_t<T>)end ? value : T((compute_t<T>)last);
        }
    });
}

// first + r mod span for 64-bit words r; a span of 0 stands for 2^64. `inverse` is
// floor(2^64 / span), at most 2^64 - 1: the quotient it gives is at most one too small.
template <typename T>
__global__ void __launch_bounds__(256)
uniform_int(T* out, long long n, long long key, long long low, long long high, long long first,
            long long span, long long inverse) {
    Philox words(key, low, high);
    unsigned long long divisor = (unsigned long long)span;
    fill<2>(out, n, [=](long long c, T* values) {
        Words w = words(c);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            unsigned long long raw = joined(w.v[2 * j], w.v[2 * j + 1]);
            if (divisor) {
                raw -= __umul64hi(raw, (unsigned long long)inverse) * divisor;
                raw -= raw >= divisor ? divisor : 0ull;
            }
            values[j] = (T)(raw + (unsigned long long)first);
        }
    });
}

// The sine and cosine of 2 pi v.
#ifdef GTAPE_EMULATOR
DEVICE void circle(float v, float* s, float* c) {
    *s = (float)sin(6.283185307179586 * v);
    *c = (float)cos(6.283185307179586 * v);
}
DEVICE void circle(double v, double* s, double* c) {
    *s = sin(6.283185307179586 * v);
    *c = cos(6.283185307179586 * v);
}
#else
DEVICE void circle(float v, float* s, float* c) { sincospif(2.0f * v, s, c); }
DEVICE void circle(double v, double* s, double* c) { sincospi(2.0 * v, s, c); }
#endif

DEVICE void box_muller(float u, float v, float* pair) {
    float radius = sqrtf(-2.0f * logf(u > 1e-7f ? u : 1e-7f));
    circle(v, pair, pair + 1);
    pair[0] *= radius;
    pair[1] *= radius;
}
DEVICE void box_muller(double u, double v, double* pair) {
    double radius = sqrt(-2.0 * log(u > 1e-7 ? u : 1e-7));
    circle(v, pair, pair + 1);
    pair[0] *= radius;
    pair[1] *= radius;
}

// mean + stddev r (sin, cos)(2 pi v), r = sqrt(-2 log u): the values of a counter come in pairs.
template <typename T>
__global__ void __launch_bounds__(256)
normal(T* out, long long n, long long key, long long low, long long high, double mean,
       double stddev) {
    using A = compute_t<T>;
    constexpr int PER = PerCounter<A>::value;
    Philox words(key, low, high);
    fill<PER>(out, n, [=](long long c, T* values) {
        A unit[PER];
        fractions(words(c), unit);
#pragma unroll
        for (int j = 0; j < PER; j += 2) {
            A pair[2];
            box_muller(unit[j], unit[j + 1], pair);
            values[j] = T(pair[0] * (A)stddev + (A)mean);
            values[j + 1] = T(pair[1] * (A)stddev + (A)mean);
        }
    });
}

// sqrt(2) erfinv(y) for |y| <= erf(sqrt(2)): y times a function of w = -log(1 - y^2), which is
// smooth; as a polynomial in t = w / 1.25 - 1 it is right to 1e-10 (float) and 3e-15 (double).
DEVICE float quantile(float y) {
    constexpr float series[] = {
        6.998686e-07f, -1.5042301e-06f, -1.9193809e-05f, 9.508875e-05f, 0.00035054472f,
        -0.0044019135f, 0.0039245105f, 0.31189954f, 1.1895616f};
    float t = -logf((1.0f - y) * (1.0f + y)) * 0.8f - 1.0f, sum = 0.0f;
#pragma unroll
    for (float part : series) sum = sum * t + part;
    return 1.4142135f * (y * sum);
}
DEVICE double quantile(double y) {
    constexpr double series[] = {
        2.5717383778101066e-12, -1.6491910059812655e-11, -1.224722101511589e-10,
        7.17675447958755e-10, 2.246157639884672e-09, -2.5351233177151046e-08,
        -9.254987594631284e-09, 7.6038005660084e-07, -1.4905939638618082e-06,
        -1.9245933964064794e-05, 9.508025318274391e-05, 0.00035056319069021077,
        -0.004401911358357396, 0.003924508156266026, 0.3118995416568864, 1.1895615771387749};
    double t = -log((1.0 - y) * (1.0 + y)) * 0.8 - 1.0, sum = 0.0;
#pragma unroll
    for (double part : series) sum = sum * t + part;
    return 1.4142135623730951 * (y * sum);
}

DEVICE void inner_fractions(const Words& w, float* v) {
    v[0] = ((float)(w.v[1] >> 9) + 0.5f) * 0x1p-23f;
    v[1] = ((float)(w.v[3] >> 9) + 0.5f) * 0x1p-23f;
}
DEVICE void inner_fractions(const Words& w, double* v) {
    v[0] = ((double)(joined(w.v[2], w.v[3]) >> 12) + 0.5) * 0x1p-52;
}

// mean + stddev times a standard normal value within [-2, 2], by the inverse of its distribution.
template <typename T>
__global__ void __launch_bounds__(256)
truncated_normal(T* out, long long n, long long key, long long low, long long high, double mean,
                 double stddev) {
    using A = compute_t<T>;
    constexpr int PER = PerCounter<A>::value / 2;
    constexpr A reach = (A)0.9544997361036416;
    Philox words(key, low, high);
    fill<PER>(out, n, [=](long long c, T* values) {
        A v[PER];
        inner_fractions(words(c), v);
#pragma unroll
        for (int j = 0; j < PER; j++) {
            A standard = quantile((A(2) * v[j] - A(1)) * reach);
            standard = standard > A(2) ? A(2) : standard < A(-2) ? A(-2) : standard;
            values[j] = T(standard * (A)stddev + (A)mean);
        }
    });
}

// true where the lowest 23 bits of the word are at least `threshold`.
__global__ void __launch_bounds__(256)
bernoulli(bool* out, long long n, long long key, long long low, long long high,
          long long threshold) {
    Philox words(key, low, high);
    fill<4>(out, n, [=](long long c, bool* values) {
        Words w = words(c);
#pragma unroll
        for (int j = 0; j < 4; j++) values[j] = (long long)(w.v[j] & 0x7fffffu) >= threshold;
    });
}
