// Variables of which every thread has its own, in the runtime library.
#pragma once

#include <limits.h>

// A variable that every thread has from its start on. The usual way allocates it when a thread first
// asks for it, and ends the process where memory has run out; other C libraries know no other way
// for libraries that are loaded late.
#if defined(__GLIBC__)
#define GTAPE_OF_THREAD static thread_local __attribute__((tls_model("initial-exec")))
#else
#define GTAPE_OF_THREAD static thread_local
#endif
