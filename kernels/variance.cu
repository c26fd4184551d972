// y = Σ (x - mean)² / n over one axis of the array x, in one reading.
//
// x is [outer, reduced, inner], C-contiguous, of S; y is [outer, parts, inner]: of S, or of
// Moments<A> with A = compute_t<S> where `count` is 0, for variance_finish. What is reduced is the
// triple of count n, mean, and M = Σ (x - mean)², which two sets combine into that of both:
//
//     d = mean_b - mean_a,  mean = mean_a + d n_b / n,  M = M_a + M_b + d² n_a n_b / n
//
// Nothing cancels, however far the mean is from 0. Source: Chan, Golub and LeVeque, Algorithms for
// computing the sample variance, The American Statistician 37 (1983). Geometry: reduce.cuh.
#include "reduce.cuh"

template <typename A> struct Moments {
    A count, mean, squares;
    Moments() = default;
    DEVICE Moments(A n, A m, A s) : count(n), mean(m), squares(s) {}
    DEVICE explicit Moments(A x) : count(1), mean(x), squares(0) {}
};

template <typename A> DEVICE Moments<A> exchange(Moments<A> m, int distance) {
    return {exchange(m.count, distance), exchange(m.mean, distance), exchange(m.squares, distance)};
}

struct Pooled {
    template <typename P> static DEVICE P identity() { return P(0, 0, 0); }
    template <typename P> static DEVICE P combine(P a, P b) {
        auto count = a.count + b.count, apart = b.mean - a.mean;
        auto share = b.count == 0 ? b.count : b.count / count;
        return P(count, a.count == 0 ? b.mean : a.mean + apart * share,
                 a.squares + b.squares + apart * (apart * (a.count * share)));
    }
};

// The elements of x as sets of one.
template <typename S, typename A, int V> struct Lone {
    const S* x;
    DEVICE Moments<A> operator()(long long i) const { return Moments<A>(A(x[i])); }
    DEVICE void vector(long long i, Moments<A> (&v)[V]) const {
        Vec<S, V> wide = *reinterpret_cast<const Vec<S, V>*>(x + i);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = Moments<A>(A(wide.v[k]));
    }
    DEVICE bool can_vector() const { return aligned16(x); }
};

// Stores moments, or variances.
template <typename T, typename A> struct Variances {
    void* y;
    long long count;
    DEVICE void operator()(long long i, Moments<A> m) const {
        if (count) static_cast<T*>(y)[i] = T(m.squares / A(count));
        else static_cast<Moments<A>*>(y)[i] = m;
    }
    template <int W> DEVICE void vector(long long i, const Moments<A> (&v)[W]) const {
#pragma unroll
        for (int k = 0; k < W; k++) (*this)(i + k, v[k]);
    }
};

template <typename S, int V>
__global__ void __launch_bounds__(REDUCE_THREADS, 2)
variance_rows(const S* x, void* y, long long outer, long long reduced, long long lanes,
              long long part_length, long long count) {
    using A = compute_t<S>;
    reduce_rows<Pooled, Moments<A>, V>(Lone<S, A, V>{x}, Variances<S, A>{y, count}, outer, reduced,
                                       (int)lanes, part_length);
}

template <typename S, int V>
__global__ void __launch_bounds__(REDUCE_THREADS, 2)
variance_columns(const S* x, void* y, long long outer, long long reduced, long long inner,
                 long long lanes, long long part_length, long long count) {
    using A = compute_t<S>;
    reduce_columns<Pooled, Moments<A>, V>(Lone<S, A, V>{x}, Variances<S, A>{y, count}, outer,
                                          reduced, inner, (int)lanes, part_length);
}

// A later launch: `moments` is [outer, reduced, inner] of Moments<A>.
template <typename T>
__global__ void __launch_bounds__(REDUCE_THREADS, 2)
variance_finish(const void* moments, void* y, long long outer, long long reduced, long long inner,
                long long lanes, long long part_length, long long count) {
    using A = compute_t<T>;
    using M = Moments<A>;
    reduce_columns<Pooled, M, 1>(Contiguous<M, M, 1>{static_cast<const M*>(moments)},
                                 Variances<T, A>{y, count}, outer, reduced, inner, (int)lanes,
                                 part_length);
}
