// CUDA C++ as a C++ compiler understands it: the keywords, built-in variables, barriers, warp
// operations, atomics and vector types that kernels use, for one block at a time on the CPU.
// Its mathematics is in emulator_math.h; what schedules the threads is emulator.cpp.
//
// It includes no header of the system: NVRTC has none, so a kernel may use no name of theirs, and
// every build of a kernel pays for what stands here.
#pragma once

#define GTAPE_EMULATOR 1

#define NULL __null
typedef __SIZE_TYPE__ size_t;
extern "C" void* memcpy(void* to, const void* from, size_t count) noexcept;
extern "C" void* memset(void* to, int value, size_t count) noexcept;

#include "emulator_runtime.h"
#include "emulator_math.h"

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ static const
#define __shared__ static  // all of .bss is filled with NaN before each block

#define DYNAMIC_SHARED(T, name) T* name = reinterpret_cast<T*>(gtape_emulator::dynamic_shared)

#define threadIdx (gtape_emulator::current->index)
#define blockIdx (gtape_emulator::block_index)
#define blockDim (gtape_emulator::block_size)
#define gridDim (gtape_emulator::grid_size)
constexpr int warpSize = 32;

// The file and line of the call, for diagnoses.
#define GTAPE_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// ---------------------------------------------------------------- barriers

inline void __syncthreads(GTAPE_PLACE) { gtape_emulator::block_barrier(0, file, line); }
inline int __syncthreads_count(int predicate, GTAPE_PLACE) {
    return gtape_emulator::block_barrier(predicate, file, line).positive;
}
inline int __syncthreads_or(int predicate, GTAPE_PLACE) {
    return gtape_emulator::block_barrier(predicate, file, line).positive != 0;
}
inline int __syncthreads_and(int predicate, GTAPE_PLACE) {
    gtape_emulator::Votes votes = gtape_emulator::block_barrier(predicate, file, line);
    return votes.positive == votes.arrived;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, GTAPE_PLACE) {
    gtape_emulator::warp_operation(gtape_emulator::Operation::sync, mask, 0, 0, file, line);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { gtape_emulator::pause(); }
[[noreturn]] inline void __trap(GTAPE_PLACE) { gtape_emulator::stop("__trap()", file, line); }

// ---------------------------------------------------------------- warp operations

namespace gtape_emulator {

// The lane that a shuffle reads, itself where the other is outside its part of `width` lanes.
inline unsigned lane_of(int wanted, int width, int lane) {
    int first = lane & ~(width - 1);
    return wanted >= first && wanted < first + width ? wanted : lane;
}

template <typename T>
inline T exchange(unsigned mask, T value, unsigned source, const char* file, int line) {
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = warp_operation(Operation::shuffle, mask, bits, source, file, line);
    memcpy(&value, &bits, sizeof(T));
    return value;
}

inline int lane() { return current->rank & 31; }

}  // namespace gtape_emulator

#define GTAPE_SHUFFLES(T)                                                                      \
    inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, GTAPE_PLACE) {      \
        int own = gtape_emulator::lane(), from = (own & ~(width - 1)) | (lane & (width - 1));  \
        return gtape_emulator::exchange(mask, value, from, file, line);                        \
    }                                                                                          \
    inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, GTAPE_PLACE) {    \
        int own = gtape_emulator::lane();                                                      \
        unsigned from = gtape_emulator::lane_of(own ^ by, width, own);                         \
        return gtape_emulator::exchange(mask, value, from, file, line);                        \
    }                                                                                          \
    inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,             \
                              GTAPE_PLACE) {                                                   \
        int own = gtape_emulator::lane();                                                      \
        unsigned from = gtape_emulator::lane_of(own + (int)by, width, own);                    \
        return gtape_emulator::exchange(mask, value, from, file, line);                        \
    }                                                                                          \
    inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32,               \
                            GTAPE_PLACE) {                                                     \
        int own = gtape_emulator::lane();                                                      \
        unsigned from = gtape_emulator::lane_of(own - (int)by, width, own);                    \
        return gtape_emulator::exchange(mask, value, from, file, line);                        \
    }
GTAPE_SHUFFLES(int)
GTAPE_SHUFFLES(unsigned)
GTAPE_SHUFFLES(long)
GTAPE_SHUFFLES(unsigned long)
GTAPE_SHUFFLES(long long)
GTAPE_SHUFFLES(unsigned long long)
GTAPE_SHUFFLES(float)
GTAPE_SHUFFLES(double)
#undef GTAPE_SHUFFLES

inline unsigned __ballot_sync(unsigned mask, int predicate, GTAPE_PLACE) {
    return (unsigned)gtape_emulator::warp_operation(gtape_emulator::Operation::ballot, mask,
                                                    predicate != 0, 0, file, line);
}
inline int __any_sync(unsigned mask, int predicate, GTAPE_PLACE) {
    return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, GTAPE_PLACE) {
    return __ballot_sync(mask, predicate, file, line) == mask;
}
template <typename T> inline unsigned __match_any_sync(unsigned mask, T value, GTAPE_PLACE) {
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return (unsigned)gtape_emulator::warp_operation(gtape_emulator::Operation::match, mask, bits,
                                                    0, file, line);
}

// ---------------------------------------------------------------- atomics

#define GTAPE_ATOMIC(name, T, changed)        \
    inline T name(T* address, T value) {      \
        gtape_emulator::interleave();         \
        T old = *address;                     \
        *address = changed;                   \
        return old;                           \
    }
#define GTAPE_ATOMICS(T)                                     \
    GTAPE_ATOMIC(atomicAdd, T, old + value)                  \
    GTAPE_ATOMIC(atomicExch, T, value)                       \
    GTAPE_ATOMIC(atomicMax, T, old > value ? old : value)    \
    GTAPE_ATOMIC(atomicMin, T, old < value ? old : value)    \
    GTAPE_ATOMIC(atomicAnd, T, old & value)                  \
    GTAPE_ATOMIC(atomicOr, T, old | value)                   \
    GTAPE_ATOMIC(atomicXor, T, old ^ value)                  \
    inline T atomicCAS(T* address, T compare, T value) {     \
        gtape_emulator::interleave();                        \
        T old = *address;                                    \
        if (old == compare) *address = value;                \
        return old;                                          \
    }
GTAPE_ATOMICS(int)
GTAPE_ATOMICS(unsigned)
GTAPE_ATOMICS(unsigned long long)
GTAPE_ATOMIC(atomicSub, int, old - value)
GTAPE_ATOMIC(atomicSub, unsigned, old - value)
GTAPE_ATOMIC(atomicMax, long long, old > value ? old : value)
GTAPE_ATOMIC(atomicMin, long long, old < value ? old : value)
GTAPE_ATOMIC(atomicAdd, float, old + value)
GTAPE_ATOMIC(atomicAdd, double, old + value)
GTAPE_ATOMIC(atomicExch, float, value)
#undef GTAPE_ATOMICS
#undef GTAPE_ATOMIC
inline unsigned short atomicCAS(unsigned short* address, unsigned short compare,
                                unsigned short value) {
    gtape_emulator::interleave();
    unsigned short old = *address;
    if (old == compare) *address = value;
    return old;
}

// ---------------------------------------------------------------- accesses with a cache hint

template <typename T> inline T __ldg(const T* address) { return *address; }
template <typename T> inline T __ldca(const T* address) { return *address; }
template <typename T> inline T __ldcg(const T* address) { return *address; }
template <typename T> inline T __ldcs(const T* address) { return *address; }
template <typename T> inline T __ldlu(const T* address) { return *address; }
template <typename T> inline T __ldcv(const T* address) { return *address; }
template <typename T> inline void __stwb(T* address, T value) { *address = value; }
template <typename T> inline void __stcg(T* address, T value) { *address = value; }
template <typename T> inline void __stcs(T* address, T value) { *address = value; }
template <typename T> inline void __stwt(T* address, T value) { *address = value; }

// ---------------------------------------------------------------- vector types

#define GTAPE_VECTORS(T, name)                                                                  \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                          \
    struct name##3 { T x, y, z; };                                                              \
    struct alignas(16) name##4 { T x, y, z, w; };                                               \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                  \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                          \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
GTAPE_VECTORS(float, float)
GTAPE_VECTORS(int, int)
#undef GTAPE_VECTORS
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(16) longlong2 { long long x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
