// Rows of a table written at an index, where an index may occur more than once.
//
// All places of one row form a chain, in order; every chain is written by one thread, so results
// do not depend on the number of threads. What NumPy's function combines before it meets the table
// is combined first here too.
#pragma once
#include "cpu_math_base.h"
#include "cpu_threads.h"

namespace gtape_cpu {

// The places of equal rows: `next` of each place or -1, and whether it is the first of its row.
struct Chains {
    int* next;
    bool* first;
};

// The bytes that `chained` needs for so many places: see gtape/compile/lowering/updates.py.
static inline long chain_slots(long count) {
    long slots = 8;
    while (slots < 2 * count) slots *= 2;
    return slots;
}

// Open addressing, with the latest place of each row seen.
template <typename I> static Chains chained(const I* rows, long count, char* memory) {
    const long slots = chain_slots(count);
    int* latest = (int*)memory;
    Chains made = {latest + slots, (bool*)(latest + slots + count)};
    __builtin_memset(latest, 0xff, sizeof(int) * (unsigned long)slots);
    for (long i = 0; i < count; i++) {
        const unsigned long long row = (unsigned long long)rows[i];
        long at = (long)((row * 0x9E3779B97F4A7C15ull >> 32) & (unsigned long long)(slots - 1));
        while (latest[at] >= 0 && (unsigned long long)rows[latest[at]] != row)
            at = (at + 1) & (slots - 1);
        made.first[i] = latest[at] < 0;
        if (latest[at] >= 0) made.next[latest[at]] = (int)i;
        made.next[i] = -1;
        latest[at] = (int)i;
    }
    return made;
}

// ---------------------------------------------------------------- what is done to a row

// `joined` combines values of one row, `written` the row with them.
struct Replaced {
    template <typename W> static GTAPE_INLINE W joined(W, W x) { return x; }
    template <typename W> static GTAPE_INLINE W written(W, W x) { return x; }
};
struct Added {
    template <typename W> static GTAPE_INLINE W joined(W a, W x) { return a + x; }
    template <typename W> static GTAPE_INLINE W written(W a, W x) { return a + x; }
};
struct Subtracted {
    template <typename W> static GTAPE_INLINE W joined(W a, W x) { return a + x; }
    template <typename W> static GTAPE_INLINE W written(W a, W x) { return a - x; }
};
struct Largest {
    template <typename W> static GTAPE_INLINE W joined(W a, W x) { return larger(a, x); }
    template <typename W> static GTAPE_INLINE W written(W a, W x) { return larger(a, x); }
};
struct Smallest {
    template <typename W> static GTAPE_INLINE W joined(W a, W x) { return smaller(a, x); }
    template <typename W> static GTAPE_INLINE W written(W a, W x) { return smaller(a, x); }
};
// As `Added` and `Subtracted`, where of equal rows only the last one counts.
struct LastAdded : Added {
    template <typename W> static GTAPE_INLINE W joined(W, W x) { return x; }
};
struct LastSubtracted : Subtracted {
    template <typename W> static GTAPE_INLINE W joined(W, W x) { return x; }
};

// What a row is computed in, and what several values of one row are combined in.
template <typename T> struct Computed { typedef T Type; };
template <> struct Computed<half> { typedef float Type; };
template <> struct Computed<bfloat16> { typedef float Type; };
template <typename T> struct Accumulated { typedef T Type; };
template <> struct Accumulated<half> { typedef double Type; };
template <> struct Accumulated<bfloat16> { typedef double Type; };
template <> struct Accumulated<float> { typedef double Type; };

template <typename T, typename I> struct RowUpdate {
    const T* x;
    const I* rows;
    T* table;
    long inner, count;
    Chains chains;
};

template <typename How, typename T, typename I>
static void update_part(void* given, int part, int parts) {
    typedef typename Accumulated<T>::Type W;
    typedef typename Computed<T>::Type C;
    constexpr long STRIP = 256, AHEAD = 8;
    const RowUpdate<T, I>& u = *(const RowUpdate<T, I>*)given;
    W sum[STRIP];
    const long lines = u.inner * (long)sizeof(T) < 512 ? u.inner * (long)sizeof(T) : 512;
    for (long i = u.count * part / parts; i < u.count * (part + 1) / parts; i++) {
        if (i + AHEAD < u.count)
            for (long at = 0; at < lines; at += 64)
                __builtin_prefetch((char*)(u.table + (long)u.rows[i + AHEAD] * u.inner) + at, 1);
        if (!u.chains.first[i]) continue;
        T* row = u.table + (long)u.rows[i] * u.inner;
        if (u.chains.next[i] < 0) {
            const T* x = u.x + i * u.inner;
#pragma omp simd
            for (long j = 0; j < u.inner; j++) row[j] = How::written((C)row[j], (C)x[j]);
            continue;
        }
        for (long from = 0; from < u.inner; from += STRIP) {
            const long width = u.inner - from < STRIP ? u.inner - from : STRIP;
            const T* x = u.x + i * u.inner + from;
#pragma omp simd
            for (long j = 0; j < width; j++) sum[j] = (W)x[j];
            for (long k = u.chains.next[i]; k >= 0; k = u.chains.next[k]) {
                x = u.x + k * u.inner + from;
#pragma omp simd
                for (long j = 0; j < width; j++) sum[j] = How::joined(sum[j], (W)x[j]);
            }
#pragma omp simd
            for (long j = 0; j < width; j++) {
                T joined;
                joined = (C)sum[j];
                row[from + j] = How::written((C)row[from + j], (C)joined);
            }
        }
    }
}

// table[rows[i], :] written with x[i, :]; the rows lie in the table.
template <typename How, typename T, typename I>
static void update_rows(const T* x, const I* rows, T* table, long inner, long count, char* memory) {
    RowUpdate<T, I> u = {x, rows, table, inner, count, chained(rows, count, memory)};
    if (count * inner >= 1 << 15)
        gtape_parallel(update_part<How, T, I>, &u, gtape_threads());
    else
        update_part<How, T, I>(&u, 0, 1);
}

// table[rows[i], :] = 0.
template <typename T, typename I>
static void clear_rows(const I* rows, T* table, long inner, long count) {
    for (long i = 0; i < count; i++)
        __builtin_memset(table + (long)rows[i] * inner, 0, sizeof(T) * (unsigned long)inner);
}

// out[i, :] = x[rows[i], :], and 0 where a later one is the same row.
template <typename T, typename I>
static void take_last(const T* x, const I* rows, T* out, long inner, long count, char* memory) {
    const Chains chains = chained(rows, count, memory);
    const unsigned long size = sizeof(T) * (unsigned long)inner;
    for (long i = 0; i < count; i++) {
        if (chains.next[i] < 0)
            __builtin_memcpy(out + i * inner, x + (long)rows[i] * inner, size);
        else
            __builtin_memset(out + i * inner, 0, size);
    }
}

}  // namespace gtape_cpu
