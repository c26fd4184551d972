// Rows picked by index, rows added at an index, and tests of indices.
#pragma once
#include "cpu_math_base.h"
#include "cpu_threads.h"

namespace gtape_cpu {

// Whether all indices lie in [low, limit).
template <typename I>
static bool all_within(const I* indices, long count, long low, long limit) {
    bool good = true;
    for (long i = 0; i < count; i++) good &= (long)indices[i] >= low && (long)indices[i] < limit;
    return good;
}

template <typename T, typename I> struct Gather {
    const T* table;
    const I* indices;
    T* out;
    long outer, rows, inner, count;
    bool zeros;
};

template <typename T, typename I> static void gather_part(void* given, int part, int parts) {
    const Gather<T, I>& g = *(const Gather<T, I>*)given;
    const long all = g.outer * g.count;
    for (long r = all * part / parts; r < all * (part + 1) / parts; r++) {
        const long at = (long)g.indices[r % g.count];
        T* out = g.out + r * g.inner;
        if (g.zeros && (at < 0 || at >= g.rows))
            __builtin_memset(out, 0, sizeof(T) * (unsigned long)g.inner);
        else
            __builtin_memcpy(out, g.table + (r / g.count * g.rows + at) * g.inner,
                             sizeof(T) * (unsigned long)g.inner);
    }
}

// out[o, i, :] = table[o, indices[i], :]; where `zeros`, indices out of range give zeros.
template <typename T, typename I>
static void gather_rows(const T* table, const I* indices, T* out, long outer, long rows, long inner,
                        long count, bool zeros) {
    Gather<T, I> g = {table, indices, out, outer, rows, inner, count, zeros};
    if (outer * count * inner >= 1 << 15)
        gtape_parallel(gather_part<T, I>, &g, gtape_threads());
    else
        gather_part<T, I>(&g, 0, 1);
}

template <typename T, typename I> struct Scatter {
    const T* x;
    const I* indices;
    T* out;
    long rows, inner, count;
    T sign;
    bool clear;
};

// Every part owns a range of rows and adds what belongs there, in the order of the indices.
template <typename T, typename I> static void scatter_part(void* given, int part, int parts) {
    const Scatter<T, I>& s = *(const Scatter<T, I>*)given;
    const long begin = s.rows * part / parts, end = s.rows * (part + 1) / parts;
    if (s.clear)
        __builtin_memset(s.out + begin * s.inner, 0,
                         sizeof(T) * (unsigned long)((end - begin) * s.inner));
    for (long i = 0; i < s.count; i++) {
        const long at = (long)s.indices[i];
        if (at < begin || at >= end) continue;
        T* out = s.out + at * s.inner;
        const T* x = s.x + i * s.inner;
#pragma omp simd
        for (long j = 0; j < s.inner; j++) out[j] += s.sign * x[j];
    }
}

// out[indices[i], :] += sign x[i, :], with out cleared first where `clear`; rows out of range are
// dropped.
template <typename T, typename I>
static void scatter_rows(const T* x, const I* indices, T* out, long rows, long inner, long count,
                         T sign, bool clear) {
    Scatter<T, I> s = {x, indices, out, rows, inner, count, sign, clear};
    if (count * inner >= 1 << 15 || (clear && rows * inner >= 1 << 17))
        gtape_parallel(scatter_part<T, I>, &s, gtape_threads());
    else
        scatter_part<T, I>(&s, 0, 1);
}

template <typename I> struct WideScatter {
    const float* x;
    const I* indices;
    float* out;
    double* sums;
    long rows, inner, count;
};

template <typename I> static void wide_scatter_part(void* given, int part, int parts) {
    const WideScatter<I>& s = *(const WideScatter<I>*)given;
    const long begin = s.rows * part / parts, end = s.rows * (part + 1) / parts;
    for (long j = begin * s.inner; j < end * s.inner; j++) s.sums[j] = 0;
    for (long i = 0; i < s.count; i++) {
        const long at = (long)s.indices[i];
        if (at < begin || at >= end) continue;
        double* sum = s.sums + at * s.inner;
        const float* x = s.x + i * s.inner;
#pragma omp simd
        for (long j = 0; j < s.inner; j++) sum[j] += x[j];
    }
#pragma omp simd
    for (long j = begin * s.inner; j < end * s.inner; j++) s.out[j] = (float)s.sums[j];
}

// out[r, :] = the sum of x[i, :] over indices[i] = r, added up in `sums`.
template <typename I>
static void scatter_wide(const float* x, const I* indices, float* out, double* sums, long rows,
                         long inner, long count) {
    WideScatter<I> s = {x, indices, out, sums, rows, inner, count};
    if (count * inner >= 1 << 15)
        gtape_parallel(wide_scatter_part<I>, &s, gtape_threads());
    else
        wide_scatter_part<I>(&s, 0, 1);
}

// ---------------------------------------------------------------- index tuples

// The row numbers of index tuples over axes of these lengths; false where one is outside.
template <long... LENGTHS, typename I>
static bool flat_rows(const I* tuples, long long* rows, long count) {
    constexpr long lengths[] = {LENGTHS...}, depth = sizeof...(LENGTHS);
    bool good = true;
    for (long i = 0; i < count; i++) {
        long row = 0;
        for (long k = 0; k < depth; k++) {
            const long at = (long)tuples[i * depth + k];
            good &= at >= 0 && at < lengths[k];
            row = row * lengths[k] + at;
        }
        rows[i] = row;
    }
    return good;
}

// Indices that count from the end where they are negative; false where one is outside.
template <typename I> static bool wrapped_rows(const I* given, long long* rows, long count,
                                               long length) {
    bool good = true;
    for (long i = 0; i < count; i++) {
        const long at = (long)given[i];
        good &= at >= -length && at < length;
        rows[i] = at < 0 ? at + length : at;
    }
    return good;
}

// ---------------------------------------------------------------- along rows

// out[r, j] = x[r, indices[r, j]] for indices in [-n, n).
template <typename T, typename I>
static void take_along(const T* x, const I* indices, T* out, long rows, long n, long count) {
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < count; j++) {
            const long at = (long)indices[r * count + j];
            out[r * count + j] = x[r * n + (at < 0 ? at + n : at)];
        }
}

// Rows of n zeros with out[r, indices[r, j]] = x[r, j].
template <typename T, typename I>
static void put_along(const T* x, const I* indices, T* out, long rows, long n, long count) {
    __builtin_memset(out, 0, sizeof(T) * (unsigned long)(rows * n));
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < count; j++) {
            const long at = (long)indices[r * count + j];
            out[r * n + (at < 0 ? at + n : at)] = x[r * count + j];
        }
}

// out[b, t, :] = x[b, lengths[b] - 1 - t, :] for t < lengths[b], else x[b, t, :].
template <typename T, typename I>
static void reverse_starts(const T* x, const I* lengths, T* out, long batch, long steps,
                           long inner) {
    for (long r = 0; r < batch * steps; r++) {
        const long b = r / steps, t = r % steps, length = (long)lengths[b];
        const long from = t < length ? length - 1 - t : t;
        __builtin_memcpy(out + r * inner, x + (b * steps + from) * inner,
                         sizeof(T) * (unsigned long)inner);
    }
}

// ---------------------------------------------------------------- segments

// out[s] = how many indices are s, at least `least`; others are not counted.
template <typename I, typename T>
static void count_indices(const I* indices, T* out, long count, long segments, int least) {
    for (long s = 0; s < segments; s++) out[s] = T(0);
    for (long i = 0; i < count; i++) {
        const long at = (long)indices[i];
        if (at >= 0 && at < segments) out[at] = out[at] + T(1);
    }
    for (long s = 0; s < segments; s++)
        if (out[s] < T(least)) out[s] = T(least);
}

template <typename T, typename I> struct SegmentExtremes {
    const T* x;
    const I* ids;
    T* out;
    bool* seen;
    long segments, inner, count;
    T empty;
};

// Every part owns a range of segments, and meets their rows in order.
template <bool LARGEST, typename T, typename I>
static void segment_extremes_part(void* given, int part, int parts) {
    const SegmentExtremes<T, I>& s = *(const SegmentExtremes<T, I>*)given;
    const long begin = s.segments * part / parts, end = s.segments * (part + 1) / parts;
    for (long at = begin; at < end; at++) s.seen[at] = false;
    for (long i = 0; i < s.count; i++) {
        const long at = (long)s.ids[i];
        if (at < begin || at >= end) continue;
        T* out = s.out + at * s.inner;
        const T* x = s.x + i * s.inner;
        if (!s.seen[at])
            __builtin_memcpy(out, x, sizeof(T) * (unsigned long)s.inner);
        else
#pragma omp simd
            for (long j = 0; j < s.inner; j++)
                out[j] = LARGEST ? larger(out[j], x[j]) : smaller(out[j], x[j]);
        s.seen[at] = true;
    }
    for (long at = begin; at < end; at++)
        if (!s.seen[at])
            for (long j = 0; j < s.inner; j++) s.out[at * s.inner + j] = s.empty;
}

// out[s, :] = the extremes of x[i, :] with ids[i] = s, and `empty` where there are none.
template <bool LARGEST, typename T, typename I>
static void segment_extremes(const T* x, const I* ids, T* out, long segments, long inner,
                             long count, T empty, char* memory) {
    SegmentExtremes<T, I> s = {x, ids, out, (bool*)memory, segments, inner, count, empty};
    if (count * inner >= 1 << 15)
        gtape_parallel(segment_extremes_part<LARGEST, T, I>, &s, gtape_threads());
    else
        segment_extremes_part<LARGEST, T, I>(&s, 0, 1);
}

}  // namespace gtape_cpu
