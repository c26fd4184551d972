// Softmax cross entropy of the rows of x[rows, cols] with one label per row, or with labels for
// every element, in one pass: the losses and, in y, the probabilities p or the gradient.
//
//   p = e^(x - m) / s                        m = max x, s = sum e^(x - m)
//   SparseLabels    loss = log s - (x[label] - m)         gradient = w (p - onehot(label))
//   DenseLabels     loss = sum labels (log s - (x - m))   gradient = w (p - labels)
//
// w is `scale`, times weights[row] where `weighted`. `output` says what y gets: 0 nothing, 1 the
// probabilities, 2 the gradient. A label outside [0, cols) makes nan of its row; nothing is read
// for it. `kind` is that of class_at; DenseLabels do not use it.
//
// Geometry: that of softmax.cu. y may be x, so that the gradient takes the memory of the logits.
#include "class_labels.cuh"
#include "softmax_rows.cuh"

enum Output { NOTHING = 0, PROBABILITIES = 1, GRADIENT = 2 };

// What one launch is asked for.
template <typename T> struct Wanted {
    const T* x;
    const void* labels;
    const T* weights;
    T* losses;
    T* y;
    long long cols, kind, output, weighted;
    double scale;

    DEVICE compute_t<T> weight(long long row) const {
        return compute_t<T>(scale) * (weighted ? compute_t<T>(weights[row]) : compute_t<T>(1));
    }
};

struct SparseLabels {
    template <typename T> static DEVICE bool wide(const Wanted<T>& wanted) {
        return aligned16(wanted.x, wanted.y);
    }

    template <typename T> struct Row {
        using C = compute_t<T>;
        static constexpr bool exponentials = true, bounded = false;
        const Wanted<T>& wanted;
        bool passes, writes;
        long long hot = -1;
        C logit = not_a_number<C>(), weight = 1, factor, loss;

        DEVICE explicit Row(const Wanted<T>& w)
            : wanted(w), passes(w.output != NOTHING), writes(w.output != NOTHING) {}
        DEVICE void open(const T* row, long long r) {
            long long label = class_at(wanted.labels, wanted.kind, r);
            if (0 <= label && label < wanted.cols) {
                hot = label;
                logit = row[label];
            }
            if (wanted.output == GRADIENT) weight = wanted.weight(r);
        }
        DEVICE void known(C m, C total) {
            loss = log(total) - (logit - m);
            factor = hot < 0 ? not_a_number<C>() : weight / total;
            if (wanted.output != GRADIENT) hot = -1;
        }
        template <int N>
        DEVICE void apply(const C (&e)[N], T (&out)[N], const Slice<T, N>& slice) const {
            int at = slice.index(hot);
#pragma unroll
            for (int i = 0; i < N; ++i) {
                C p = e[i] * factor;
                out[i] = T(i == at ? p - weight : p);
            }
        }
        template <typename Team> DEVICE void close(const Team& team, long long r, bool active) {
            if (active && team.rank == 0) wanted.losses[r] = T(loss);
        }
    };
};

struct DenseLabels {
    template <typename T> static DEVICE bool wide(const Wanted<T>& wanted) {
        return aligned16(wanted.x, wanted.y, static_cast<const T*>(wanted.labels));
    }

    template <typename T> struct Row {
        using C = compute_t<T>;
        static constexpr bool exponentials = false, bounded = false, passes = true;
        const Wanted<T>& wanted;
        bool writes;
        const T* labels;
        C weight = 1, log_total, factor, loss = 0;

        DEVICE explicit Row(const Wanted<T>& w) : wanted(w), writes(w.output != NOTHING) {}
        DEVICE void open(const T*, long long r) {
            labels = static_cast<const T*>(wanted.labels) + r * wanted.cols;
            if (wanted.output == GRADIENT) weight = wanted.weight(r);
        }
        DEVICE void known(C, C total) {
            log_total = log(total);
            factor = C(1) / total;
        }
        template <int N>
        DEVICE void apply(const C (&z)[N], T (&out)[N], const Slice<T, N>& slice) {
            bool gradient = wanted.output == GRADIENT;
            T given[N];
            load(labels, slice, T(0.0f), given);
#pragma unroll
            for (int i = 0; i < N; ++i) {
                C label = given[i];
                if (i < slice.own) loss += label * (log_total - z[i]);
                C p = exponential<T>(z[i]) * factor;
                out[i] = T(gradient ? (p - label) * weight : p);
            }
        }
        template <typename Team> DEVICE void close(const Team& team, long long r, bool active) {
            loss = team.template reduce<Sum>(loss);
            if (active && team.rank == 0) wanted.losses[r] = T(loss);
        }
    };
};

template <typename Labels, typename T> DEVICE bool entropy_wide(const Wanted<T>& wanted) {
    return wanted.cols % Width<T>::value == 0 && Labels::wide(wanted);
}

template <typename T, int N, typename Labels>
__global__ void __launch_bounds__(128, 6)
cross_entropy_lanes(const T* x, const void* labels, const T* weights, T* losses, T* y,
                    long long rows, long long cols, long long kind, long long output,
                    long long weighted, double scale, long long lanes) {
    Wanted<T> wanted{x, labels, weights, losses, y, cols, kind, output, weighted, scale};
    typename Labels::template Row<T> result(wanted);
    rows_in_lanes<T, N>(x, y, rows, cols, lanes, entropy_wide<Labels>(wanted), result);
}

template <typename T, int N, typename Labels>
__global__ void __launch_bounds__(256, 3)
cross_entropy_block(const T* x, const void* labels, const T* weights, T* losses, T* y,
                    long long rows, long long cols, long long kind, long long output,
                    long long weighted, double scale) {
    __shared__ compute_t<T> scratch[32];
    Wanted<T> wanted{x, labels, weights, losses, y, cols, kind, output, weighted, scale};
    typename Labels::template Row<T> result(wanted);
    rows_in_block<T, N>(x, y, rows, cols, entropy_wide<Labels>(wanted), scratch, result);
}

template <typename T, int N, typename Labels>
__global__ void __launch_bounds__(1024)
cross_entropy_shared(const T* x, const void* labels, const T* weights, T* losses, T* y,
                     long long rows, long long cols, long long kind, long long output,
                     long long weighted, double scale) {
    __shared__ compute_t<T> scratch[32];
    DYNAMIC_SHARED(T, cache);
    Wanted<T> wanted{x, labels, weights, losses, y, cols, kind, output, weighted, scale};
    typename Labels::template Row<T> result(wanted);
    rows_in_tiles<T, N, true>(x, y, cache, rows, cols, entropy_wide<Labels>(wanted), scratch,
                              result);
}

template <typename T, int N, typename Labels>
__global__ void __launch_bounds__(1024)
cross_entropy_stream(const T* x, const void* labels, const T* weights, T* losses, T* y,
                     long long rows, long long cols, long long kind, long long output,
                     long long weighted, double scale) {
    __shared__ compute_t<T> scratch[32];
    Wanted<T> wanted{x, labels, weights, losses, y, cols, kind, output, weighted, scale};
    typename Labels::template Row<T> result(wanted);
    T* no_cache = nullptr;
    rows_in_tiles<T, N, false>(x, y, no_cache, rows, cols, entropy_wide<Labels>(wanted), scratch,
                               result);
}
