// Streams, events and graphs of the simulated GPU.
#pragma once
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "simulated.h"

struct CUgraph_st { std::vector<simulated::Operation> operations; };

namespace simulated {

// What begins with cudaStreamBeginCapture and ends with the graph.
struct Capture {
    CUgraph_st* graph = new CUgraph_st;
    CUstream origin = nullptr;
    int mode = 0;                 // 0 global, 1 of this thread, 2 relaxed
    unsigned long thread = 0;
    bool invalid = false;
    std::set<CUstream> streams;   // those that record into it
};

}  // namespace simulated

struct CUstream_st {
    unsigned flags = 0;           // 1: does not wait for the legacy stream
    int priority = 0, device = 0;
    std::deque<simulated::Operation> waiting;   // not run yet, where operations are delayed
    unsigned long submitted = 0, finished = 0;  // operations, counted from its beginning
    std::shared_ptr<simulated::Capture> capture;
    unsigned long recorded = 0, joined = 0;     // operations of the capture; those waited for
};

struct CUevent_st {
    unsigned flags = 0;           // 2: without time
    bool recorded = false, finished = true;
    double seconds = 0;
    CUstream stream = nullptr;
    unsigned long place = 0;      // in the stream
    std::shared_ptr<simulated::Capture> capture;
};
