// Rows picked by index, rows added at an index, and tests of indices.
#pragma once
#include "cpu_threads.h"

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
        if (g.zeros && at < 0)
            __builtin_memset(out, 0, sizeof(T) * (unsigned long)g.inner);
        else
            __builtin_memcpy(out, g.table + (r / g.count * g.rows + at) * g.inner,
                             sizeof(T) * (unsigned long)g.inner);
    }
}

// out[o, i, :] = table[o, indices[i], :]; where `zeros`, rows of negative indices are zeros.
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
