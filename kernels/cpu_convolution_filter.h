// The gradient of a convolution in its filter on CPUs, the adjoint of cpu_convolution.h in k:
//
//     gk[p, q, c, o] = Σ x[n, i SH + p DH - TOP, j SW + q DW - LEFT, c] gy[n, i, j, o]
//
// A block of gk, some taps and channels by some vectors of o, stays in registers while outputs pass
// by: a step loads vectors of gy and multiplies them by numbers of x, or the other way round where
// O does not fill a vector. Filters of few channels have blocks of all columns, or of all taps: a
// block needs enough independent sums to hide the latency of an addition. Rows of outputs are split
// into PARTS, and blocks are work units of their own within them; the parts are added in order, so
// the result does not depend on the number of threads.
#pragma once
#include "cpu_windows.h"

namespace windows {

template <typename T, class G> struct FilterGradient {
    typedef RowsOf<G> Rows;
    typedef ColumnsOf<G> Columns;
    static constexpr long C = G::C, O = G::O, P = G::P, Q = G::Q;
    // The channels of one side are taken in vectors, those of the other one by one.
    static constexpr bool SWAPPED = lanes<T>(O) == 1 && lanes<T>(C) > 1;
    static constexpr long WIDE = SWAPPED ? C : O, ONES = SWAPPED ? O : C;
    static constexpr long L = lanes<T>(WIDE), VECTORS = ceil_div(WIDE, L);
    static constexpr long SUMS = REGISTERS == 32 ? 27 : 12;
    typedef Vector<T, L> Lanes;

    // A block is PB rows of taps, QB columns of taps, S single channels and V vectors.
    static constexpr bool ALL = P * Q * ONES <= SUMS, ROW = Q * ONES <= SUMS;
    static constexpr long PB = ALL ? P : 1, QB = ROW ? Q : 1;
    static constexpr long V = least(VECTORS, ROW ? most(1, SUMS / (PB * Q * ONES)) : 2);
    static constexpr long S_BLOCKS = ROW ? 1 : ceil_div(ONES, SUMS / V);
    static constexpr long S = ceil_div(ONES, S_BLOCKS), V_BLOCKS = ceil_div(VECTORS, V);
    static constexpr long BLOCKS = P / PB * (Q / QB) * S_BLOCKS * V_BLOCKS;
    // The first channel of vector v within its block, and of a block of vectors.
    static constexpr long channel(long v) { return least(v * L, WIDE - L); }
    static constexpr long first_channel(long block) {
        return V_BLOCKS == 1 ? 0 : least(block * V * L, WIDE - V * L);
    }

    static constexpr long X_ROW = Columns::IN * C, X_IMAGE = Rows::IN * X_ROW;
    static constexpr long Y_ROW = Columns::OUT * O, LINES = G::N * Rows::OUT;
    // Output rows that stay, with the inputs they see, in the first cache for all blocks.
    static constexpr long ROW_BYTES = (Y_ROW + Rows::STEP * X_ROW) * (long)sizeof(T);
    static constexpr long CHUNK = most(1, (1 << 15) / ROW_BYTES);
    static constexpr long PARTS = least(LINES, ceil_div(64, BLOCKS));

    // What a part sums up: [V_BLOCKS][P][Q][ONES][V][L]. In gk itself the overlap of the last
    // vectors would be added twice.
    static constexpr long SIZE = V_BLOCKS * P * Q * ONES * V * L;
    static constexpr bool DIRECT = PARTS == 1 && V_BLOCKS == 1 && O == V * L && !SWAPPED;

    struct Block {
        long p, q, single, singles, vectors;
        explicit Block(long number) {
            vectors = number % V_BLOCKS, number /= V_BLOCKS;
            single = number % S_BLOCKS * S, number /= S_BLOCKS;
            q = number % (Q / QB) * QB, p = number / (Q / QB) * PB;
            singles = least(S, ONES - single);
        }
    };

    // Adds the products of one output: gy there, x at tap 0 of its window, both at the block's
    // first channels; see(p, q): whether a tap lies inside.
    template <long SINGLES, class See>
    WINDOWS_INLINE static void add_output(const T* x, const T* gy, const See& see,
                                          Lanes (&sums)[PB][QB][SINGLES][V]) {
        Lanes vectors[V];
        if constexpr (!SWAPPED) load(gy, vectors);
        WINDOWS_UNROLL
        for (long p = 0; p < PB; ++p) {
            WINDOWS_UNROLL
            for (long q = 0; q < QB; ++q) {
                if (!see(p, q)) continue;
                const T* cell = x + p * Rows::GAP * X_ROW + q * Columns::GAP * C;
                if constexpr (SWAPPED) load(cell, vectors);
                WINDOWS_UNROLL
                for (long s = 0; s < SINGLES; ++s) {
                    const T single = SWAPPED ? gy[s] : cell[s];
                    WINDOWS_UNROLL
                    for (long v = 0; v < V; ++v) {
                        WINDOWS_FUSED
                        sums[p][q][s][v] += single * vectors[v];
                    }
                }
            }
        }
    }
    WINDOWS_INLINE static void load(const T* from, Lanes (&vectors)[V]) {
        WINDOWS_UNROLL
        for (long v = 0; v < V; ++v) vectors[v] = *(const Lanes*)(from + channel(v));
    }

    // One row i of outputs; x and gy at the image, at the block's first channels.
    template <long SINGLES>
    WINDOWS_INLINE static void add_row(const T* x, const T* gy, long i, const Block& at,
                                       Lanes (&sums)[PB][QB][SINGLES][V]) {
        const T* xi = x + Rows::at(i, at.p) * X_ROW + Columns::at(0, at.q) * C;
        const T* yi = gy + i * Y_ROW;
        auto outputs = [&](long j, long end, auto see) __attribute__((always_inline)) {
            for (; j < end; ++j)
                add_output<SINGLES>(xi + j * Columns::STEP * C, yi + j * O,
                                     [&](long p, long q) { return see(j, p, q); }, sums);
        };
        auto all = [](long, long, long) { return true; };
        auto inside = [&](long j, long p, long q) {
            return Rows::inside(i, at.p + p) && Columns::inside(j, at.q + q);
        };
        const long first = Columns::first_output(at.q);
        const long end = most(first, Columns::end_output(at.q + QB - 1));
        if (PB > 1 && !(Rows::inside(i, 0) && Rows::inside(i, P - 1)))
            return outputs(0, Columns::OUT, inside);
        if (QB == 1) return outputs(first, end, all);
        outputs(0, Columns::INNER, inside);
        outputs(Columns::INNER, Columns::INNER_END, all);
        outputs(Columns::INNER_END, Columns::OUT, inside);
    }

    // Adds a block's sums over the rows line, ..., end - 1 of all images; sets them if `fresh`.
    template <long SINGLES>
    WINDOWS_MULTIPLY_ADD __attribute__((noinline)) static void add_lines(
        const T* x, const T* gy, T* total, long line, long end, const Block& at, bool fresh) {
        Lanes sums[PB][QB][SINGLES][V] = {};
        while (line < end) {
            const long n = line / Rows::OUT, start = n * Rows::OUT;
            const long stop = least(Rows::OUT, end - start);
            const long last = PB > 1 ? stop : least(stop, Rows::end_output(at.p));
            long i = line - start;
            if (PB == 1) i = most(i, Rows::first_output(at.p));
            for (; i < last; ++i)
                add_row<SINGLES>(x + n * X_IMAGE, gy + n * Rows::OUT * Y_ROW, i, at, sums);
            line = start + stop;
        }
        WINDOWS_UNROLL
        for (long p = 0; p < PB; ++p) {
            WINDOWS_UNROLL
            for (long q = 0; q < QB; ++q) {
                WINDOWS_UNROLL
                for (long s = 0; s < SINGLES; ++s) {
                    WINDOWS_UNROLL
                    for (long v = 0; v < V; ++v) {
                        Lanes& place = *(Lanes*)(total + (((p * Q + q) * ONES + s) * V + v) * L);
                        place = fresh ? sums[p][q][s][v] : place + sums[p][q][s][v];
                    }
                }
            }
        }
    }

    static void block(const T* x, const T* gy, T* total, long line, long end, const Block& at,
                      bool fresh) {
        const long vector = first_channel(at.vectors);
        x += SWAPPED ? vector : at.single;
        gy += SWAPPED ? at.single : vector;
        total += (((at.vectors * P + at.p) * Q + at.q) * ONES + at.single) * V * L;
        if (at.singles == S) return add_lines<S>(x, gy, total, line, end, at, fresh);
        constexpr long REST = ONES - (S_BLOCKS - 1) * S;
        if constexpr (REST != S) add_lines<REST>(x, gy, total, line, end, at, fresh);
    }

    // The units of work first, ..., end - 1: a block of a part each.
    static void blocks(const T* x, const T* gy, T* parts, long first, long end) {
        while (first < end) {
            const long part = first / BLOCKS, start = part * BLOCKS;
            const long stop = least(BLOCKS, end - start);
            const long top = LINES * part / PARTS, bottom = LINES * (part + 1) / PARTS;
            for (long line = top; line < bottom; line += CHUNK)
                for (long number = first - start; number < stop; ++number)
                    block(x, gy, parts + part * SIZE, line, least(line + CHUNK, bottom),
                          Block(number), line == top);
            first = start + stop;
        }
    }

    // gk from the parts, for the taps first, ..., end - 1.
    static void combine(const T* parts, T* gk, long first, long end) {
        for (long block = 0; block < V_BLOCKS; ++block)
            for (long k = first * ONES; k < end * ONES; ++k)
                for (long v = 0; v < V; ++v) {
                    const T* sums = parts + ((block * P * Q * ONES + k) * V + v) * L;
                    Lanes total = *(const Lanes*)sums;
                    for (long part = 1; part < PARTS; ++part)
                        total += *(const Lanes*)(sums + part * SIZE);
                    const long place = first_channel(block) + channel(v);
                    if constexpr (SWAPPED) {
                        T* to = gk + (k / O * C + place) * O + k % O;
                        for (long l = 0; l < L; ++l) to[l * O] = total[l];
                    } else {
                        *(Lanes*)(gk + k * O + place) = total;
                    }
                }
    }
};

}  // namespace windows

// Elements of T that convolution_filter_grad needs as scratch.
template <typename T, class G>
constexpr long convolution_filter_grad_scratch =
    windows::FilterGradient<T, G>::DIRECT
        ? 0 : windows::FilterGradient<T, G>::PARTS * windows::FilterGradient<T, G>::SIZE;

template <typename T, class G>
inline void convolution_filter_grad(const T* x, const T* gy, T* gk, T* scratch) {
    typedef windows::FilterGradient<T, G> Work;
    constexpr double OPERATIONS = (double)Work::LINES * G::OW * G::O * G::P * G::Q * G::C;
    T* parts = Work::DIRECT ? gk : scratch;
    auto body = [&](long first, long end) { Work::blocks(x, gy, parts, first, end); };
    windows::parallel(body, Work::PARTS * Work::BLOCKS, OPERATIONS);
    if constexpr (!Work::DIRECT) {
        auto add = [&](long first, long end) { Work::combine(parts, gk, first, end); };
        windows::parallel(add, G::P * G::Q, (double)Work::PARTS * Work::SIZE);
    }
}
