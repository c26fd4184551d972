// Fibers: stacks that hand the processor to each other. Assembly for x86-64 and AArch64, where a
// switch is a few nanoseconds; <ucontext.h> elsewhere, where it is some hundred.
#pragma once

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(GTAPE_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define GTAPE_UCONTEXT
#endif
#ifdef GTAPE_UCONTEXT
#include <ucontext.h>
#endif

namespace gtape_emulator {

constexpr size_t stack_bytes = 256 * 1024;  // the lowest page of each stack may not be touched

struct Fiber {
#ifdef GTAPE_UCONTEXT
    ucontext_t context;
#endif
    void* top;            // the stack pointer while another fiber runs
    const void* bottom;   // of the stack
    size_t bytes;
    void* fake_stack;     // AddressSanitizer's
};

#ifndef GTAPE_UCONTEXT
// Keeps what a function must preserve on the stack, the stack pointer in *from; the reverse for to.
extern "C" void gtape_switch(void** from, void** to);
#endif

#if defined(GTAPE_UCONTEXT)
#elif defined(__x86_64__)
asm(R"(
.text
.p2align 4
.globl gtape_switch
.hidden gtape_switch
.type gtape_switch, @function
gtape_switch:
    subq $48, %rsp
    movq %rbx, 0(%rsp)
    movq %rbp, 8(%rsp)
    movq %r12, 16(%rsp)
    movq %r13, 24(%rsp)
    movq %r14, 32(%rsp)
    movq %r15, 40(%rsp)
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    movq 0(%rsp), %rbx
    movq 8(%rsp), %rbp
    movq 16(%rsp), %r12
    movq 24(%rsp), %r13
    movq 32(%rsp), %r14
    movq 40(%rsp), %r15
    movq 48(%rsp), %rcx
    addq $56, %rsp
    jmp *%rcx
.size gtape_switch, .-gtape_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.globl gtape_switch
.hidden gtape_switch
.type gtape_switch, %function
gtape_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    ldr x9, [x1]
    mov sp, x9
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size gtape_switch, .-gtape_switch
)");
#endif

// Lay out a stack so that the first switch to it enters `entry`, which never returns. Stacks that
// begin at the same offset would compete for the same lines of the cache: `bytes` should differ.
inline void prepare(Fiber& fiber, char* stack, size_t bytes, void (*entry)()) {
    fiber.bottom = stack;
    fiber.bytes = bytes;
    fiber.fake_stack = nullptr;
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack + getpagesize(), stack_bytes - getpagesize());
#endif
#if defined(GTAPE_UCONTEXT)
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack;
    fiber.context.uc_stack.ss_size = bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, entry, 0);
#else
    uintptr_t* end = reinterpret_cast<uintptr_t*>(stack + bytes);
#if defined(__x86_64__)
    uintptr_t* top = end - 8;  // six registers, where to go, and where it would return to
    for (int i = 0; i < 8; ++i) top[i] = 0;
    top[6] = reinterpret_cast<uintptr_t>(entry);
#else
    uintptr_t* top = end - 20;
    for (int i = 0; i < 20; ++i) top[i] = 0;
    top[11] = reinterpret_cast<uintptr_t>(entry);
#endif
    fiber.top = top;
#endif
}

inline void switch_to(Fiber& from, Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
#endif
#if defined(GTAPE_UCONTEXT)
    swapcontext(&from.context, &to.context);
#else
    gtape_switch(&from.top, &to.top);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// To be called first by the entry of a fiber: `starter` learns the bounds of its own stack.
inline void entered(Fiber& starter) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &starter.bottom, &starter.bytes);
#else
    (void)starter;
#endif
}

}  // namespace gtape_emulator
