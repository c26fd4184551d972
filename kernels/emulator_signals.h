// Faults of a kernel as errors of its launch: memory that is not there, a division by zero, and a
// launch without end. Part of emulator.cpp.
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "emulator_schedule.h"

namespace gtape_emulator {
namespace {

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

// Calls run(), which may use `seconds` of CPU time.
template <typename Run> void run_guarded(int seconds, Run run) {
#if defined(__SANITIZE_ADDRESS__)
    (void)seconds;
    run();  // AddressSanitizer explains faults better
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
    itimerval limit = {{0, 0}, {seconds, 0}}, none = {};
    launcher = pthread_self();
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
    if (!sigsetjmp(escape, 1)) run();
    setitimer(ITIMER_VIRTUAL, &none, nullptr);
    for (int i = 0; i < 4; ++i) sigaction(signals[i], &theirs[i], nullptr);
    sigaltstack(&their_stack, nullptr);
#endif
}

}  // namespace
}  // namespace gtape_emulator
