// What stands beside each byte of device memory, as kernels look at it (checks.cpp).
#pragma once
#include <stdint.h>

constexpr unsigned char mark_allocated = 1, mark_was_written = 2;

extern uintptr_t gtape_simulated_region, gtape_simulated_region_bytes;
extern unsigned char* gtape_simulated_marks;
extern bool gtape_simulated_check_memory, gtape_simulated_check_unwritten;

// Ends the launch: an access of `bytes` at an address that a kernel may not touch so.
extern "C" void gtape_simulated_bad_access(uintptr_t address, unsigned long bytes, bool store,
                                           const void* code);
extern "C" void gtape_simulated_bad_alignment(uintptr_t address, unsigned alignment,
                                              const void* code);
// Whether memory outside the region belongs to what runs: stacks, shared memory, constants.
extern "C" bool gtape_simulated_own(uintptr_t address, unsigned long bytes);
