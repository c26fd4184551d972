// Settings of the simulated GPU: numbers and words in the environment, read once.
#include "simulated.h"

namespace simulated {

long setting(const char* name, long otherwise) {
    const char* value = getenv((std::string("GTAPE_SIMULATED_") + name).c_str());
    return value && *value ? strtol(value, nullptr, 0) : otherwise;
}

bool checks(const char* what) {
    const char* value = getenv("GTAPE_SIMULATED_CHECK");
    if (!value || !*value) return true;
    std::string words = std::string(",") + value + ",";
    return words.find(std::string(",") + what + ",") != std::string::npos;
}

int devices() {
    static const int count = (int)setting("DEVICES", 1);
    return count < 0 ? 0 : count > 16 ? 16 : count;
}

size_t memory_of_device() {
    static const size_t bytes = (size_t)setting("MEMORY_MB", 4096) << 20;
    return bytes;
}

int compute_capability() {
    static const int number = (int)setting("CAPABILITY", 90);
    return number;
}

}  // namespace simulated
