// Running totals along an axis, and the places of extremes.
//
// An array is outer x n x inner elements and the axis is the middle one. Threads share the rows
// where inner is 1, and strips of columns elsewhere; every total is made in order by one thread.
#pragma once
#include "cpu_math.h"
#include "cpu_threads.h"

namespace gtape_cpu {

template <typename T> struct Running { typedef T Type; };
template <> struct Running<half> { typedef float Type; };
template <> struct Running<bfloat16> { typedef float Type; };

static constexpr long STRIP = 256;
// Elements from which on threads share the work.
static constexpr long SHARED_ELEMENTS = 1 << 15;

// The axis, and how many strips of columns there are.
struct Along {
    long outer, n, inner;
    long strips() const { return (inner + STRIP - 1) / STRIP; }
    long tasks() const { return outer * strips(); }
};

// Calls body(first element, columns) for each strip of this part.
template <typename Body>
static inline void each_strip(const Along& along, int part, int parts, Body body) {
    const long tasks = along.tasks(), strips = along.strips();
    for (long t = tasks * part / parts; t < tasks * (part + 1) / parts; t++) {
        const long from = t % strips * STRIP, left = along.inner - from;
        body(t / strips * along.n * along.inner + from, left < STRIP ? left : STRIP);
    }
}

// ---------------------------------------------------------------- running totals

// Each gives the `first` total, and the `next` one of the total before and the element `at`.
template <typename T> struct Sums {
    typedef T Element;
    typedef typename Running<T>::Type Wide;
    const T* x;
    GTAPE_INLINE Wide first(long at) const { return x[at]; }
    GTAPE_INLINE Wide next(Wide before, long at) const { return before + (Wide)x[at]; }
};
// Long sums of floats, in double precision.
template <typename T> struct Wider { typedef T Type; };
template <> struct Wider<half> { typedef double Type; };
template <> struct Wider<bfloat16> { typedef double Type; };
template <> struct Wider<float> { typedef double Type; };
template <typename T> struct WideSums {
    typedef T Element;
    typedef typename Wider<T>::Type Wide;
    const T* x;
    GTAPE_INLINE Wide first(long at) const { return (typename Running<T>::Type)x[at]; }
    GTAPE_INLINE Wide next(Wide before, long at) const {
        return before + (typename Running<T>::Type)x[at];
    }
};
template <typename T> struct Products : Sums<T> {
    typedef typename Running<T>::Type Wide;
    GTAPE_INLINE Wide next(Wide before, long at) const { return before * (Wide)this->x[at]; }
};
// log(e^a + e^b)
template <typename T> struct LogSums : Sums<T> {
    GTAPE_INLINE T next(T before, long at) const {
        const T x = this->x[at], top = larger(before, x), gap = before - x;
        const T tail = log1p(exp(-absolute(gap)));
        return before == x ? x + T(0.69314718055994530942) : nan_at(gap) ? gap : top + tail;
    }
};
// y[j] = b[j] + a[j] y[j - 1], where 0 times infinity is 0.
template <typename T> struct LinearSums {
    typedef T Element;
    typedef T Wide;
    const T *a, *b;
    GTAPE_INLINE T first(long at) const { return b[at]; }
    GTAPE_INLINE T next(T before, long at) const {
        return before == T(0) ? b[at] : b[at] + a[at] * before;
    }
};

template <typename How> struct Scan {
    How how;
    typename How::Element* out;
    Along along;
    bool reverse;
};

// A long sum in double precision. Four stretches are summed side by side, as a chain of additions
// waits for each of them, and then moved by what came before.
template <typename How> static void sum_in_chains(const Scan<How>& s, long start, long step) {
    typedef typename How::Wide W;
    typedef typename Running<typename How::Element>::Type N;
    constexpr long CHAINS = 4, EACH = 64;
    const long n = s.along.n;
    long at = s.reverse ? start + (n - 1) * s.along.inner : start, from = 0;
    W before = 0;
    for (; from + CHAINS * EACH <= n; from += CHAINS * EACH, at += CHAINS * EACH * step) {
        W sums[CHAINS][EACH], total[CHAINS] = {};
        for (long k = 0; k < EACH; k++)
#pragma GCC unroll 4
            for (long c = 0; c < CHAINS; c++)
                sums[c][k] = total[c] += s.how.first(at + (c * EACH + k) * step);
        for (long c = 0; c < CHAINS; c++) {
#pragma omp simd
            for (long k = 0; k < EACH; k++)
                s.out[at + (c * EACH + k) * step] = (N)(before + sums[c][k]);
            before += total[c];
        }
    }
    for (; from < n; from++, at += step) s.out[at] = (N)(before += s.how.first(at));
}

template <typename How> static void scan_part(void* given, int part, int parts) {
    typedef typename How::Wide W;
    typedef typename Running<typename How::Element>::Type N;
    const Scan<How>& s = *(const Scan<How>*)given;
    const long n = s.along.n, inner = s.along.inner;
    each_strip(s.along, part, parts, [&](long start, long width) {
        W total[STRIP];
        long at = s.reverse ? start + (n - 1) * inner : start;
        const long step = s.reverse ? -inner : inner;
        for (long c = 0; c < width; c++) s.out[at + c] = (N)(total[c] = s.how.first(at + c));
        if (width == 1 && sizeof(W) > sizeof(N)) {
            sum_in_chains(s, start, step);
            return;
        }
        if (width == 1) {
            W sum = total[0];
            for (long j = 1; j < n; j++) {
                at += step;
                s.out[at] = (N)(sum = s.how.next(sum, at));
            }
            return;
        }
        for (long j = 1; j < n; j++) {
            at += step;
#pragma omp simd
            for (long c = 0; c < width; c++)
                s.out[at + c] = (N)(total[c] = s.how.next(total[c], at + c));
        }
    });
}

template <typename How>
static void scan(const How& how, typename How::Element* out, long outer, long n, long inner,
                 bool reverse) {
    Scan<How> s = {how, out, {outer, n, inner}, reverse};
    if (outer * n * inner >= SHARED_ELEMENTS && s.along.tasks() > 1)
        gtape_parallel(scan_part<How>, &s, gtape_threads());
    else
        scan_part<How>(&s, 0, 1);
}

// ---------------------------------------------------------------- places of extremes

template <bool LARGEST, typename W> GTAPE_INLINE bool beats(W x, W best) {
    return (LARGEST ? x > best : x < best) || (x != x && best == best);
}

// The first place of the extreme of a row; a nan is more extreme than any number.
template <bool LARGEST, typename W, typename T> static inline long extreme_of(const T* x, long n) {
    constexpr long BLOCK = 64;
    W best = x[0];
    long at = 0;
    for (long from = 0; from < n; from += BLOCK) {
        const long end = n - from < BLOCK ? n : from + BLOCK;
        int any = 0;
#pragma omp simd reduction(|:any)
        for (long j = from; j < end; j++) any |= beats<LARGEST>((W)x[j], best);
        if (!any) continue;
        for (long j = from; j < end; j++)
            if (beats<LARGEST>((W)x[j], best)) {
                best = x[j];
                at = j;
            }
    }
    return at;
}

template <typename T, typename I> struct Extremes {
    const T* x;
    I* out;
    Along along;
};

template <bool LARGEST, typename T, typename I>
static void extreme_part(void* given, int part, int parts) {
    typedef typename Running<T>::Type W;
    const Extremes<T, I>& e = *(const Extremes<T, I>*)given;
    const long n = e.along.n, inner = e.along.inner;
    each_strip(e.along, part, parts, [&](long start, long width) {
        I* out = e.out + start / (n * inner) * inner + start % (n * inner);
        if (inner == 1) {
            *out = (I)extreme_of<LARGEST, W>(e.x + start, n);
            return;
        }
        W best[STRIP];
        int place[STRIP];
        for (long c = 0; c < width; c++) best[c] = e.x[start + c], place[c] = 0;
        for (long j = 1; j < n; j++) {
            const T* x = e.x + start + j * inner;
#pragma omp simd
            for (long c = 0; c < width; c++) {
                const bool better = beats<LARGEST>((W)x[c], best[c]);
                best[c] = better ? (W)x[c] : best[c];
                place[c] = better ? (int)j : place[c];
            }
        }
        for (long c = 0; c < width; c++) out[c] = (I)place[c];
    });
}

template <bool LARGEST, typename T, typename I>
static void extremes(const T* x, I* out, long outer, long n, long inner) {
    Extremes<T, I> e = {x, out, {outer, n, inner}};
    if (outer * n * inner >= SHARED_ELEMENTS && e.along.tasks() > 1)
        gtape_parallel(extreme_part<LARGEST, T, I>, &e, gtape_threads());
    else
        extreme_part<LARGEST, T, I>(&e, 0, 1);
}

}  // namespace gtape_cpu
