// Convolution of two spatial axes on CPUs: x [N, H, W, C], k [P, Q, C, O], y [N, OH, OW, O].
//
//     convolution: y[n, i, j, o] = Σ x[n, i SH + p DH - TOP, j SW + q DW - LEFT, c] k[p, q, c, o]
//     convolution_input_grad: its adjoint in x, as convolutions of gy with the transposed filter
//
// Direct: a tile of neighbouring outputs is kept in registers while all taps and channels pass by;
// a step loads the filter for some vectors of output channels and multiplies it by one number of
// each output's window. Where the output channels do not fill a vector, vectors of input channels
// are multiplied, and summed up across their lanes at the end. No zero is multiplied: taps in the
// padding are left out, in columns by instantiating the first and the last tile of a row apart. The
// input gradient of a stride S splits into S^2 phases: inputs r with equal r mod S see the same
// taps, so each phase is a convolution of stride 1 with every S-th tap (Dumoulin & Visin 2016, "A
// guide to convolution arithmetic for deep learning", arXiv:1603.07285).
#pragma once
#include "cpu_windows.h"

namespace windows {

// An axis of a correlation: tap t is number TAP + t TAP_STEP of the filter, and output o is stored
// at PLACE + o PLACE_STEP of LENGTH.
template <class A, long TAP_, long TAP_STEP_, long PLACE_, long PLACE_STEP_, long LENGTH_>
struct Sweep : A {
    static constexpr long TAP = TAP_, TAP_STEP = TAP_STEP_, PLACE = PLACE_,
                          PLACE_STEP = PLACE_STEP_, LENGTH = LENGTH_;
    static constexpr long tap(long t) { return TAP + t * TAP_STEP; }
    static constexpr long place(long o) { return PLACE + o * PLACE_STEP; }
};
template <class A> using Forward = Sweep<A, 0, 1, 0, 1, A::OUT>;

template <typename T, long L> WINDOWS_INLINE T sum_across(Vector<T, L> v) {
    if constexpr (L == 1) return v;
    else {
        Vector<T, L / 2> halves[2];
        __builtin_memcpy(halves, &v, sizeof v);
        return sum_across<T, L / 2>(halves[0] + halves[1]);
    }
}

struct Identity {
    template <typename T> T operator()(T value, long) const { return value; }
};
template <class E> constexpr bool is_identity = false;
template <> constexpr bool is_identity<Identity> = true;

// y[n, place(i), place(j), o] = Σ x[n, at(i, t), at(j, u), c] k[tap(t), tap(u), c, o]; k has rows
// of Q taps, C and O are the channels of x and y. If ACROSS, k is [P, Q, O, C].
template <typename T, class Rows, class Columns, long N, long Q, long C, long O>
struct Correlation {
    static constexpr bool ACROSS = lanes<T>(O) == 1 && lanes<T>(C) > 1;
    static constexpr long L = lanes<T>(ACROSS ? C : O), VECTORS = ACROSS ? O : ceil_div(O, L);
    // Vectors per block: the more, the fewer numbers of x are loaded for each product.
    static constexpr long V = VECTORS == 3 ? 3 : least(VECTORS, VECTOR_BYTES == 16 ? 4 : 2);
    static constexpr long BLOCKS = ceil_div(VECTORS, V);
    static constexpr long SUMS = REGISTERS == 32 ? 28 : 12;
    // Columns per tile, all tiles alike: the last one overlaps the one before it.
    static constexpr long TILES = ceil_div(Columns::OUT, most(1, SUMS / V));
    static constexpr long TILE = ceil_div(Columns::OUT, most(1, TILES));
    // Short rows: the same tile of several images.
    static constexpr long IMAGES = divisor(N, SUMS / most(1, V * TILE));
    static constexpr long X_ROW = Columns::IN * C, X_IMAGE = Rows::IN * X_ROW;
    static constexpr long Y_ROW = Columns::LENGTH * O, Y_IMAGE = Rows::LENGTH * Y_ROW;
    static constexpr long INSIDE = -1, GUARDED = -2;  // otherwise J is the tile's first column
    typedef Vector<T, L> Lanes;

    static constexpr long tile_start(long tile) { return least(tile * TILE, Columns::OUT - TILE); }
    static constexpr bool is_inside(long j) {
        return j >= Columns::INNER && j + TILE <= Columns::INNER_END;
    }
    // The first channel of vector v within its block, and of a block: the last ones overlap those
    // before.
    static constexpr long channel(long v) { return ACROSS ? v : least(v * L, O - L); }
    static constexpr long first_channel(long block) {
        return BLOCKS == 1 ? 0 : least(block * V * L, O - V * L);
    }
    static constexpr long WIDTH = BLOCKS == 1 ? O : V * L;

    // Adds the products of one step: filter has a vector for each of V sums, value(at) is a number
    // or a vector of the window `at` numbers after the tile's first.
    template <long J, class Value>
    WINDOWS_INLINE static void add_products(const Lanes (&filter)[V], long j, long u,
                                            Lanes (&sums)[IMAGES][TILE][V], const Value& value) {
        WINDOWS_UNROLL
        for (long n = 0; n < IMAGES; ++n) {
            WINDOWS_UNROLL
            for (long i = 0; i < TILE; ++i) {
                if (J != INSIDE && !Columns::inside(j + i, u)) continue;
                const auto factor = value(n * X_IMAGE + i * Columns::STEP * C);
                WINDOWS_UNROLL
                for (long v = 0; v < V; ++v) {
                    WINDOWS_FUSED
                    sums[n][i][v] += factor * filter[v];
                }
            }
        }
    }

    // Adds one column tap u of one row tap: x at the tile's first window, k at the tap.
    template <long J>
    WINDOWS_INLINE static void add_tap(const T* x, const T* k, long j, long u,
                                       Lanes (&sums)[IMAGES][TILE][V]) {
        Lanes filter[V];
        if constexpr (!ACROSS) {
            for (long c = 0; c < C; ++c) {
                WINDOWS_UNROLL
                for (long v = 0; v < V; ++v) filter[v] = *(const Lanes*)(k + c * O + channel(v));
                add_products<J>(filter, j, u, sums, [&](long at) { return x[at + c]; });
            }
        } else {
            for (long c = 0; c + L <= C; c += L) {
                WINDOWS_UNROLL
                for (long v = 0; v < V; ++v) filter[v] = *(const Lanes*)(k + v * C + c);
                add_products<J>(filter, j, u, sums,
                                [&](long at) { return *(const Lanes*)(x + at + c); });
            }
            if constexpr (C % L != 0) {
                WINDOWS_UNROLL
                for (long v = 0; v < V; ++v) filter[v] = rest(k + v * C);
                add_products<J>(filter, j, u, sums, [&](long at) { return rest(x + at); });
            }
        }
    }
    // The last L of C numbers, 0 for those that whole vectors have.
    WINDOWS_INLINE static Lanes rest(const T* from) {
        Lanes last = *(const Lanes*)(from + C - L);
        WINDOWS_UNROLL
        for (long i = 0; i < L - C % L; ++i) last[i] = 0;
        return last;
    }

    // The tile at column j for the row taps t, ..., end - 1; x at row 0 column 0 of tap 0.
    template <long J>
    WINDOWS_MULTIPLY_ADD __attribute__((noinline)) static void tile(
        const T* x, const T* k, T* y, long column, long t, long end) {
        const long j = J >= 0 ? J : column;
        Lanes sums[IMAGES][TILE][V] = {};
        for (; t < end; ++t) {
            const T* xt = x + t * Rows::GAP * X_ROW + Columns::at(j, 0) * C;
            const T* kt = k + Rows::tap(t) * Q * C * O;
            if constexpr (J >= 0 || (J == INSIDE && Columns::TAPS * C <= 32)) {
                unrolled<Columns::TAPS>([&](auto u) WINDOWS_INLINE_LAMBDA {
                    const T* xu = opaque(xt + u * Columns::GAP * C);
                    add_tap<J>(xu, kt + Columns::tap(u) * C * O, j, u, sums);
                });
            } else {
                for (long u = 0; u < Columns::TAPS; ++u)
                    add_tap<J>(xt + u * Columns::GAP * C, kt + Columns::tap(u) * C * O, j, u, sums);
            }
        }
        WINDOWS_UNROLL
        for (long n = 0; n < IMAGES; ++n) {
            WINDOWS_UNROLL
            for (long i = 0; i < TILE; ++i) {
                WINDOWS_UNROLL
                for (long v = 0; v < V; ++v) {
                    T* to = y + n * Y_IMAGE + i * Columns::PLACE_STEP * O + channel(v);
                    if constexpr (ACROSS) *to = sum_across<T, L>(sums[n][i][v]);
                    else *(Lanes*)to = sums[n][i][v];
                }
            }
        }
    }

    // Applied in a pass of its own, while the tile is in the first cache: `tile` contracts sums of
    // products, which E must not be subject to.
    template <class E> static void finish(T* y, long channel, const E& epilogue) {
        for (long n = 0; n < IMAGES; ++n)
            for (long i = 0; i < TILE; ++i) {
                T* values = y + n * Y_IMAGE + i * Columns::PLACE_STEP * O;
                for (long o = 0; o < WIDTH; ++o)
                    values[o] = epilogue(values[o], channel + o);
            }
    }

    // A tile that is neither the first nor the last of its row.
    static void inner(const T* x, const T* k, T* y, long j, long t, long end) {
        if constexpr (is_inside(tile_start(1)) && is_inside(tile_start(TILES - 2)))
            return tile<INSIDE>(x, k, y, j, t, end);
        if (is_inside(j)) tile<INSIDE>(x, k, y, j, t, end);
        else tile<GUARDED>(x, k, y, j, t, end);
    }

    // One row i of IMAGES images: x, y at the first image, k at the block's first channel.
    template <class E>
    static void row(const T* x, const T* k, T* y, long i, long first, const E& epilogue) {
        const T* xi = x + Rows::at(i, 0) * X_ROW;
        T* yi = y + Rows::place(i) * Y_ROW + first;
        const long t = Rows::first_tap(i), end = Rows::end_tap(i);
        auto place = [&](long j) { return yi + Columns::place(j) * O; };
        auto done = [&](long j) {
            if constexpr (!is_identity<E>) finish(place(j), first, epilogue);
        };
        auto edge = [&](auto tile_number) {
            constexpr long J = tile_start(tile_number);
            constexpr long KIND = is_inside(J) ? INSIDE : Columns::TAPS <= 8 ? J : GUARDED;
            tile<KIND>(xi, k, place(J), J, t, end);
            done(J);
        };
        edge(Constant<0>{});
        for (long number = 1; TILES > 2 && number < TILES - 1; ++number) {
            const long j = tile_start(number);
            if constexpr (TILES > 2) inner(xi, k, place(j), j, t, end);
            done(j);
        }
        if constexpr (TILES > 1) edge(Constant<TILES - 1>{});
    }

    // The units of work first, ..., end - 1: a row of IMAGES images each.
    static constexpr long UNITS = N / IMAGES * Rows::OUT;
    template <class E>
    static void rows(const T* x, const T* k, T* y, long first, long end, const E& epilogue) {
        while (first < end) {
            const long images = first / Rows::OUT, i = first % Rows::OUT;
            const long stop = least(Rows::OUT, i + end - first);
            for (long block = 0; block < BLOCKS; ++block)
                for (long at = i; at < stop; ++at)
                    row(x + images * IMAGES * X_IMAGE, k + first_channel(block),
                        y + images * IMAGES * Y_IMAGE, at, first_channel(block), epilogue);
            first += stop - i;
        }
    }
};

// The inputs r with r mod STRIDE == PHASE, as outputs of a correlation over the gradient of a
// convolution's axis with these sizes. They see every FREE-th tap; numbered from the last, so that
// the places in the gradient grow.
template <class A, long PHASE> struct PhaseAxis {
    static constexpr long COMMON = gcd(A::STEP, A::GAP), FREE = A::STEP / COMMON;
    static constexpr long offset(long tap) { return PHASE - A::BASE - tap * A::GAP; }
    static constexpr long first() {
        for (long tap = 0; tap < A::TAPS; ++tap)
            if (offset(tap) % A::STEP == 0) return tap;
        return A::TAPS;
    }
    static constexpr long TAPS = ceil_div(A::TAPS - first(), FREE);
    static constexpr long LAST = TAPS ? first() + (TAPS - 1) * FREE : 0;
    static constexpr long OUT = A::IN > PHASE ? ceil_div(A::IN - PHASE, A::STEP) : 0;
    static constexpr long BASE = TAPS ? offset(LAST) / A::STEP : 0;
    typedef Sweep<Axis<A::OUT, OUT, 1, BASE, TAPS, A::GAP / COMMON>, LAST, -FREE, PHASE, A::STEP,
                  A::IN>
        type;
};

template <typename T, class G> struct InputGradient {
    template <long ROW, long COLUMN>
    using Phase = Correlation<T, typename PhaseAxis<RowsOf<G>, ROW>::type,
                              typename PhaseAxis<ColumnsOf<G>, COLUMN>::type, G::N, G::Q, G::O,
                              G::C>;
    static constexpr bool ACROSS = Phase<0, 0>::ACROSS;

    // Share `part` of `parts` of the phases from NUMBER on.
    template <long NUMBER = 0>
    static void phases(const T* gy, const T* k, T* gx, long part, long parts) {
        constexpr long ROW = NUMBER / G::SW, COLUMN = NUMBER % G::SW;
        if constexpr (ROW < G::H && COLUMN < G::W) {
            typedef Phase<ROW, COLUMN> Work;
            Work::rows(gy, k, gx, Work::UNITS * part / parts, Work::UNITS * (part + 1) / parts,
                       Identity{});
        }
        if constexpr (NUMBER + 1 < G::SH * G::SW) phases<NUMBER + 1>(gy, k, gx, part, parts);
    }
};

// [TAPS, C, O] to [TAPS, O, C].
template <typename T, long TAPS, long C, long O> inline void transpose(const T* k, T* transposed) {
    auto body = [&](long first, long end) {
        for (long tap = first; tap < end; ++tap)
            for (long o = 0; o < O; ++o)
                for (long c = 0; c < C; ++c)
                    transposed[(tap * O + o) * C + c] = k[(tap * C + c) * O + o];
    };
    parallel(body, TAPS, (double)TAPS * C * O);
}

template <typename T, class G>
using Convolution =
    Correlation<T, Forward<RowsOf<G>>, Forward<ColumnsOf<G>>, G::N, G::Q, G::C, G::O>;

template <class G> constexpr double products() {
    return (double)G::N * G::OH * G::OW * G::O * G::P * G::Q * G::C;
}

}  // namespace windows

// Elements of T that a function needs as scratch: a transposed filter, or none.
template <typename T, class G>
constexpr long convolution_scratch =
    windows::Convolution<T, G>::ACROSS ? G::P * G::Q * G::C * G::O : 0;
template <typename T, class G>
constexpr long convolution_input_grad_scratch =
    windows::InputGradient<T, G>::ACROSS ? 0 : G::P * G::Q * G::C * G::O;

// y = convolution(x, k), then y[..., o] = epilogue(y[..., o], o).
template <typename T, class G, class E = windows::Identity>
inline void convolution(const T* x, const T* k, T* y, T* scratch, const E& epilogue = E{}) {
    typedef windows::Convolution<T, G> Work;
    if constexpr (Work::ACROSS) {
        windows::transpose<T, G::P * G::Q, G::C, G::O>(k, scratch);
        k = scratch;
    }
    auto body = [&](long first, long end) { Work::rows(x, k, y, first, end, epilogue); };
    windows::parallel(body, Work::UNITS, windows::products<G>());
}

template <typename T, class G>
inline void convolution_input_grad(const T* gy, const T* k, T* gx, T* scratch) {
    typedef windows::InputGradient<T, G> Work;
    if constexpr (!Work::ACROSS) {
        windows::transpose<T, G::P * G::Q, G::C, G::O>(k, scratch);
        k = scratch;
    }
    constexpr long PARTS = windows::least(G::N * G::H, 64);
    auto body = [&](long first, long end) {
        for (long part = first; part < end; ++part) Work::template phases<>(gy, k, gx, part, PARTS);
    };
    windows::parallel(body, PARTS, windows::products<G>());
}
