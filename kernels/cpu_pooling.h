// Max and average pooling over two spatial axes on CPUs: x [N, H, W, C], y [N, OH, OW, C].
//
//     max_pool:          y[o] = max over the taps k of x[place(o, k)]
//     max_pool_grad:     gx[i] = Σ g[o] over the windows o whose winner is i
//     max_pool_pick:     b[o] = a[winner of o], 0 where it is padding; the adjoint of the gradient
//     max_pool_index:    the place of the winner in the flattened image, or in the batch
//     average_pool:      y[o] = mean over the taps inside the input
//     average_pool_grad: its adjoint
//
// Padding never wins in max_pool, and a NaN always does. The winner of a window is its first tap
// that holds y or a NaN, else its last; padding counts as the lowest value there. Channels are
// taken in vectors. Gradients set every cell once where windows neither overlap nor leave cells
// out, and otherwise add to an image of zeros, window by window, so sums have a fixed order.
#pragma once
#include "cpu_windows.h"

namespace windows {

// For each vector of channels: f(its first channel, Constant<its lanes>), the widest first.
template <typename T, long C, long FIRST = 0, class F>
WINDOWS_INLINE void channels(const F& f) {
    constexpr long LEFT = C - FIRST, L = LEFT ? lanes<T>(LEFT) : 1, END = FIRST + LEFT / L * L;
    for (long c = FIRST; c < END; c += L) f(c, Constant<L>{});
    if constexpr (END < C) channels<T, C, END>(f);
}

template <typename T> constexpr bool is_floating = T(0.5) != T(0);
template <typename T> constexpr T lowest() {
    if constexpr (is_floating<T>) return -T(__builtin_inff());
    else if constexpr (T(-1) > T(0)) return T(0);
    else return T((T(1) << (8 * sizeof(T) - 2)) * -2);
}

template <typename T, long L> struct Lanes {
    typedef Vector<T, L> Values;
    typedef decltype(Values{} == Values{}) Truth;  // lanes of all ones or zeros; bool for one lane

    static Values load(const T* from) { return *(const Values*)from; }
    static void store(T* to, Values v) { *(Values*)to = v; }
    static Truth constant(bool t) {
        if constexpr (L == 1) return t;
        else return Truth{} == (Truth{} + !t);
    }
    static Values fill(T value) { return Values{} + value; }
    static Truth opposite(Truth t) { return t == Truth{}; }
    // Whether a cell would be the winner of its window if it came first.
    static Truth is_best(Values cell, Values best) { return (cell == best) | (cell != cell); }
    static Values larger(Values best, Values cell) {
        const Truth won = (cell > best) | (cell != cell);
        return won ? cell : best;
    }
};

template <typename T, class G> struct Pooling {
    typedef RowsOf<G> Rows;
    typedef ColumnsOf<G> Columns;
    static constexpr long C = G::C, TAPS = G::P * G::Q;
    static constexpr long X_ROW = G::W * C, X_IMAGE = G::H * X_ROW;
    static constexpr long LINES = G::N * G::OH, Y_ROW = G::OW * C, Y_IMAGE = G::OH * Y_ROW;
    static constexpr bool ALL_INSIDE = Rows::ALL_INSIDE && Columns::ALL_INSIDE;
    // Windows that share no cell can set cells instead of adding to them.
    static constexpr bool APART = (G::SH >= G::P || G::OH == 1) && (G::SW >= G::Q || G::OW == 1) &&
                                  G::DH == 1 && G::DW == 1;
    static constexpr bool COVERED = APART && (G::SH == G::P || G::OH == 1) &&
                                    (G::SW == G::Q || G::OW == 1) &&
                                    Rows::at(G::OH - 1, G::P) >= G::H &&
                                    Columns::at(G::OW - 1, G::Q) >= G::W;

    // One window: its place, and which taps lie inside.
    struct Window {
        long n, i, j, top, bottom, left, right;
        Window(long line, long column)
            : n(line / G::OH), i(line % G::OH), j(column), top(Rows::first_tap(i)),
              bottom(most(top, Rows::end_tap(i))), left(Columns::first_tap(j)),
              right(most(left, Columns::end_tap(j))) {}
        bool full() const { return (bottom - top) * (right - left) == TAPS; }
        long count() const { return most(1, (bottom - top) * (right - left)); }
        long output() const { return n * Y_IMAGE + i * Y_ROW + j * C; }
        long input(long p, long q) const {
            return n * X_IMAGE + Rows::at(i, p) * X_ROW + Columns::at(j, q) * C;
        }
        bool inside(long p, long q) const {
            return p >= top && p < bottom && q >= left && q < right;
        }
    };

    // f(window, Constant<whether all of its taps are known to lie inside>).
    template <class F> WINDOWS_INLINE static void windows_of(long first, long end, const F& f) {
        for (long line = first; line < end; ++line)
            for (long j = 0; j < G::OW; ++j) {
                const Window at(line, j);
                if constexpr (ALL_INSIDE) f(at, Constant<1>{});
                else if (at.full()) f(at, Constant<1>{});
                else f(at, Constant<0>{});
            }
    }

    // f(p, q) for the taps inside.
    template <bool FULL, class F> WINDOWS_INLINE static void taps(const Window& at, const F& f) {
        if constexpr (FULL && TAPS <= 16) {
            WINDOWS_UNROLL
            for (long p = 0; p < G::P; ++p) {
                WINDOWS_UNROLL
                for (long q = 0; q < G::Q; ++q) f(p, q);
            }
        } else {
            for (long p = at.top; p < at.bottom; ++p)
                for (long q = at.left; q < at.right; ++q) f(p, q);
        }
    }

    static void maximum(const T* x, T* y, long first, long end) {
        windows_of(first, end, [&](const Window& at, auto full) WINDOWS_INLINE_LAMBDA {
            constexpr bool FULL = full;
            channels<T, C>([&](long c, auto l) WINDOWS_INLINE_LAMBDA {
                typedef Lanes<T, l> V;
                auto best = V::fill(lowest<T>());
                taps<FULL>(at, [&](long p, long q) WINDOWS_INLINE_LAMBDA {
                    best = V::larger(best, V::load(x + at.input(p, q) + c));
                });
                V::store(y + at.output() + c, best);
            });
        });
    }

    // f(p, q, whether the tap is inside, for each lane whether it is the winner), for all taps.
    template <class V, bool FULL, class F>
    WINDOWS_INLINE static void winners(const Window& at, const T* x, const T* y, long c,
                                       const F& f) {
        const auto best = V::load(y + at.output() + c);
        auto missed = V::constant(true);
        auto visit = [&](long p, long q) WINDOWS_INLINE_LAMBDA {
            const bool inside = FULL || at.inside(p, q), last = p == G::P - 1 && q == G::Q - 1;
            const auto cell = inside ? V::load(x + at.input(p, q) + c) : V::fill(lowest<T>());
            const auto found = last ? V::constant(true) : V::is_best(cell, best);
            f(p, q, inside, missed & found);
            missed &= V::opposite(found);
        };
        if constexpr (FULL) return taps<true>(at, visit);
        for (long p = 0; p < G::P; ++p)
            for (long q = 0; q < G::Q; ++q) visit(p, q);
    }

    // gx of the images first, ..., end - 1, each cell set or added to by give(window, full, put);
    // put(p, q, c, Lanes, value).
    template <class F> WINDOWS_INLINE static void scatter(T* gx, long first, long end, const F& f) {
        if constexpr (!COVERED)
            __builtin_memset(gx + first * X_IMAGE, 0, (end - first) * X_IMAGE * sizeof(T));
        windows_of(first * G::OH, end * G::OH, [&](const Window& at, auto full)
                   WINDOWS_INLINE_LAMBDA {
            f(at, full, [&](long p, long q, long c, auto lanes, auto value) WINDOWS_INLINE_LAMBDA {
                typedef decltype(lanes) V;
                T* cell = gx + at.input(p, q) + c;
                if constexpr (APART) V::store(cell, value);
                else V::store(cell, V::load(cell) + value);
            });
        });
    }

    static void maximum_grad(const T* g, const T* x, const T* y, T* gx, long first, long end) {
        scatter(gx, first, end, [&](const Window& at, auto full, auto put) WINDOWS_INLINE_LAMBDA {
            constexpr bool FULL = full;
            channels<T, C>([&](long c, auto l) WINDOWS_INLINE_LAMBDA {
                typedef Lanes<T, l> V;
                const auto given = V::load(g + at.output() + c);
                winners<V, FULL>(at, x, y, c, [&](long p, long q, bool inside, auto won)
                                 WINDOWS_INLINE_LAMBDA {
                    if (inside) put(p, q, c, V{}, won ? given : V::fill(0));
                });
            });
        });
    }

    static void maximum_pick(const T* a, const T* x, const T* y, T* b, long first, long end) {
        windows_of(first, end, [&](const Window& at, auto full) WINDOWS_INLINE_LAMBDA {
            constexpr bool FULL = full;
            channels<T, C>([&](long c, auto l) WINDOWS_INLINE_LAMBDA {
                typedef Lanes<T, l> V;
                auto picked = V::fill(0);
                winners<V, FULL>(at, x, y, c, [&](long p, long q, bool inside, auto won)
                                 WINDOWS_INLINE_LAMBDA {
                    if (inside) picked = won ? V::load(a + at.input(p, q) + c) : picked;
                });
                V::store(b + at.output() + c, picked);
            });
        });
    }

    template <bool BATCH>
    static void maximum_index(const T* x, const T* y, long long* index, long first, long end) {
        windows_of(first, end, [&](const Window& at, auto full) WINDOWS_INLINE_LAMBDA {
            constexpr bool FULL = full;
            for (long c = 0; c < C; ++c)
                winners<Lanes<T, 1>, FULL>(at, x, y, c, [&](long p, long q, bool, bool won)
                                           WINDOWS_INLINE_LAMBDA {
                    const long origin = BATCH ? 0 : at.n * X_IMAGE;
                    if (won) index[at.output() + c] = at.input(p, q) + c - origin;
                });
        });
    }

    static void average(const T* x, T* y, long first, long end) {
        windows_of(first, end, [&](const Window& at, auto full) WINDOWS_INLINE_LAMBDA {
            constexpr bool FULL = full;
            const T count = T(FULL ? TAPS : at.count());
            channels<T, C>([&](long c, auto l) WINDOWS_INLINE_LAMBDA {
                typedef Lanes<T, l> V;
                auto total = V::fill(0);
                taps<FULL>(at, [&](long p, long q) WINDOWS_INLINE_LAMBDA {
                    total += V::load(x + at.input(p, q) + c);
                });
                V::store(y + at.output() + c, total / count);
            });
        });
    }

    static void average_grad(const T* g, T* gx, long first, long end) {
        scatter(gx, first, end, [&](const Window& at, auto full, auto put) WINDOWS_INLINE_LAMBDA {
            constexpr bool FULL = full;
            const T count = T(FULL ? TAPS : at.count());
            channels<T, C>([&](long c, auto l) WINDOWS_INLINE_LAMBDA {
                typedef Lanes<T, l> V;
                const auto share = V::load(g + at.output() + c) / count;
                taps<FULL>(at, [&](long p, long q) WINDOWS_INLINE_LAMBDA {
                    put(p, q, c, V{}, share);
                });
            });
        });
    }

    static constexpr double OPERATIONS = (double)LINES * Y_ROW * TAPS;
};

}  // namespace windows

template <typename T, class G> inline void max_pool(const T* x, T* y) {
    typedef windows::Pooling<T, G> Work;
    auto body = [&](long first, long end) { Work::maximum(x, y, first, end); };
    windows::parallel(body, Work::LINES, Work::OPERATIONS);
}

template <typename T, class G>
inline void max_pool_grad(const T* g, const T* x, const T* y, T* gx) {
    typedef windows::Pooling<T, G> Work;
    auto body = [&](long first, long end) { Work::maximum_grad(g, x, y, gx, first, end); };
    windows::parallel(body, G::N, 2 * Work::OPERATIONS);
}

template <typename T, class G>
inline void max_pool_pick(const T* a, const T* x, const T* y, T* b) {
    typedef windows::Pooling<T, G> Work;
    auto body = [&](long first, long end) { Work::maximum_pick(a, x, y, b, first, end); };
    windows::parallel(body, Work::LINES, 2 * Work::OPERATIONS);
}

// BATCH: places in the whole batch, not in one image.
template <typename T, class G, bool BATCH>
inline void max_pool_index(const T* x, const T* y, long long* index) {
    typedef windows::Pooling<T, G> Work;
    auto body = [&](long first, long end) {
        Work::template maximum_index<BATCH>(x, y, index, first, end);
    };
    windows::parallel(body, Work::LINES, 2 * Work::OPERATIONS);
}

template <typename T, class G> inline void average_pool(const T* x, T* y) {
    typedef windows::Pooling<T, G> Work;
    auto body = [&](long first, long end) { Work::average(x, y, first, end); };
    windows::parallel(body, Work::LINES, Work::OPERATIONS);
}

template <typename T, class G> inline void average_pool_grad(const T* g, T* gx) {
    typedef windows::Pooling<T, G> Work;
    auto body = [&](long first, long end) { Work::average_grad(g, gx, first, end); };
    windows::parallel(body, G::N, Work::OPERATIONS);
}
