// y = the position of the largest (R = Max) or smallest (R = Min) element over one axis of x, the
// first of equals; nan counts as the largest and as the smallest, as in NumPy.
//
// x is [outer, reduced, inner], C-contiguous, of S; y is [outer, parts, inner]: of Indexed<A> with
// A the type that S compares in where `index_bytes` is 0, for the finishing launch; else the
// positions, integers of 4 or 8 bytes. What is reduced is the pair of an element and its flat
// index, whose order along the reduced axis is that of the positions. Geometry: reduce.cuh.
#include "reduce_types.cuh"

template <typename A> struct Indexed {
    A value;
    long long at;
};

template <typename A> DEVICE Indexed<A> exchange(Indexed<A> pair, int distance) {
    return {__shfl_xor_sync(FULL_WARP, pair.value, distance),
            __shfl_xor_sync(FULL_WARP, pair.at, distance)};
}

template <typename T> struct Content;
template <typename A> struct Content<Indexed<A>> { using type = A; };

template <typename R> struct First {
    template <typename P> static DEVICE P identity() {
        using A = typename Content<P>::type;
        return {R::template identity<A>(), 0x7fffffffffffffffll};
    }
    template <typename P> static DEVICE P combine(P a, P b) {
        bool ahead = Is<R, Max>::value ? a.value > b.value : a.value < b.value;
        bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        bool tie = a.value == b.value || (a_nan && b_nan);
        return (tie ? a.at < b.at : ahead || a_nan) ? a : b;
    }
};

// The elements of x with their flat indices.
template <typename S, typename A, int V> struct Numbered {
    const S* x;
    DEVICE Indexed<A> operator()(long long i) const { return {A(x[i]), i}; }
    DEVICE void vector(long long i, Indexed<A> (&v)[V]) const {
        Vec<S, V> wide = *reinterpret_cast<const Vec<S, V>*>(x + i);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = {A(wide.v[k]), i + k};
    }
    DEVICE bool can_vector() const { return aligned16(x); }
};

// Stores pairs, or positions along the axis of `reduced` elements `inner` apart.
template <typename A> struct Positions {
    void* y;
    long long reduced, inner, index_bytes;
    DEVICE void operator()(long long i, Indexed<A> found) const {
        if (!index_bytes) {
            static_cast<Indexed<A>*>(y)[i] = found;
            return;
        }
        long long position = quotient(found.at, inner);
        position -= quotient(position, reduced) * reduced;
        if (index_bytes == 8) static_cast<long long*>(y)[i] = position;
        else static_cast<int*>(y)[i] = (int)position;
    }
    template <int W> DEVICE void vector(long long i, const Indexed<A> (&v)[W]) const {
#pragma unroll
        for (int k = 0; k < W; k++) (*this)(i + k, v[k]);
    }
};

template <typename R, typename S, int V>
__global__ void __launch_bounds__(REDUCE_THREADS, 2)
arg_rows(const S* x, void* y, long long outer, long long reduced, long long lanes,
         long long part_length, long long index_bytes) {
    using A = typename Order<S>::type;
    reduce_rows<First<R>, Indexed<A>, V>(Numbered<S, A, V>{x},
                                         Positions<A>{y, reduced, 1, index_bytes}, outer, reduced,
                                         (int)lanes, part_length);
}

template <typename R, typename S, int V>
__global__ void __launch_bounds__(REDUCE_THREADS, 2)
arg_columns(const S* x, void* y, long long outer, long long reduced, long long inner,
            long long lanes, long long part_length, long long index_bytes) {
    using A = typename Order<S>::type;
    reduce_columns<First<R>, Indexed<A>, V>(Numbered<S, A, V>{x},
                                            Positions<A>{y, reduced, inner, index_bytes}, outer,
                                            reduced, inner, (int)lanes, part_length);
}

// The second launch: `pairs` is [outer, parts, inner]; `reduced` is the length of the axis of x.
template <typename R, typename A>
__global__ void __launch_bounds__(REDUCE_THREADS, 2)
arg_finish(const void* pairs, void* y, long long outer, long long parts, long long inner,
           long long lanes, long long reduced, long long index_bytes) {
    Contiguous<Indexed<A>, Indexed<A>, 1> load{static_cast<const Indexed<A>*>(pairs)};
    reduce_columns<First<R>, Indexed<A>, 1>(load, Positions<A>{y, reduced, inner, index_bytes},
                                            outer, parts, inner, (int)lanes, parts);
}
