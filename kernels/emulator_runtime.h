// What compiled kernels and the emulator's runtime (emulator.cpp) know of each other.
#pragma once

struct uint3 { unsigned x, y, z; };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace gtape_emulator {

struct Fiber;
enum class State : unsigned char { ready, at_block_barrier, at_warp_operation, left };
enum class Operation : unsigned char { sync, shuffle, ballot, match };

// One CUDA thread of the block that runs.
struct Thread {
    uint3 index;
    unsigned rank;  // in the block; the lane is its last five bits
    State state;
    Operation operation;
    Fiber* fiber;  // null before the thread has started
    unsigned mask, source;
    unsigned long long value, result;
    const char* file;  // where it waits
    int line;
};

extern Thread* current;
extern uint3 block_index;
extern dim3 block_size, grid_size;
extern unsigned char* dynamic_shared;
extern bool interleaving;  // the random schedule: other threads may run at any atomic

// Counts of a block barrier: the threads that arrived, and those with a predicate that is not 0.
struct Votes { int arrived, positive; };

Votes block_barrier(int predicate, const char* file, int line);
unsigned long long warp_operation(Operation operation, unsigned mask, unsigned long long value,
                                  unsigned source, const char* file, int line);
void pause();
[[noreturn]] void stop(const char* why, const char* file, int line);

inline void interleave() {
    if (interleaving) pause();
}

// ---------------------------------------------------------------- what a library exports

using Body = void (*)(void** args);
struct Entry { Body body; const char* signature; };

// The letter of a parameter: p(ointer), q (long long), d(ouble); anything else is refused.
template <typename T> constexpr char letter = '?';
template <typename T> constexpr char letter<T*> = 'p';
template <> inline constexpr char letter<long long> = 'q';
template <> inline constexpr char letter<double> = 'd';

template <typename... A> struct Parameters {
    static constexpr char letters[] = {letter<A>..., 0};
    template <void (*kernel)(A...)> static void call(void** args) {
        struct Call {
            Call(A... values) { kernel(values...); }
        };
        Call{*static_cast<A*>(*args++)...};  // braces: from left to right
        (void)args;
    }
};
template <typename... A> Parameters<A...> parameters_of(void (*)(A...));

template <auto kernel> constexpr Entry entry() {
    using P = decltype(parameters_of(kernel));
    return {&P::template call<kernel>, P::letters};
}

}  // namespace gtape_emulator
