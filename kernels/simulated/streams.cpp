// Streams: operations run when they are submitted, or, with GTAPE_SIMULATED_ASYNC=1, as late as a
// GPU could run them: when something waits for them. What only worked by luck shows then.
#include "streams.h"

#include <pthread.h>
#include <time.h>

#include <mutex>

namespace simulated {
namespace {

// One operation runs at a time. Those that call Python need its lock, so nobody may wait for this
// one while holding that.
std::recursive_mutex running;
std::mutex guard;                                   // of the lists below
std::set<CUstream> streams;
std::set<std::shared_ptr<Capture>> captures;
CUstream_st legacy[16];
thread_local CUstream_st own[16];                   // the stream 2 of each thread

constexpr unsigned non_blocking = 1;

bool delayed() {
    static const bool value = setting("ASYNC", 0) != 0;
    return value;
}

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

CUstream real(CUstream stream) {
    if ((uintptr_t)stream <= 1) return &legacy[device];
    return (uintptr_t)stream == 2 ? &own[device] : stream;
}

bool is_legacy(CUstream stream) { return stream >= legacy && stream < legacy + 16; }

int done(int status) {
    if (status && !faulted())
        fault(status, std::string("an operation failed after it was submitted: ") +
                          error_name(status));
    return status;
}

// Runs what waits in a stream, up to its operation number `place`.
int drain(CUstream stream, unsigned long place) {
    std::lock_guard<std::recursive_mutex> held(running);
    while (stream->finished < place && !stream->waiting.empty()) {
        Operation operation = std::move(stream->waiting.front());
        stream->waiting.pop_front();
        int status = faulted() ? 0 : operation();
        ++stream->finished;
        if (status) return done(status);
    }
    return faulted();
}

int drain(CUstream stream) { return drain(stream, stream->submitted); }

void append(CUstream stream, Operation operation) {
    stream->waiting.push_back(std::move(operation));
    ++stream->submitted;
}

std::vector<CUstream> blocking(int of_device) {
    std::lock_guard<std::mutex> held(guard);
    std::vector<CUstream> found;
    for (CUstream stream : streams)
        if (stream->device == of_device && !(stream->flags & non_blocking)) found.push_back(stream);
    found.push_back(&own[of_device]);
    return found;
}

// The legacy stream waits for all blocking streams, and they for it.
void order(CUstream stream) {
    auto wait = [stream](CUstream other) {
        if (other->waiting.empty()) return;
        unsigned long place = other->submitted;
        append(stream, [=] { return drain(other, place); });
    };
    if (is_legacy(stream))
        for (CUstream other : blocking(stream->device)) wait(other);
    else if (!(stream->flags & non_blocking))
        wait(&legacy[stream->device]);
}

int invalidate(Capture& capture, int status) {
    capture.invalid = true;
    return failed(status);
}

// Work on the legacy stream would wait for every blocking stream; one that records cannot be waited
// for.
int refused_by_captures(CUstream stream) {
    if (!is_legacy(stream)) return 0;
    std::lock_guard<std::mutex> held(guard);
    for (auto& capture : captures)
        for (CUstream other : capture->streams)
            if (other->device == stream->device && !(other->flags & non_blocking))
                return invalidate(*capture, cudaErrorStreamCaptureImplicit);
    return 0;
}

int enqueue(CUstream stream, Operation operation) {
    if (!delayed()) {
        std::lock_guard<std::recursive_mutex> held(running);
        int status = operation();
        ++stream->submitted, ++stream->finished;
        return failed(status);
    }
    order(stream);
    append(stream, std::move(operation));
    return 0;
}

}  // namespace

int submit(CUstream given, Operation operation) {
    CUstream stream = real(given);
    if (int status = faulted()) return failed(status);
    if (auto capture = stream->capture) {
        if (capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
        capture->graph->operations.push_back(std::move(operation));
        ++stream->recorded;
        return 0;
    }
    if (int status = refused_by_captures(stream)) return status;
    return enqueue(stream, std::move(operation));
}

int submit_outside_graphs(CUstream given, Operation operation) {
    CUstream stream = real(given);
    if (!stream->capture && delayed()) return enqueue(stream, std::move(operation));
    std::lock_guard<std::recursive_mutex> held(running);
    return failed(operation());
}

int synchronize() {
    std::vector<CUstream> all;
    {
        std::lock_guard<std::mutex> held(guard);
        all.assign(streams.begin(), streams.end());
    }
    for (int i = 0; i < devices(); ++i) all.push_back(&legacy[i]), all.push_back(&own[i]);
    for (CUstream stream : all)
        if (int status = drain(stream)) return failed(status);
    return failed(faulted());
}

int forbidden_while_capturing() {
    std::lock_guard<std::mutex> held(guard);
    for (auto& capture : captures)
        if (capture->mode == 0 || (capture->mode == 1 && capture->thread == pthread_self()))
            return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
    return 0;
}

bool is_captured(CUstream stream) { return real(stream)->capture != nullptr; }

// Waiting for a stream that records is an error that ends the capture.
static int refused_wait(CUstream stream) {
    return stream->capture ? invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported) : 0;
}

}  // namespace simulated

using namespace simulated;

extern "C" {

int cudaDeviceSynchronize() {
    if (int status = forbidden_while_capturing()) return status;
    return synchronize();
}

int cudaStreamCreateWithPriority(CUstream* to, unsigned flags, int priority) {
    *to = new CUstream_st;
    (*to)->flags = flags;
    (*to)->priority = priority;
    (*to)->device = device;
    std::lock_guard<std::mutex> held(guard);
    streams.insert(*to);
    return 0;
}
int cudaStreamCreateWithFlags(CUstream* to, unsigned flags) {
    return cudaStreamCreateWithPriority(to, flags, 0);
}
int cudaStreamCreate(CUstream* to) { return cudaStreamCreateWithPriority(to, 0, 0); }

static bool known(CUstream stream) {
    std::lock_guard<std::mutex> held(guard);
    return streams.count(stream);
}

int cudaStreamDestroy(CUstream stream) {
    if (!known(stream)) return failed(cudaErrorInvalidResourceHandle);
    drain(stream);
    std::lock_guard<std::mutex> held(guard);
    streams.erase(stream);
    delete stream;
    return 0;
}
int cudaStreamGetFlags(CUstream stream, unsigned* to) { *to = real(stream)->flags; return 0; }
int cudaStreamGetPriority(CUstream stream, int* to) { *to = real(stream)->priority; return 0; }

int cudaStreamSynchronize(CUstream given) {
    CUstream stream = real(given);
    if (int status = refused_wait(stream)) return status;
    order(stream);
    return failed(drain(stream));
}

int cudaStreamQuery(CUstream given) {
    CUstream stream = real(given);
    if (int status = refused_wait(stream)) return status;
    if (stream->waiting.empty()) return failed(faulted());
    drain(stream);  // who asks again and again shall see it end
    return cudaErrorNotReady;
}

int cudaStreamAddCallback(CUstream stream, cudaStreamCallback_t call, void* data, unsigned) {
    if (int status = refused_wait(real(stream))) return status;
    return submit(stream, [=] { call(stream, 0, data); return 0; });
}
int cudaLaunchHostFunc(CUstream stream, cudaHostFn_t call, void* data) {
    return submit(stream, [=] { call(data); return 0; });
}

// ---------------------------------------------------------------- events

int cudaEventCreateWithFlags(CUevent* to, unsigned flags) {
    *to = new CUevent_st;
    (*to)->flags = flags;
    return 0;
}
int cudaEventCreate(CUevent* to) { return cudaEventCreateWithFlags(to, 0); }
// An operation that waits may name it still.
int cudaEventDestroy(CUevent) { return 0; }

int cudaEventRecord(CUevent event, CUstream given) {
    CUstream stream = real(given);
    event->stream = stream;
    event->capture = stream->capture;
    event->recorded = true;
    if (stream->capture) {
        event->place = stream->recorded;
        return 0;
    }
    event->finished = false;
    int status = submit(given, [=] {
        event->seconds = now();
        event->finished = true;
        return 0;
    });
    event->place = stream->submitted;
    return status;
}

int cudaStreamWaitEvent(CUstream given, CUevent event, unsigned) {
    CUstream stream = real(given);
    if (!event->recorded) return 0;
    if (event->capture) {
        if (stream->capture && stream->capture != event->capture)
            return invalidate(*event->capture, cudaErrorStreamCaptureUnsupported);
        if (!stream->capture) {
            stream->capture = event->capture;
            stream->recorded = 1;  // it has begun, so that it must be joined
            stream->joined = 0;
            stream->capture->streams.insert(stream);
        }
        if (event->stream->joined < event->place + 1) event->stream->joined = event->place + 1;
        ++stream->recorded;
        return 0;
    }
    if (stream->capture) return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported);
    if (!delayed() || event->finished) return 0;
    CUstream other = event->stream;
    unsigned long place = event->place;
    return enqueue(stream, [=] { return event->finished ? 0 : drain(other, place); });
}

static int waited(CUevent event) {
    if (event->capture) return failed(cudaErrorCapturedEvent);
    return event->finished ? 0 : drain(event->stream, event->place);
}
int cudaEventSynchronize(CUevent event) {
    int status = waited(event);
    return failed(status ? status : faulted());
}
int cudaEventQuery(CUevent event) {
    bool ready = event->finished;
    int status = waited(event);
    if (!status) status = faulted();
    return status ? failed(status) : ready ? 0 : cudaErrorNotReady;
}
int cudaEventElapsedTime(float* milliseconds, CUevent first, CUevent last) {
    if (!first->recorded || !last->recorded || (first->flags | last->flags) & 2)
        return failed(cudaErrorInvalidResourceHandle);
    if (!first->finished || !last->finished) return failed(cudaErrorNotReady);
    *milliseconds = (float)((last->seconds - first->seconds) * 1e3);
    return 0;
}

// ---------------------------------------------------------------- graphs

int cudaStreamBeginCapture(CUstream given, int mode) {
    CUstream stream = real(given);
    if (is_legacy(stream)) return failed(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return failed(cudaErrorInvalidValue);
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->streams.insert(stream);
    stream->capture = capture;
    stream->recorded = stream->joined = 0;
    std::lock_guard<std::mutex> held(guard);
    captures.insert(capture);
    return 0;
}

int cudaStreamEndCapture(CUstream given, cudaGraph_t* to) {
    CUstream stream = real(given);
    *to = nullptr;
    auto capture = stream->capture;
    if (!capture) return failed(cudaErrorInvalidValue);
    if (capture->origin != stream)
        return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
    bool unjoined = false;
    for (CUstream other : capture->streams) {
        unjoined |= other != stream && other->recorded >= other->joined;
        other->capture = nullptr;
    }
    {
        std::lock_guard<std::mutex> held(guard);
        captures.erase(capture);
    }
    if (capture->invalid || unjoined) {
        delete capture->graph;
        return failed(capture->invalid ? cudaErrorStreamCaptureInvalidated
                                       : cudaErrorStreamCaptureUnjoined);
    }
    *to = capture->graph;
    return 0;
}

int cudaStreamIsCapturing(CUstream given, cudaStreamCaptureStatus* to) {
    CUstream stream = real(given);
    *to = !stream->capture ? cudaStreamCaptureStatusNone
          : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    return 0;
}

int cudaGraphInstantiate(cudaGraphExec_t* to, cudaGraph_t graph, unsigned long long) {
    *to = new CUgraph_st(*graph);
    return 0;
}
int cudaGraphLaunch(cudaGraphExec_t graph, CUstream stream) {
    std::vector<Operation> operations = graph->operations;  // the graph may be destroyed meanwhile
    return submit(stream, [=] {
        for (auto& operation : operations)
            if (int status = operation()) return status;
        return 0;
    });
}
int cudaGraphUpload(cudaGraphExec_t, CUstream) { return 0; }
int cudaGraphDestroy(cudaGraph_t graph) { delete graph; return 0; }
int cudaGraphExecDestroy(cudaGraphExec_t graph) { delete graph; return 0; }

// Work of a library that Python stands in for: run(token) now, later or at each launch of a graph.
// It may touch device memory.
int gtape_simulated_submit(CUstream stream, int (*run)(void*), void* token) {
    return submit(stream, [=] {
        Opened opened;
        return run(token);
    });
}
int gtape_simulated_is_captured(CUstream stream) { return is_captured(stream); }

}  // extern "C"
