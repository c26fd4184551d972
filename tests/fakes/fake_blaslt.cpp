// cuBLASLt on the CPU, in plain loops: the C interface of cublasLt.h as far as gtape calls it.
//
// It is a checker. What the header's comments forbid gives INVALID_VALUE (unknown attributes, wrong
// sizes, missing pointers, layouts that contradict each other); what the library does not offer
// gives NOT_SUPPORTED (alignment, distances of aux rows). An algorithm remembers what it was chosen
// for and refuses other calls. Column-major; sums in double; one rounding at the end.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

enum { SUCCESS = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };
enum { RELU = 2, BIAS = 4, DRELU = 8, BGRAD = 16, GELU = 32, DGELU = 64, AUX = 128, BGRADA = 256,
       BGRADB = 512 };
const uint64_t MAGIC = 0x67746170;

// ------------------------------------------------------------------ numbers

float from_half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? std::ldexp(1024.f + fraction, exponent - 25)
                                     : std::ldexp((float)fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t to_half(float value) {
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    float x = std::fabs(value);
    if (std::isnan(value)) return sign | 0x7e00;
    if (x >= 65520.f) return sign | 0x7c00;
    if (x < 6.103515625e-05f) return sign | (uint16_t)std::lrint(std::ldexp(x, 24));
    int exponent;
    float fraction = std::frexp(x, &exponent);  // in [1/2, 1)
    return sign | (uint16_t)(((exponent + 13) << 10) + std::lrint(std::ldexp(fraction, 11)));
}

float from_bfloat(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
}

uint16_t to_bfloat(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    if (std::isnan(value)) return (uint16_t)(wide >> 16 | 0x40);
    return (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

int size_of(int type) { return type == R_64F ? 8 : type == R_32F ? 4 : 2; }

double load(int type, const void* data, int64_t i) {
    switch (type) {
        case R_64F: return ((const double*)data)[i];
        case R_32F: return ((const float*)data)[i];
        case R_16F: return from_half(((const uint16_t*)data)[i]);
        default: return from_bfloat(((const uint16_t*)data)[i]);
    }
}

void store(int type, void* data, int64_t i, double value) {
    switch (type) {
        case R_64F: ((double*)data)[i] = value; break;
        case R_32F: ((float*)data)[i] = (float)value; break;
        case R_16F: ((uint16_t*)data)[i] = to_half((float)value); break;
        default: ((uint16_t*)data)[i] = to_bfloat((float)value);
    }
}

const double C0 = 0.7978845608028654, C1 = 0.044715;
double gelu(double x) { return 0.5 * x * (1 + std::tanh(C0 * (x + C1 * x * x * x))); }
double gelu_slope(double x) {
    double t = std::tanh(C0 * (x + C1 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * C0 * (1 + 3 * C1 * x * x);
}

// ------------------------------------------------------------------ descriptors

struct Layout {
    int type;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch = 1;
    int64_t step = 0;
};

struct Desc {
    int compute, scale;
    int32_t transa = 0, transb = 0;
    uint32_t epilogue = 1;
    char* bias = nullptr;
    char* aux = nullptr;
    int64_t aux_ld = 0;
};

struct Preference {
    uint64_t workspace = 0;
    uint32_t scheme = 7, alignment[4] = {256, 256, 256, 256};
};

struct Algo {  // 64 bytes, as the library's
    uint64_t magic, m, n, k, epilogue, alignment, workspace, batch;
};

struct Result {
    Algo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

template <typename T> int put(T& target, const void* from, size_t size) {
    if (!from || size != sizeof(T)) return INVALID_VALUE;
    std::memcpy(&target, from, sizeof(T));
    return SUCCESS;
}

template <typename T> int destroyed(void* made) {
    if (!made) return INVALID_VALUE;
    delete (T*)made;
    return SUCCESS;
}

bool known(uint32_t e) {
    switch (e) {
        case 1: case RELU: case BIAS: case RELU | BIAS: case RELU | AUX: case RELU | AUX | BIAS:
        case DRELU | AUX: case DRELU | AUX | BGRAD: case GELU: case GELU | BIAS: case GELU | AUX:
        case GELU | AUX | BIAS: case DGELU | AUX: case DGELU | AUX | BGRAD: case BGRADA:
        case BGRADB: return true;
    }
    return false;
}

bool aligned(const void* p, uint64_t bytes) { return ((uint64_t)p & (bytes - 1)) == 0; }

// ------------------------------------------------------------------ what is forbidden

struct Problem {
    uint64_t m, n, k;
};

int checked(const Desc& d, const Layout& a, const Layout& b, const Layout& c, Problem& p) {
    for (const Layout* x : {&a, &b, &c}) {
        if (!x->rows || !x->cols || x->ld < (int64_t)x->rows || x->batch < 1) return INVALID_VALUE;
        if (x->type != a.type || x->batch != c.batch) return INVALID_VALUE;
        if (x->rows > INT32_MAX || x->cols > INT32_MAX) return NOT_SUPPORTED;
    }
    p = {d.transa ? a.cols : a.rows, d.transb ? b.rows : b.cols, d.transa ? a.rows : a.cols};
    if ((d.transb ? b.cols : b.rows) != p.k || c.rows != p.m || c.cols != p.n) return INVALID_VALUE;
    bool wide = a.type == R_64F;
    if (d.scale != (wide ? R_64F : R_32F)) return INVALID_VALUE;
    if (wide ? d.compute != COMPUTE_64F
             : d.compute != COMPUTE_32F && !(a.type == R_32F && d.compute == COMPUTE_32F_FAST_TF32))
        return INVALID_VALUE;
    if (!known(d.epilogue)) return INVALID_VALUE;
    bool bias = d.epilogue & (BIAS | BGRAD | BGRADA | BGRADB);
    if (bias != (d.bias != nullptr) || bool(d.epilogue & AUX) != (d.aux != nullptr))
        return INVALID_VALUE;
    if (c.batch > 1 && d.epilogue & (AUX | BGRAD | BGRADA | BGRADB)) return INVALID_VALUE;
    if (d.epilogue & AUX) {
        if (d.aux_ld < (int64_t)p.m) return INVALID_VALUE;
        if (d.aux_ld % (d.epilogue & (RELU | DRELU) ? 128 : 8)) return NOT_SUPPORTED;
        if (!aligned(d.aux, 16)) return NOT_SUPPORTED;
    }
    return SUCCESS;
}

// ------------------------------------------------------------------ the product

double at(const Layout& x, const void* data, int transposed, int64_t batch, uint64_t r,
          uint64_t c) {
    int64_t i = transposed ? (int64_t)r * x.ld + c : (int64_t)c * x.ld + r;
    return load(x.type, data, batch * x.step + i);
}

double activated(const Desc& d, int type, int64_t row, int64_t column, double z) {
    uint32_t e = d.epilogue;
    int64_t i = column * d.aux_ld + row;
    char* byte = d.aux + i / 8;
    if (e & BIAS) z += load(type, d.bias, row);
    if (e & RELU) {
        if (e & AUX) *byte = (char)((*byte & ~(1 << i % 8)) | ((z > 0) << i % 8));
        return z > 0 || std::isnan(z) ? z : 0;
    }
    if (e & GELU) {
        if (e & AUX) store(type, d.aux, i, z);
        return gelu(z);
    }
    if (e & DRELU) return *byte >> i % 8 & 1 ? z : 0;
    if (e & DGELU) return z * gelu_slope(load(type, d.aux, i));
    return z;
}

void gradients(const Desc& d, const Layout& a, const void* A, const Layout& b, const void* B,
               const Problem& p) {
    bool left = d.epilogue & BGRADA;
    for (uint64_t i = 0; i < (left ? p.m : p.n); i++) {
        double sum = 0;
        for (uint64_t k = 0; k < p.k; k++)
            sum += left ? at(a, A, d.transa, 0, i, k) : at(b, B, d.transb, 0, k, i);
        store(a.type, d.bias, i, sum);
    }
}

void multiply(const Desc& d, double alpha, const Layout& a, const void* A, const Layout& b,
              const void* B, double beta, const Layout& c, void* C, const Problem& p) {
    std::vector<double> sums(d.epilogue & BGRAD ? p.m : 0);
    for (int64_t s = 0; s < c.batch; s++)
        for (uint64_t j = 0; j < p.n; j++)
            for (uint64_t i = 0; i < p.m; i++) {
                double z = 0;
                for (uint64_t k = 0; k < p.k; k++)
                    z += at(a, A, d.transa, s, i, k) * at(b, B, d.transb, s, k, j);
                int64_t place = s * c.step + (int64_t)j * c.ld + i;
                z = alpha * z + (beta ? beta * load(c.type, C, place) : 0);
                z = activated(d, c.type, i, j, z);
                store(c.type, C, place, z);
                if (d.epilogue & BGRAD) sums[i] += z;
            }
    for (size_t i = 0; i < sums.size(); i++) store(c.type, d.bias, i, sums[i]);
    if (d.epilogue & (BGRADA | BGRADB)) gradients(d, a, A, b, B, p);
}

int handles, descriptors, heuristics, products;
uint64_t needed = 1024;

}  // namespace

// ------------------------------------------------------------------ the interface

extern "C" {

size_t cublasLtGetVersion() { return 130000; }

const char* cublasLtGetStatusName(int status) {
    switch (status) {
        case SUCCESS: return "CUBLAS_STATUS_SUCCESS";
        case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
        case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
        case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "CUBLAS_STATUS_INTERNAL_ERROR";
}

int cublasLtCreate(void** handle) {
    if (!handle) return INVALID_VALUE;
    handles++;
    *handle = new uint64_t(MAGIC);
    return SUCCESS;
}
int cublasLtDestroy(void* handle) { handles--; return destroyed<uint64_t>(handle); }

int cublasLtMatmulDescCreate(void** made, int compute, int scale) {
    if (!made) return INVALID_VALUE;
    descriptors++;
    *made = new Desc{compute, scale};
    return SUCCESS;
}
int cublasLtMatmulDescDestroy(void* made) { descriptors--; return destroyed<Desc>(made); }
int cublasLtMatmulDescSetAttribute(void* made, int attribute, const void* from, size_t size) {
    if (!made) return INVALID_VALUE;
    Desc& d = *(Desc*)made;
    switch (attribute) {
        case 3: return put(d.transa, from, size);
        case 4: return put(d.transb, from, size);
        case 7: return put(d.epilogue, from, size);
        case 8: return put(d.bias, from, size);
        case 11: return put(d.aux, from, size);
        case 12: return put(d.aux_ld, from, size);
    }
    return INVALID_VALUE;
}

int cublasLtMatrixLayoutCreate(void** made, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    bool known_type = type == R_32F || type == R_64F || type == R_16F || type == R_16BF;
    if (!made || !known_type) return INVALID_VALUE;
    descriptors++;
    *made = new Layout{type, rows, cols, ld};
    return SUCCESS;
}
int cublasLtMatrixLayoutDestroy(void* made) { descriptors--; return destroyed<Layout>(made); }
int cublasLtMatrixLayoutSetAttribute(void* made, int attribute, const void* from, size_t size) {
    if (!made) return INVALID_VALUE;
    Layout& x = *(Layout*)made;
    if (attribute == 5) return put(x.batch, from, size);
    return attribute == 6 ? put(x.step, from, size) : (int)INVALID_VALUE;
}

int cublasLtMatmulPreferenceCreate(void** made) {
    if (!made) return INVALID_VALUE;
    descriptors++;
    *made = new Preference;
    return SUCCESS;
}
int cublasLtMatmulPreferenceDestroy(void* made) {
    descriptors--;
    return destroyed<Preference>(made);
}
int cublasLtMatmulPreferenceSetAttribute(void* made, int attribute, const void* from, size_t size) {
    if (!made) return INVALID_VALUE;
    Preference& p = *(Preference*)made;
    if (attribute == 1) return put(p.workspace, from, size);
    if (attribute == 3) return put(p.scheme, from, size);
    if (attribute >= 5 && attribute <= 8) return put(p.alignment[attribute - 5], from, size);
    return INVALID_VALUE;
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, void* desc, void* a, void* b, void* c, void* d,
                                   void* preference, int requested, Result* results, int* found) {
    if (!handle || *(uint64_t*)handle != MAGIC || !desc || !a || !b || !c || !d || !preference
        || requested <= 0 || !results || !found)
        return INVALID_VALUE;
    heuristics++;
    *found = 0;
    Problem p;
    const Desc& asked = *(Desc*)desc;
    const Layout& out = *(Layout*)c;
    int status = checked(asked, *(Layout*)a, *(Layout*)b, out, p);
    if (status) return status;
    const Preference& wish = *(Preference*)preference;
    if (size_of(out.type) == 2 && wish.scheme != 2) return INVALID_VALUE;
    // The first asks for more memory than allowed, the second cannot run, the third is right.
    uint64_t workspaces[3] = {wish.workspace + 1, 0, needed};
    for (int i = 0; i < 3 && i < requested; i++) {
        results[i] = Result{{MAGIC, p.m, p.n, p.k, asked.epilogue, wish.alignment[0], workspaces[i],
                             (uint64_t)out.batch},
                            workspaces[i], i == 1 ? (int)NOT_SUPPORTED : (int)SUCCESS, 1.f, {}};
        *found = i + 1;
    }
    return SUCCESS;
}

int cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* A, void* a,
                   const void* B, void* b, const void* beta, const void* C, void* c, void* D,
                   void* d, const Algo* algo, void* workspace, size_t size, void* stream) {
    if (!handle || *(uint64_t*)handle != MAGIC || !desc || !alpha || !A || !a || !B || !b || !beta
        || !C || !c || !D || !d || !algo || C != D || c != d || stream != (void*)0)
        return INVALID_VALUE;
    Problem p;
    const Desc& x = *(Desc*)desc;
    const Layout& out = *(Layout*)c;
    int status = checked(x, *(Layout*)a, *(Layout*)b, out, p);
    if (status) return status;
    if (algo->magic != MAGIC || algo->m != p.m || algo->n != p.n || algo->k != p.k
        || algo->epilogue != x.epilogue || algo->batch != (uint64_t)out.batch)
        return INVALID_VALUE;
    if (size < algo->workspace || (size && (!workspace || !aligned(workspace, 256))))
        return INVALID_VALUE;
    for (const void* pointer : {A, B, C, (const void*)x.bias, (const void*)x.aux})
        if (!aligned(pointer, algo->alignment)) return NOT_SUPPORTED;
    for (const Layout* y : {(const Layout*)a, (const Layout*)b, &out})
        if (y->batch > 1 && y->step * size_of(y->type) % algo->alignment) return NOT_SUPPORTED;
    products++;
    std::memset(workspace, 0xff, size);
    bool wide = x.scale == R_64F;
    multiply(x, wide ? *(const double*)alpha : *(const float*)alpha, *(Layout*)a, A, *(Layout*)b, B,
             wide ? *(const double*)beta : *(const float*)beta, out, D, p);
    return SUCCESS;
}

// What tests look at.
int fake_count(int what) {
    int counts[] = {handles, descriptors, heuristics, products};
    return counts[what];
}

}  // extern "C"
