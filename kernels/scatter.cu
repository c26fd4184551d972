// Rows that share an id, combined: scatter-add, the gradient of an embedding, segment reductions.
//
//     y[r, k] = R over { x[i, k] : ids[i] = r }
//
// x [count, inner], ids [count], y [rows, inner], in C order; y holds R's value of nothing (0 for
// the sum) beforehand. Ids outside [0, rows) are dropped. A group of `lanes` threads (a power of
// two) works on whole rows, blocks along y share long rows.
//
// scatter_add adds by atomics: one launch, sums of floats in no fixed order.
//
// segment_reduce and segment_join are deterministic. `order` sorts the ids stably and `sorted` are
// the ids in that order. Sorted positions are cut into chunks of `chunk`; a group reduces each run
// of equal ids in its chunk, in the compute type, and writes it to y. The part of a run that
// crosses an edge of chunks goes to `open` [chunks, 2, inner]: 0, the part of a run that began
// earlier; 1, the beginning of a run that goes on. segment_join combines these parts, in order. So
// an id that fills half of `ids` costs no more than others.
#include "gtape.cuh"
#include "product.cuh"

// The last row of an id stands.
struct Last {
    template <typename A> static DEVICE A combine(A, A b) { return b; }
};

template <typename T> DEVICE void atomic_add(T* to, T value) { atomicAdd(to, value); }

template <typename T, int V> DEVICE void atomic_add(Vec<T, V>* to, Vec<T, V> value) {
#pragma unroll
    for (int j = 0; j < V; ++j) atomic_add(&to->v[j], value.v[j]);
}
// CUDA 12.0 has no addition of four.
#if !defined(GTAPE_EMULATOR) && __CUDA_ARCH__ >= 900 && \
    __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
DEVICE void atomic_add(Vec<float, 4>* to, Vec<float, 4> value) {
    atomicAdd((float4*)to, make_float4(value.v[0], value.v[1], value.v[2], value.v[3]));
}
#endif

template <typename W, typename I>
DEVICE void add_rows(const W* __restrict__ x, const I* __restrict__ ids, W* y, long long rows,
                     long long count, long long words, long long lanes) {
    long long group = grid_index() / lanes, groups = grid_size() / lanes;
    long long first = lanes * blockIdx.y + (threadIdx.x & (lanes - 1));
    for (long long i = group; i < count; i += groups) {
        long long id = (long long)ids[i];
        if (id < 0 || id >= rows) continue;
        for (long long w = first; w < words; w += lanes * gridDim.y)
            atomic_add(y + id * words + w, x[i * words + w]);
    }
}

template <typename T, typename I>
__global__ void __launch_bounds__(256, 2)
scatter_add(const T* __restrict__ x, const I* __restrict__ ids, T* y, long long rows,
            long long count, long long inner, long long lanes) {
    constexpr int V = Width<T>::value;
    if (inner % V == 0 && aligned16(x, y))
        add_rows((const Vec<T, V>*)x, ids, (Vec<T, V>*)y, rows, count, inner / V, lanes);
    else
        add_rows(x, ids, y, rows, count, inner, lanes);
}

// The values of one word (V elements) of a run so far, in the compute type.
template <typename T, int V> struct Running {
    compute_t<T> v[V];
    DEVICE void begin(const Vec<T, V>& x) {
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = (compute_t<T>)x.v[j];
    }
    template <typename R> DEVICE void add(const Vec<T, V>& x) {
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = R::template combine<compute_t<T>>(v[j], (compute_t<T>)x.v[j]);
    }
    template <typename R> DEVICE void join(const compute_t<T>* part) {
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = R::template combine<compute_t<T>>(v[j], part[j]);
    }
    DEVICE void write(Vec<T, V>* to) const {
        Vec<T, V> made;
#pragma unroll
        for (int j = 0; j < V; ++j) made.v[j] = T(v[j]);
        *to = made;
    }
    DEVICE void keep(compute_t<T>* to) const {
#pragma unroll
        for (int j = 0; j < V; ++j) to[j] = v[j];
    }
};

// One word of the chunk [begin, end). Rows are loaded AHEAD at a time, before any is combined.
template <typename T, typename R, int V>
DEVICE void reduce_chunk(const Vec<T, V>* __restrict__ x, const long long* __restrict__ order,
                         const long long* __restrict__ sorted, Vec<T, V>* y, compute_t<T>* open,
                         long long rows, long long count, long long words, long long begin,
                         long long end, long long w) {
    constexpr int AHEAD = V > 8 ? 2 : 4;  // as many as registers hold
    long long id = sorted[begin];
    bool continued = begin > 0 && sorted[begin - 1] == id;
    Running<T, V> run;
    run.begin(x[order[begin] * words + w]);
    for (long long i = begin + 1; i < end; i += AHEAD) {
        Vec<T, V> loaded[AHEAD];
        long long ids[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (i + k < end) {
                ids[k] = sorted[i + k];
                loaded[k] = x[order[i + k] * words + w];
            }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (i + k < end) {
                if (ids[k] == id) {
                    run.template add<R>(loaded[k]);
                    continue;
                }
                if (continued) run.keep(open + w * V);
                else if (id >= 0 && id < rows) run.write(y + id * words + w);
                id = ids[k];
                continued = false;
                run.begin(loaded[k]);
            }
    }
    bool goes_on = end < count && sorted[end] == id;
    if (continued) run.keep(open + w * V);
    else if (goes_on) run.keep(open + (words + w) * V);
    else if (id >= 0 && id < rows) run.write(y + id * words + w);
}

template <typename T, typename R, int V>
DEVICE void reduce_chunks(const T* x, const long long* order, const long long* sorted, T* y,
                          compute_t<T>* open, long long rows, long long count, long long words,
                          long long chunk, long long lanes) {
    long long groups = grid_size() / lanes;
    for (long long c = grid_index() / lanes; c * chunk < count; c += groups) {
        long long end = (c + 1) * chunk < count ? (c + 1) * chunk : count;
        for (long long w = lanes * blockIdx.y + (threadIdx.x & (lanes - 1)); w < words;
             w += lanes * gridDim.y)
            reduce_chunk<T, R, V>((const Vec<T, V>*)x, order, sorted, (Vec<T, V>*)y,
                                  open + 2 * c * words * V, rows, count, words, c * chunk, end, w);
    }
}

template <typename T, typename R>
__global__ void __launch_bounds__(256, 2)
segment_reduce(const T* __restrict__ x, const long long* __restrict__ order,
               const long long* __restrict__ sorted, T* y, compute_t<T>* open, long long rows,
               long long count, long long inner, long long chunk, long long lanes) {
    constexpr int V = Width<T>::value;
    if (inner % V == 0 && aligned16(x, y))
        reduce_chunks<T, R, V>(x, order, sorted, y, open, rows, count, inner / V, chunk, lanes);
    else
        reduce_chunks<T, R, 1>(x, order, sorted, y, open, rows, count, inner, chunk, lanes);
}

// The last chunk that begins with the id with which chunk `part` begins. It is found by doubling and
// halving steps: a run may fill most chunks, and most runs end in the next.
DEVICE long long last_part(const long long* __restrict__ sorted, long long part, long long chunks,
                           long long chunk) {
    long long id = sorted[part * chunk], step = 1;
    while (part + step < chunks && sorted[(part + step) * chunk] == id) {
        part += step;
        step *= 2;
    }
    while (step /= 2)
        if (part + step < chunks && sorted[(part + step) * chunk] == id) part += step;
    return part;
}

#define JOINED 128

// Writes the runs that cross an edge of chunks; each by the chunk in which it begins.
template <typename T, typename R>
__global__ void __launch_bounds__(256, 2)
segment_join(const long long* __restrict__ sorted, const compute_t<T>* __restrict__ open, T* y,
             long long rows, long long count, long long inner, long long chunk, long long lanes) {
    long long groups = grid_size() / lanes, chunks = (count + chunk - 1) / chunk;
    for (long long c = grid_index() / lanes; c + 1 < chunks; c += groups) {
        long long next = (c + 1) * chunk, id = sorted[next];
        bool ends_here = sorted[next - 1] != id;
        bool began_earlier = c > 0 && sorted[c * chunk - 1] == id;
        if (ends_here || began_earlier || id < 0 || id >= rows) continue;
        long long last = last_part(sorted, c + 1, chunks, chunk);
        for (long long k = lanes * blockIdx.y + (threadIdx.x & (lanes - 1)); k < inner;
             k += lanes * gridDim.y) {
            Running<T, 1> run;
            run.v[0] = open[(2 * c + 1) * inner + k];
            // In blocks: rounding errors of a run of many chunks do not add up one by one.
            for (long long part = c + 1; part <= last; part += JOINED) {
                long long end = part + JOINED <= last ? part + JOINED : last + 1;
                Running<T, 1> block;
                block.v[0] = open[2 * part * inner + k];
#pragma unroll 8
                for (long long next = part + 1; next < end; ++next)
                    block.template join<R>(open + 2 * next * inner + k);
                run.template join<R>(block.v);
            }
            run.write((Vec<T, 1>*)(y + id * inner + k));
        }
    }
}
