// Operations of a warp: they are carried out when the last lane of the mask arrives.
// Part of emulator.cpp.
#pragma once

#include "emulator_schedule.h"

namespace gtape_emulator {
namespace {

void check_lanes(const Thread& thread, unsigned first) {
    for (unsigned lanes = thread.mask; lanes; lanes &= lanes - 1) {
        const Thread& other = threads[first + __builtin_ctz(lanes)];
        if (other.operation != thread.operation || !same_place(other, thread))
            fail("lanes of a warp met at different operations: thread %u at %s, %s:%d; thread %u "
                 "at %s, %s:%d", other.rank, name_of(other.operation), other.file, other.line,
                 thread.rank, name_of(thread.operation), thread.file, thread.line);
        if (other.mask != thread.mask)
            fail("lanes of a warp gave different masks to %s, %s:%d: thread %u 0x%08x, thread %u "
                 "0x%08x", name_of(thread.operation), thread.file, thread.line, other.rank,
                 other.mask, thread.rank, thread.mask);
    }
}

unsigned long long answer(const Thread& thread, unsigned first, unsigned mask) {
    if (thread.operation == Operation::shuffle) {
        if (!(mask >> thread.source & 1))
            fail("thread %u reads lane %u in a shuffle that the lane takes no part in, %s:%d",
                 thread.rank, thread.source, thread.file, thread.line);
        return threads[first + thread.source].value;
    }
    unsigned long long bits = 0;
    for (unsigned lanes = mask; lanes; lanes &= lanes - 1) {
        unsigned lane = __builtin_ctz(lanes);
        unsigned long long value = threads[first + lane].value;
        bool set = thread.operation == Operation::match ? value == thread.value : value != 0;
        bits |= (unsigned long long)set << lane;
    }
    return bits;
}

void complete(Thread& thread) {
    unsigned first = thread.rank & ~31u, mask = thread.mask;
    check_lanes(thread, first);
    if (thread.operation == Operation::ballot) {
        unsigned long long bits = answer(thread, first, mask);
        for (unsigned lanes = mask; lanes; lanes &= lanes - 1)
            threads[first + __builtin_ctz(lanes)].result = bits;
    } else if (thread.operation != Operation::sync) {
        for (unsigned lanes = mask; lanes; lanes &= lanes - 1) {
            Thread& lane = threads[first + __builtin_ctz(lanes)];
            lane.result = answer(lane, first, mask);
        }
    }
    warps[thread.rank / 32].waiting &= ~mask;
    unsigned last = first + 31 - __builtin_clz(mask);
    make_ready(first + __builtin_ctz(mask), last, [=](Thread& lane) {
        return mask >> (lane.rank & 31) & 1;
    });
}

}  // namespace

unsigned long long warp_operation(Operation operation, unsigned mask, unsigned long long value,
                                  unsigned source, const char* file, int line) {
    Thread& thread = *current;
    Warp& warp = warps[thread.rank / 32];
    thread.state = State::at_warp_operation;
    thread.operation = operation;
    thread.mask = mask;
    thread.value = value;
    thread.source = source;
    thread.file = file;
    thread.line = line;
    unsigned bit = 1u << (thread.rank & 31);
    if (!(mask & bit))
        fail("the thread is not in the mask 0x%08x it gave to %s, %s:%d", mask, name_of(operation),
             file, line);
    if (mask & ~warp.present)
        fail("%s, %s:%d, waits for lane %d, which has left the kernel or is not part of the block",
             name_of(operation), file, line, __builtin_ctz(mask & ~warp.present));
    warp.waiting |= bit;
    if ((warp.waiting & mask) == mask) complete(thread);
    hand_over(*thread.fiber);
    return thread.result;
}

}  // namespace gtape_emulator
