// The runtime of the emulator: it runs the threads of one block at a time as fibers.
//
// A fiber takes the next thread that has not started, runs it to its end or its first barrier,
// and only there hands over to another one: a block without barriers needs a single fiber. Which
// thread comes next is the schedule: ascending and descending rank, or drawn at random at every
// barrier, warp operation and atomic. The threads of a warp never run in lockstep.
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include <pthread.h>
#include <sys/time.h>

#include "emulator_runtime.h"
#include "emulator_fibers.h"

namespace gtape_emulator {

Thread* current;
uint3 block_index;
dim3 block_size, grid_size;
unsigned char* dynamic_shared;
bool interleaving;

namespace {

constexpr unsigned max_threads = 1024, max_dynamic = 227 * 1024, guard = 256;
enum Schedule { ascending, descending, drawn };

struct Warp { unsigned present, waiting; };  // bits of lanes that have not left; that wait

Thread threads[max_threads];
Warp warps[max_threads / 32];
Thread* ready[max_threads];  // a stack: the last one is next
Fiber fibers[max_threads], outside;
Fiber* parked[max_threads];
unsigned ready_count, parked_count, fiber_count, block_threads, alive, arrived;
char* stacks;
alignas(128) unsigned char dynamic_memory[guard + max_dynamic + guard];
Schedule schedule;
uint64_t random_state;
Body body;
void** arguments;
bool failed;
char message[2048];

unsigned drawn_below(unsigned count) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((random_state >> 32) * count >> 32);
}

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
    if (warp.waiting) {
        unsigned lane = __builtin_ctz(warp.waiting);
        const Thread& other = threads[(thread.rank & ~31u) + lane];
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

// ---------------------------------------------------------------- warp operations

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

void pause() {
    Thread& thread = *current;
    ready[ready_count++] = &thread;
    if (schedule != drawn) {  // the one that pauses comes last
        memmove(ready + 1, ready, (ready_count - 1) * sizeof *ready);
        ready[0] = &thread;
    }
    hand_over(*thread.fiber);
}

void stop(const char* why, const char* file, int line) { fail("%s, %s:%d", why, file, line); }

// ---------------------------------------------------------------- blocks

namespace {

// Bytes that are nan in every float type, and no likely integer.
void poison(unsigned char* begin, size_t size) {
    while (size && reinterpret_cast<uintptr_t>(begin) % 2) *begin++ = 0xff, --size;
    unsigned short* words = reinterpret_cast<unsigned short*>(begin);
    for (size_t i = 0; i < size / 2; ++i) words[i] = 0xfffd;
    if (size % 2) begin[size - 1] = 0xfd;
}

void check_guard(const unsigned char* zone, long long offset) {
    for (unsigned i = 0; i < guard; ++i)
        if (zone[i] != (i % 2 ? 0xff : 0xfd)) {
            snprintf(message, sizeof message, "wrote outside its dynamic shared memory, at byte "
                     "%lld (block (%u, %u, %u))", offset + i, block_index.x, block_index.y,
                     block_index.z);
            failed = true;
            return;
        }
}

void start_block(unsigned long long linear) {
    block_index = {(unsigned)(linear % grid_size.x), (unsigned)(linear / grid_size.x % grid_size.y),
                   (unsigned)(linear / grid_size.x / grid_size.y)};
    unsigned rank = 0;
    for (unsigned z = 0; z < block_size.z; ++z)
        for (unsigned y = 0; y < block_size.y; ++y)
            for (unsigned x = 0; x < block_size.x; ++x, ++rank) {
                threads[rank].index = {x, y, z};
                threads[rank].rank = rank;
                threads[rank].fiber = nullptr;
            }
    for (unsigned w = 0; w * 32 < rank; ++w)
        warps[w] = {rank - w * 32 >= 32 ? ~0u : (1u << (rank & 31)) - 1, 0};
    alive = rank;
    arrived = ready_count = 0;
    make_ready(0, rank - 1, [](Thread&) { return true; });
}

struct Launch {
    Body body;
    void** arguments;
    unsigned grid[3], block[3];
    unsigned long long dynamic, seed;
    int schedule, seconds;
    unsigned char *shared_begin, *shared_end;
    char* message;
    unsigned long long message_size;
};

void run_block(const Launch& launch, unsigned long long linear) {
    poison(launch.shared_begin, launch.shared_end - launch.shared_begin);
    poison(dynamic_memory, launch.dynamic + 2 * guard);
    start_block(linear);
    current = nullptr;
    hand_over(outside);
    if (failed) return;
    check_guard(dynamic_memory, -(long long)guard);
    if (!failed) check_guard(dynamic_memory + guard + launch.dynamic, launch.dynamic);
}

void run_blocks(const Launch& launch) {
    unsigned long long blocks = 1ull * grid_size.x * grid_size.y * grid_size.z;
    std::vector<unsigned> order(schedule == drawn ? blocks : 0);
    std::iota(order.begin(), order.end(), 0u);
    for (unsigned i = (unsigned)order.size(); i > 1; --i)
        std::swap(order[i - 1], order[drawn_below(i)]);
    for (unsigned long long i = 0; i < blocks && !failed; ++i)
        run_block(launch, schedule == ascending ? i : schedule == descending ? blocks - 1 - i
                                                                             : order[i]);
}

// ---------------------------------------------------------------- signals

sigjmp_buf escape;
pthread_t launcher;

void caught(int signal, siginfo_t* info, void*) {
    if (!pthread_equal(pthread_self(), launcher)) {
        if (signal == SIGVTALRM) {
            pthread_kill(launcher, signal);
            return;
        }
        struct sigaction usual = {};
        usual.sa_handler = SIG_DFL;
        sigaction(signal, &usual, nullptr);
        return;  // the instruction is repeated
    }
    const char* what = signal == SIGVTALRM ? "did not end in the time given"
                       : signal == SIGFPE  ? "divided an integer by zero"
                                           : "touched memory that is not there";
    char where[40] = "";
    if (signal == SIGSEGV || signal == SIGBUS)
        snprintf(where, sizeof where, ", at the address 0x%llx",
                 (unsigned long long)info->si_addr);
    snprintf(message, sizeof message, "%s%s (thread %u of block (%u, %u, %u))", what, where,
             current ? current->rank : 0, block_index.x, block_index.y, block_index.z);
    failed = true;
    siglongjmp(escape, 1);
}

void run_guarded(const Launch& launch) {
#if defined(__SANITIZE_ADDRESS__)
    run_blocks(launch);  // AddressSanitizer explains faults better
#else
    static char signal_stack[64 * 1024];
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM};
    struct sigaction ours = {}, theirs[4];
    stack_t stack = {}, their_stack;
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof signal_stack;
    sigaltstack(&stack, &their_stack);
    ours.sa_sigaction = caught;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 4; ++i) sigaction(signals[i], &ours, &theirs[i]);
    itimerval limit = {{0, 0}, {launch.seconds, 0}}, none = {};
    launcher = pthread_self();
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
    if (!sigsetjmp(escape, 1)) run_blocks(launch);
    setitimer(ITIMER_VIRTUAL, &none, nullptr);
    for (int i = 0; i < 4; ++i) sigaction(signals[i], &theirs[i], nullptr);
    sigaltstack(&their_stack, nullptr);
#endif
}

bool make_stacks() {
    if (stacks) return true;
    void* memory = mmap(nullptr, stack_bytes * max_threads, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    stacks = static_cast<char*>(memory);
    for (unsigned i = 0; i < max_threads; ++i)
        mprotect(stacks + stack_bytes * i, getpagesize(), PROT_NONE);
    return true;
}

const char* refusal(const Launch& launch) {
    unsigned long long size = 1ull * launch.block[0] * launch.block[1] * launch.block[2];
    if (size == 0 || size > max_threads || launch.block[2] > 64)
        return "a block has 1 to 1024 threads, at most 64 of them in z";
    for (int i = 0; i < 3; ++i)
        if (launch.grid[i] == 0 || launch.grid[i] > (i ? 65535u : 2147483647u))
            return "a grid has 1 to 2147483647 blocks in x and 1 to 65535 in y and z";
    if (launch.dynamic > max_dynamic)
        return "a block has at most 227 KB (232448 bytes) of dynamic shared memory";
    return make_stacks() ? nullptr : "no address space is left for the stacks of a block";
}

}  // namespace
}  // namespace gtape_emulator

using namespace gtape_emulator;

// Runs a grid. 0, or 1 with what went wrong in launch.message.
extern "C" int gtape_emulator_launch(const Launch* given) {
    const Launch& launch = *given;
    const char* refused = refusal(launch);
    failed = refused != nullptr;
    message[0] = 0;
    if (refused) {
        snprintf(message, sizeof message, "%s", refused);
    } else {
        grid_size = {launch.grid[0], launch.grid[1], launch.grid[2]};
        block_size = {launch.block[0], launch.block[1], launch.block[2]};
        block_threads = block_size.x * block_size.y * block_size.z;
        dynamic_shared = dynamic_memory + guard;
        body = launch.body;
        arguments = launch.arguments;
        schedule = static_cast<Schedule>(launch.schedule);
        interleaving = schedule == drawn;
        random_state = launch.seed;
        run_guarded(launch);
        if (failed) parked_count = fiber_count = 0;  // their threads never came to an end
    }
    snprintf(launch.message, launch.message_size, "%s", message);
    return failed;
}

// ---------------------------------------------------------------- checks that the compiler inserts

#if !defined(__SANITIZE_ADDRESS__)
// -fsanitize=alignment,bounds calls these; libubsan, which usually has them, is not linked.
struct SourcePlace { const char* file; unsigned line, column; };
struct Mismatch { SourcePlace place; const void* type; unsigned char log_alignment, kind; };

extern "C" void __ubsan_handle_type_mismatch_v1(const Mismatch* data, uintptr_t address) {
    unsigned alignment = 1u << data->log_alignment;
    fail("an access that is aligned to %u bytes, at the address 0x%llx, %s:%u", alignment,
         (unsigned long long)address, data->place.file, data->place.line);
}
extern "C" void __ubsan_handle_out_of_bounds(const SourcePlace* place, uintptr_t index) {
    fail("the index %lld is outside the array, %s:%u", (long long)index, place->file, place->line);
}
#endif
