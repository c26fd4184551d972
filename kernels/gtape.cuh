// What every kernel of gtape includes: number types, wide loads, loops over the grid, reductions
// in warps and blocks.
//
// The same text is compiled by NVRTC for a GPU and, after emulator.h, by a C++ compiler for the
// CPU. It needs no header of CUDA. Rules that keep it so: README.md.
#pragma once

#ifndef GTAPE_EMULATOR
// Dynamic shared memory, `bytes` given at launch. One array per kernel.
#define DYNAMIC_SHARED(T, name)                                       \
    extern __shared__ __align__(16) unsigned char gtape_dynamic_[];   \
    T* name = reinterpret_cast<T*>(gtape_dynamic_)
#endif

#define DEVICE __device__ __forceinline__
#define FULL_WARP 0xffffffffu

// ---------------------------------------------------------------- numbers of two bytes

// IEEE binary16. Arithmetic is done in float.
struct half {
    unsigned short bits;
    half() = default;
    DEVICE half(float value);
    DEVICE operator float() const;
};

// The upper half of a float, rounded to nearest even. Arithmetic is done in float.
struct bfloat16 {
    unsigned short bits;
    bfloat16() = default;
    DEVICE bfloat16(float value) {
#if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
        unsigned u = __float_as_uint(value);
        bits = (u & 0x7fffffffu) > 0x7f800000u
                   ? (unsigned short)(u >> 16 | 0x40u)
                   : (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
#endif
    }
    DEVICE operator float() const { return __uint_as_float((unsigned)bits << 16); }
};

#ifdef GTAPE_EMULATOR
DEVICE half::half(float value) : bits(gtape_emulator::half_bits(value)) {}
DEVICE half::operator float() const { return gtape_emulator::half_value(bits); }
#else
DEVICE half::half(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
DEVICE half::operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
#endif

// What a float becomes in a type of two bytes, still as a float.
template <typename T> DEVICE float rounded(float value) { return (float)T(value); }

// A double cut off to a float whose last bit says whether anything was cut off ("round to odd"):
// rounding it on to half is rounding the double once (Boldo & Melquiond 2008).
DEVICE float to_odd(double value) {
    const float near = (float)value;
    const unsigned u = __float_as_uint(near);
    const double back = near;
    const unsigned cut = fabs(back) > fabs(value) ? u - 1u : u;
    return __uint_as_float(back != value && value == value ? cut | 1u : u);
}

// The type in which values of T are computed and accumulated.
template <typename T> struct Compute { using type = T; };
template <> struct Compute<half> { using type = float; };
template <> struct Compute<bfloat16> { using type = float; };
template <typename T> using compute_t = typename Compute<T>::type;

template <typename T> DEVICE T infinity();
template <> DEVICE float infinity<float>() { return __int_as_float(0x7f800000); }
template <> DEVICE double infinity<double>() { return __longlong_as_double(0x7ff0000000000000ll); }

template <typename T> DEVICE T not_a_number();
template <> DEVICE float not_a_number<float>() { return __int_as_float(0x7fc00000); }
template <> DEVICE double not_a_number<double>() {
    return __longlong_as_double(0x7ff8000000000000ll);
}

// ---------------------------------------------------------------- wide loads and stores

// V values moved by one instruction.
template <typename T, int V> struct alignas(sizeof(T) * V) Vec { T v[V]; };

// How many T fit into the 16 bytes that one thread moves at once.
template <typename T> struct Width { static constexpr int value = 16 / (int)sizeof(T); };

template <typename... P> DEVICE bool aligned16(const P*... pointers) {
    return (((reinterpret_cast<unsigned long long>(pointers) & 15ull) | ... | 0ull)) == 0;
}

// ---------------------------------------------------------------- the grid

DEVICE long long grid_index() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE long long grid_size() { return (long long)gridDim.x * blockDim.x; }

// ---------------------------------------------------------------- reductions

struct Sum {
    template <typename A> static DEVICE A identity() { return A(0); }
    template <typename A> static DEVICE A combine(A a, A b) { return a + b; }
};
// The larger; nan if either is nan, as in NumPy.
struct Max {
    template <typename A> static DEVICE A identity() { return -infinity<A>(); }
    template <typename A> static DEVICE A combine(A a, A b) { return a > b || a != a ? a : b; }
};
// The smaller; nan if either is nan, as in NumPy.
struct Min {
    template <typename A> static DEVICE A identity() { return infinity<A>(); }
    template <typename A> static DEVICE A combine(A a, A b) { return a < b || a != a ? a : b; }
};

// The reduction over the 32 lanes, known to each of them.
template <typename R, typename A> DEVICE A warp_reduce(A value) {
#pragma unroll
    for (int d = 16; d; d >>= 1) value = R::combine(value, __shfl_xor_sync(FULL_WARP, value, d));
    return value;
}

// The reduction over the block, known to each thread. `scratch` is shared memory for 32 values.
// blockDim.x is a multiple of 32 and the block has one dimension. All threads must call it.
template <typename R, typename A> DEVICE A block_reduce(A value, A* scratch) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    value = warp_reduce<R>(value);
    if (warps == 1) return value;
    __syncthreads();  // an earlier reduction may still be reading scratch
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    value = lane < warps ? scratch[lane] : R::template identity<A>();
    return warp_reduce<R>(value);
}
