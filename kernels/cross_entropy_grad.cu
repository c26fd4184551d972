// The gradient of a softmax cross entropy from the probabilities p[rows, cols] that the forward
// pass kept: y = a (p - t), where a[rows] is the cotangent of the losses.
//
//   SparseTargets    t = onehot(label)    a label outside [0, cols) has no place: y = a p
//   DenseTargets     t = labels[rows, cols]
//
// Geometry: blocks of 256 threads, `team` of which (a power of two) walk a row.
#include "class_labels.cuh"
#include "row_slice.cuh"

struct SparseTargets {
    template <typename T> static DEVICE bool wide(const void*) { return true; }

    template <typename T, int N> struct Row {
        long long hot;
        DEVICE Row(const void* labels, long long kind, long long row, long long cols)
            : hot(class_at(labels, kind, row)) {}
        DEVICE void subtract(compute_t<T> (&p)[N], const Slice<T, N>& slice) const {
            int at = slice.index(hot);
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (i == at) p[i] -= 1;
        }
    };
};

struct DenseTargets {
    template <typename T> static DEVICE bool wide(const void* labels) {
        return aligned16(static_cast<const T*>(labels));
    }

    template <typename T, int N> struct Row {
        const T* targets;
        DEVICE Row(const void* labels, long long, long long row, long long cols)
            : targets(static_cast<const T*>(labels) + row * cols) {}
        DEVICE void subtract(compute_t<T> (&p)[N], const Slice<T, N>& slice) const {
            T given[N];
            load(targets, slice, T(0.0f), given);
#pragma unroll
            for (int i = 0; i < N; ++i) p[i] -= compute_t<T>(given[i]);
        }
    };
};

template <typename T, int N, typename Targets>
__global__ void __launch_bounds__(256)
cross_entropy_grad(const T* a, const T* probs, const void* labels, T* y, long long rows,
                   long long cols, long long kind, long long team) {
    using C = compute_t<T>;
    int size = (int)team, per_block = blockDim.x / size, rank = threadIdx.x & (size - 1);
    bool wide = cols % Width<T>::value == 0 && aligned16(probs, y) &&
                Targets::template wide<T>(labels);
    long long stride = (long long)gridDim.x * per_block, tile = (long long)size * N;
    long long row = (long long)blockIdx.x * per_block + threadIdx.x / size;
    for (; row < rows; row += stride) {
        C weight = a[row];
        typename Targets::template Row<T, N> targets(labels, kind, row, cols);
        for (long long first = 0; first < cols; first += tile) {
            Slice<T, N> slice(rank, size, wide, first, cols);
            T held[N];
            C p[N];
            load(probs + row * cols, slice, T(0.0f), held);
#pragma unroll
            for (int i = 0; i < N; ++i) p[i] = held[i];
            targets.subtract(p, slice);
#pragma unroll
            for (int i = 0; i < N; ++i) held[i] = T(p[i] * weight);
            store(y + row * cols, slice, held);
        }
    }
}
