// The pool of threads that all generated programs share.
//
// The caller of gtape_parallel and the workers claim parts one by one, so a worker that sleeps or
// is held up by the system delays nobody: the others do its share. A worker that finds nothing to
// do spins for a moment, because the next loop mostly follows at once, and sleeps then.
#pragma once

#define GTAPE_EXPORT extern "C" __attribute__((visibility("default")))

// The number of threads of a parallel loop, the caller's included; at least 1.
GTAPE_EXPORT int gtape_threads(void);
GTAPE_EXPORT void gtape_set_threads(int count);

// Calls body(context, part, parts) once for every part in [0, parts) and returns when all calls
// have. Inside a part, or while another thread uses the pool, the calls are made one by one.
GTAPE_EXPORT void gtape_parallel(void (*body)(void* context, int part, int parts), void* context,
                                 int parts);
