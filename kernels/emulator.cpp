// The runtime of the emulator: it runs the threads of one block at a time as fibers.
//
// A fiber takes the next thread that has not started, runs it to its end or its first barrier,
// and only there hands over to another one: a block without barriers needs a single fiber. Which
// thread comes next is the schedule: ascending and descending rank, or drawn at random at every
// barrier, warp operation and atomic. The threads of a warp never run in lockstep.
#include <numeric>
#include <utility>
#include <vector>

#include "emulator_schedule.h"
#include "emulator_signals.h"
#include "emulator_warps.h"

namespace gtape_emulator {
namespace {

constexpr unsigned max_dynamic = 227 * 1024, guard = 256;
alignas(128) unsigned char dynamic_memory[guard + max_dynamic + guard];

// Bytes that are nan in every float type, and no likely integer. They cover the zones that
// AddressSanitizer puts between shared arrays too.
__attribute__((no_sanitize_address)) void poison(unsigned char* begin, size_t size) {
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
    current = nullptr;
    poison(launch.shared_begin, launch.shared_end - launch.shared_begin);
    poison(dynamic_memory, launch.dynamic + 2 * guard);
    start_block(linear);
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
        run_guarded(launch.seconds, [&] { run_blocks(launch); });
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
