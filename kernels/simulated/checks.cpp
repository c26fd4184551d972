// What every access of a kernel calls before it is made. It is linked into each library of kernels,
// whose compiler inserts the calls (-fsanitize=kernel-address,alignment); their names are GCC's.
#include "marks.h"

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

namespace {

template <typename Word> constexpr Word all(unsigned char mark) {
    return (Word)((Word)~(Word)0 / 255 * mark);  // small words become int between operations
}

// Whether the marks of sizeof(Word) bytes have all bits of `mark`.
template <typename Word> bool have(uintptr_t offset, unsigned char mark) {
    Word word;
    __builtin_memcpy(&word, gtape_simulated_marks + offset, sizeof word);
    return (word & all<Word>(mark)) == all<Word>(mark);
}

bool have(uintptr_t offset, unsigned long bytes, unsigned char mark) {
    for (unsigned long i = 0; i < bytes; ++i)
        if ((gtape_simulated_marks[offset + i] & mark) != mark) return false;
    return true;
}

bool in_region(uintptr_t address) {
    return address - gtape_simulated_region < gtape_simulated_region_bytes;
}

unsigned char readable() {
    return gtape_simulated_check_unwritten ? mark_allocated | mark_was_written : mark_allocated;
}

void outside(uintptr_t address, unsigned long bytes, bool store, const void* code) {
    if (!gtape_simulated_own(address, bytes))
        gtape_simulated_bad_access(address, bytes, store, code);
}

template <typename Word> void load(uintptr_t address, const void* code) {
    if (!gtape_simulated_check_memory) return;
    if (!in_region(address)) outside(address, sizeof(Word), false, code);
    else if (!have<Word>(address - gtape_simulated_region, readable()))
        gtape_simulated_bad_access(address, sizeof(Word), false, code);
}

template <typename Word> void store(uintptr_t address, const void* code) {
    if (!gtape_simulated_check_memory) return;
    if (!in_region(address)) return outside(address, sizeof(Word), true, code);
    uintptr_t offset = address - gtape_simulated_region;
    if (!have<Word>(offset, mark_allocated))
        gtape_simulated_bad_access(address, sizeof(Word), true, code);
    Word word = all<Word>(mark_allocated | mark_was_written);
    __builtin_memcpy(gtape_simulated_marks + offset, &word, sizeof word);
}

struct Place { const char* file; unsigned line, column; };
struct Mismatch { Place place; const void* type; unsigned char log_alignment, kind; };

}  // namespace

#define CODE __builtin_return_address(0)
#define ACCESSES(bytes, Word)                                                              \
    HIDDEN void __asan_load##bytes##_noabort(uintptr_t address) { load<Word>(address, CODE); } \
    HIDDEN void __asan_store##bytes##_noabort(uintptr_t address) { store<Word>(address, CODE); }
ACCESSES(1, uint8_t)
ACCESSES(2, uint16_t)
ACCESSES(4, uint32_t)
ACCESSES(8, uint64_t)
ACCESSES(16, unsigned __int128)

HIDDEN void __asan_loadN_noabort(uintptr_t address, unsigned long bytes) {
    if (!gtape_simulated_check_memory) return;
    if (!in_region(address)) outside(address, bytes, false, CODE);
    else if (!have(address - gtape_simulated_region, bytes, readable()))
        gtape_simulated_bad_access(address, bytes, false, CODE);
}
HIDDEN void __asan_storeN_noabort(uintptr_t address, unsigned long bytes) {
    if (!gtape_simulated_check_memory) return;
    if (!in_region(address)) return outside(address, bytes, true, CODE);
    uintptr_t offset = address - gtape_simulated_region;
    if (!have(offset, bytes, mark_allocated))
        gtape_simulated_bad_access(address, bytes, true, CODE);
    __builtin_memset(gtape_simulated_marks + offset, mark_allocated | mark_was_written, bytes);
}
// A launch that fails leaves its stacks as they are; nothing is cleaned up behind it.
HIDDEN void __asan_handle_no_return() {}
HIDDEN void __asan_after_dynamic_init() {}
HIDDEN void __asan_before_dynamic_init(const void*) {}

HIDDEN void __ubsan_handle_type_mismatch_v1(const Mismatch* data, uintptr_t address) {
    gtape_simulated_bad_alignment(address, 1u << data->log_alignment, CODE);
}
