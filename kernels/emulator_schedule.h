// The threads of the block that runs: which comes next, where they wait, and what is said when they
// cannot go on. Part of emulator.cpp.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emulator_runtime.h"
#include "emulator_fibers.h"

namespace gtape_emulator {

Thread* current;
uint3 block_index;
dim3 block_size, grid_size;
unsigned char* dynamic_shared;
bool interleaving;

namespace {

constexpr unsigned max_threads = 1024;
enum Schedule { ascending, descending, drawn };

struct Warp { unsigned present, waiting; };  // bits of lanes that have not left; that wait

Thread threads[max_threads];
Warp warps[max_threads / 32];
Thread* ready[max_threads];  // a stack: the last one is next
Fiber fibers[max_threads], outside;
Fiber* parked[max_threads];
unsigned ready_count, parked_count, fiber_count, block_threads, alive, arrived;
char* stacks;
Schedule schedule;
uint64_t random_state;
Body body;
void** arguments;
bool failed;
char message[2048];

// ---------------------------------------------------------------- diagnoses

Fiber& own_fiber() { return current ? *current->fiber : outside; }

// Ends the launch: back to gtape_emulator_launch, the fibers as they are.
[[noreturn]] void give_up() {
    failed = true;
    switch_to(own_fiber(), outside);
    __builtin_unreachable();
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    size_t used = strlen(message);
    snprintf(message + used, sizeof message - used, " (thread %u of block (%u, %u, %u))",
             current->rank, block_index.x, block_index.y, block_index.z);
    give_up();
}

const char* name_of(Operation operation) {
    switch (operation) {
        case Operation::sync: return "__syncwarp";
        case Operation::shuffle: return "a shuffle";
        case Operation::ballot: return "a vote";
        default: return "__match_any_sync";
    }
}

bool same_place(const Thread& a, const Thread& b) {
    return a.line == b.line && (a.file == b.file || !strcmp(a.file, b.file));
}

// One line for a thread that waits, so that a reader sees where the block fell apart.
void describe(const Thread& thread, char* text, size_t size) {
    if (thread.state == State::at_block_barrier)
        snprintf(text, size, "thread %u waits at __syncthreads, %s:%d", thread.rank, thread.file,
                 thread.line);
    else
        snprintf(text, size, "thread %u waits at %s, %s:%d, for the lanes 0x%08x", thread.rank,
                 name_of(thread.operation), thread.file, thread.line, thread.mask);
}

// No thread can go on: says where they wait, one thread for each place.
[[noreturn]] void deadlock() {
    char text[1400] = "";
    std::vector<const Thread*> seen;
    for (unsigned i = 0; i < block_threads && seen.size() < 5; ++i) {
        const Thread& thread = threads[i];
        if (thread.state == State::left) continue;
        bool known = false;
        for (const Thread* other : seen)
            known |= other->state == thread.state && same_place(*other, thread);
        if (known) continue;
        seen.push_back(&thread);
        size_t used = strlen(text);
        if (used) used += snprintf(text + used, sizeof text - used, "; ");
        describe(thread, text + used, sizeof text - used);
    }
    std::vector<const Thread*>().swap(seen);  // this stack is never unwound
    fail("deadlock: %u of the block's %u threads have left, and no other can go on: %s",
         block_threads - alive, block_threads, text);
}

// ---------------------------------------------------------------- the schedule

unsigned drawn_below(unsigned count) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((random_state >> 32) * count >> 32);
}

void make_ready(Thread& thread) {
    thread.state = State::ready;
    ready[ready_count++] = &thread;
}

// Make threads of an inclusive range ready so that the schedule's first is on top.
template <typename Wanted> void make_ready(unsigned first, unsigned last, Wanted wanted) {
    if (schedule == descending) {
        for (unsigned i = first; i <= last; ++i)
            if (wanted(threads[i])) make_ready(threads[i]);
    } else {
        for (unsigned i = last + 1; i-- > first;)
            if (wanted(threads[i])) make_ready(threads[i]);
    }
}

void release_block() {
    const Thread* first = nullptr;
    unsigned positive = 0;
    for (unsigned i = 0; i < block_threads; ++i) {
        Thread& thread = threads[i];
        if (thread.state == State::left) continue;
        if (!first) first = &thread;
        if (!same_place(*first, thread))
            fail("threads of a block met at different barriers: thread %u at __syncthreads, %s:%d; "
                 "thread %u at __syncthreads, %s:%d", first->rank, first->file, first->line,
                 thread.rank, thread.file, thread.line);
        positive += thread.value != 0;
    }
    unsigned count = arrived;
    arrived = 0;
    make_ready(0, block_threads - 1, [&](Thread& thread) {
        if (thread.state == State::left) return false;
        thread.result = (unsigned long long)count << 32 | positive;
        return true;
    });
}

// The thread to run now; null when all have left.
Thread* next() {
    if (!ready_count) {
        if (!alive) return nullptr;
        if (arrived != alive) deadlock();
        release_block();
    }
    if (schedule == drawn) {
        unsigned i = drawn_below(ready_count);
        Thread* chosen = ready[i];
        ready[i] = ready[--ready_count];
        return chosen;
    }
    return ready[--ready_count];
}

void run_threads();

Fiber* fresh_fiber() {
    if (parked_count) return parked[--parked_count];
    Fiber& fiber = fibers[fiber_count];
    prepare(fiber, stacks + stack_bytes * fiber_count, stack_bytes - fiber_count % 64 * 192,
            run_threads);
    ++fiber_count;
    return &fiber;
}

// Let another thread run; returns when `from` is wanted again.
void hand_over(Fiber& from) {
    Thread* thread = next();
    if (!thread) {
        switch_to(from, outside);
        return;
    }
    if (!thread->fiber) thread->fiber = fresh_fiber();
    current = thread;
    if (thread->fiber != &from) switch_to(from, *thread->fiber);
}

void leave() {
    Thread& thread = *current;
    Warp& warp = warps[thread.rank / 32];
    warp.present &= ~(1u << (thread.rank & 31));
    for (unsigned lanes = warp.waiting; lanes; lanes &= lanes - 1) {
        const Thread& other = threads[(thread.rank & ~31u) + __builtin_ctz(lanes)];
        if (other.mask >> (thread.rank & 31) & 1)
            fail("the thread left the kernel while thread %u waits for it at %s, %s:%d", other.rank,
                 name_of(other.operation), other.file, other.line);
    }
    thread.state = State::left;
    --alive;
    parked[parked_count++] = thread.fiber;
    hand_over(*thread.fiber);
}

void run_threads() {
    entered(outside);
    for (;;) {
        body(arguments);
        leave();
    }
}

}  // namespace

// ---------------------------------------------------------------- what kernels call

Votes block_barrier(int predicate, const char* file, int line) {
    Thread& thread = *current;
    thread.state = State::at_block_barrier;
    thread.value = predicate != 0;
    thread.file = file;
    thread.line = line;
    ++arrived;
    hand_over(*thread.fiber);
    return {(int)(thread.result >> 32), (int)(unsigned)thread.result};
}

void pause() {
    Thread& thread = *current;
    ready[ready_count++] = &thread;
    if (schedule != drawn) {  // the one that pauses comes last
        memmove(ready + 1, ready, (ready_count - 1) * sizeof *ready);
        ready[0] = &thread;
    }
    hand_over(*thread.fiber);
}

// Whether an address is one of a thread's own: on the stack of its fiber.
bool on_stack(uintptr_t address) {
    return address - reinterpret_cast<uintptr_t>(stacks) < stack_bytes * max_threads;
}

void stop(const char* why, const char* file, int line) { fail("%s, %s:%d", why, file, line); }

}  // namespace gtape_emulator
