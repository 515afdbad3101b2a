// Kernels of search on a CPU. Compiled by `regard.core.native.library` for the processor at hand.
//
// Every row of a result is computed by the same operations in the same order, however many rows,
// positions of padding or sentences there are, so results do not depend on the batch to the last
// bit. So there is no -ffast-math here, and sums are written as vectors of fixed width.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

#if defined(__AVX512F__)
constexpr int64_t V = 16;        // floats of a vector
constexpr int MAX_ROWS = 12;     // rows of a block of a product, as many as registers hold
#else
constexpr int64_t V = 8;
constexpr int MAX_ROWS = 6;
#endif
constexpr int64_t PANEL = 2 * V;  // outputs of a panel of a weight
constexpr int64_t MANY = 16;  // rows and keys from which attention is faster by products
constexpr int64_t MAX_DEPTH = 384;  // inputs of float32 rows that stay in the first cache
constexpr int64_t CACHE_BYTES = 128 << 10;  // half of a small second cache

typedef float Vec __attribute__((vector_size(V * 4)));
typedef int32_t IntVec __attribute__((vector_size(V * 4)));

inline Vec load(const float* from) {
    Vec vec;
    std::memcpy(&vec, from, sizeof vec);
    return vec;
}

inline void store(float* to, Vec vec) { std::memcpy(to, &vec, sizeof vec); }

inline Vec fill(float value) {
    // Not Vec{} + value, which is an addition: it changes -0.
    return value - Vec{};
}

inline Vec maximum(Vec a, Vec b) { return a > b ? a : b; }

// Combine the two halves of a vector until four floats are left.
template <typename Combine>
inline float reduce(Vec vec, Combine combine) {
    typedef float Half __attribute__((vector_size(32)));
    typedef float Four __attribute__((vector_size(16)));
    Half half;
    std::memcpy(&half, &vec, 32);
    if constexpr (V == 16) {
        Half other;
        std::memcpy(&other, reinterpret_cast<const char*>(&vec) + 32, 32);
        half = combine(half, other);
    }
    Four low, high;
    std::memcpy(&low, &half, 16);
    std::memcpy(&high, reinterpret_cast<const char*>(&half) + 16, 16);
    Four four = combine(low, high);
    return combine(combine(four[0], four[1]), combine(four[2], four[3]));
}

inline float sum(Vec vec) {
    return reduce(vec, [](auto a, auto b) { return a + b; });
}

inline float largest(Vec vec) {
    return reduce(vec, [](auto a, auto b) { return a > b ? a : b; });
}

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, relative error below 2e-7.
inline Vec exponential(Vec x) {
    x = x > -87.0f ? x : fill(-87.0f);
    x = x < 88.0f ? x : fill(88.0f);
    const float magic = 12582912.0f;  // adding it rounds to an integer
    Vec shifted = x * 1.44269504088896341f + magic;
    Vec n = shifted - magic;
    Vec r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    Vec p = fill(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    IntVec bits = (IntVec)shifted << 23;
    return (Vec)((IntVec)p + bits);
}

// Memory of a thread that grows as needed.
struct Scratch {
    char* data = nullptr;
    size_t size = 0;

    ~Scratch() { std::free(data); }

    template <typename T>
    T* take(int64_t number) {
        size_t needed = (number * sizeof(T) + 127) / 64 * 64;
        if (needed > size) {
            std::free(data);
            data = static_cast<char*>(std::aligned_alloc(64, needed));
            if (!data) {
                std::fputs("regard: there is not enough memory for this search\n", stderr);
                std::abort();
            }
            size = needed;
        }
        return reinterpret_cast<T*>(data);
    }
};

enum Precision : int32_t { FP32 = 0, BF16 = 1, INT8 = 2 };
enum Activation : int32_t { NONE = 0, RELU = 1, SILU = 2 };

}  // namespace

// A linear map. The weight is stored in panels of PANEL outputs, each in the order of the inputs;
// 2 (bf16) or 4 (int8) inputs of an output lie side by side.
struct Map {
    const void* panels;
    const float* bias;       // (outputs), or null
    const float* scales;     // int8: (outputs), rounded up to whole panels
    const int32_t* offsets;  // int8: 128 times the sum of the weights of each output
    int64_t inputs;
    int64_t outputs;
    int32_t precision;
};

namespace {

int64_t group_size(int32_t precision) { return precision == BF16 ? 2 : precision == INT8 ? 4 : 1; }

int64_t round_up(int64_t number, int64_t multiple) {
    return (number + multiple - 1) / multiple * multiple;
}

uint16_t to_bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

// Load fewer numbers than a vector has; the others are 0.
inline Vec load_some(const float* from, int64_t number) {
    if (number >= V) return load(from);
    float padded[V] = {};
    std::memcpy(padded, from, number * 4);
    return load(padded);
}

inline void store_some(float* to, Vec vec, int64_t number) {
    if (number >= V) return store(to, vec);
    float padded[V];
    store(padded, vec);
    std::memcpy(to, padded, number * 4);
}

inline Vec activate(Vec vec, int32_t activation) {
    if (activation == RELU) return vec > 0.0f ? vec : fill(0.0f);
    if (activation == SILU) return vec / (1.0f + exponential(-vec));
    return vec;
}

// Write the two vectors of a row of a panel.
inline void write(float* to, Vec first, Vec second, int64_t number) {
    if (number >= PANEL) {
        store(to, first);
        store(to + V, second);
        return;
    }
    float values[PANEL];
    store(values, first);
    store(values + V, second);
    std::memcpy(to, values, number * 4);
}

// Call a function with 0 … R - 1. Compilers keep the sums of a block of rows in registers only if
// their indices are constants.
template <typename Function, int... ROWS>
[[gnu::always_inline]] inline void call_each(
    std::integer_sequence<int, ROWS...>, const Function& function) {
    (function(ROWS), ...);
}

template <int R, typename Function>
[[gnu::always_inline]] inline void for_each_row(const Function& function) {
    call_each(std::make_integer_sequence<int, R>(), function);
}

#define INLINE __attribute__((always_inline))

struct Target {
    float* outputs;
    int64_t stride;
    int64_t number;  // outputs of the panel that exist
    const float* bias;
    int32_t activation;
};

template <int R>
inline void finish(Vec (&sums)[R][2], const Target& to) {
    float padded[PANEL] = {};
    if (to.bias) std::memcpy(padded, to.bias, std::min(to.number, PANEL) * 4);
    Vec first = load(padded), second = load(padded + V);
    for_each_row<R>([&](int r) INLINE {
        Vec left = activate(sums[r][0] + first, to.activation);
        Vec right = activate(sums[r][1] + second, to.activation);
        write(to.outputs + r * to.stride, left, right, to.number);
    });
}

// The products of some of the inputs, added to the outputs unless they are the first ones.
template <int R>
void multiply_fp32(
    const float* rows, int64_t stride, const float* panel, int64_t inputs, Target to, bool is_first,
    bool is_last) {
    Vec sums[R][2] = {};
    if (!is_first)
        for_each_row<R>([&](int r) INLINE {
            sums[r][0] = load_some(to.outputs + r * to.stride, to.number);
            if (to.number > V)
                sums[r][1] = load_some(to.outputs + r * to.stride + V, to.number - V);
        });
    for (int64_t k = 0; k < inputs; ++k, panel += PANEL) {
        Vec first = load(panel), second = load(panel + V);
        for_each_row<R>([&](int r) INLINE {
            Vec value = fill(rows[r * stride + k]);
            sums[r][0] += value * first;
            sums[r][1] += value * second;
        });
    }
    if (is_last) return finish<R>(sums, to);
    for_each_row<R>([&](int r) INLINE {
        write(to.outputs + r * to.stride, sums[r][0], sums[r][1], to.number);
    });
}

#if defined(__AVX512BF16__)
template <int R>
void multiply_bf16(
    const uint16_t* rows, int64_t stride, const uint16_t* panel, int64_t inputs, Target to) {
    __m512 sums[R][2] = {};
    for (int64_t k = 0; k < inputs; k += 2, panel += 2 * PANEL) {
        __m512bh first = (__m512bh)_mm512_loadu_si512(panel);
        __m512bh second = (__m512bh)_mm512_loadu_si512(panel + 2 * V);
        for_each_row<R>([&](int r) INLINE {
            int32_t pair;
            std::memcpy(&pair, rows + r * stride + k, 4);
            __m512bh value = (__m512bh)_mm512_set1_epi32(pair);
            sums[r][0] = _mm512_dpbf16_ps(sums[r][0], value, first);
            sums[r][1] = _mm512_dpbf16_ps(sums[r][1], value, second);
        });
    }
    Vec found[R][2];
    for_each_row<R>([&](int r) INLINE {
        found[r][0] = (Vec)sums[r][0];
        found[r][1] = (Vec)sums[r][1];
    });
    finish<R>(found, to);
}
#endif

#if defined(__AVX512VNNI__)
template <int R>
void multiply_int8(
    const uint8_t* rows, int64_t stride, const int8_t* panel, int64_t inputs, Target to,
    const float* scales, const int32_t* offsets, const float* row_scales) {
    __m512i sums[R][2];
    for_each_row<R>([&](int r) INLINE { sums[r][0] = sums[r][1] = _mm512_setzero_si512(); });
    for (int64_t k = 0; k < inputs; k += 4, panel += 4 * PANEL) {
        __m512i first = _mm512_loadu_si512(panel);
        __m512i second = _mm512_loadu_si512(panel + 4 * V);
        for_each_row<R>([&](int r) INLINE {
            int32_t four;
            std::memcpy(&four, rows + r * stride + k, 4);
            __m512i value = _mm512_set1_epi32(four);
            // Not by the intrinsic, whose sums GCC 12 does not keep in registers.
            asm("vpdpbusd %2, %1, %0" : "+v"(sums[r][0]) : "v"(value), "v"(first));
            asm("vpdpbusd %2, %1, %0" : "+v"(sums[r][1]) : "v"(value), "v"(second));
        });
    }
    Vec found[R][2];
    __m512i low = _mm512_loadu_si512(offsets), high = _mm512_loadu_si512(offsets + V);
    Vec left = load(scales), right = load(scales + V);
    for_each_row<R>([&](int r) INLINE {
        __m512i one = _mm512_sub_epi32(sums[r][0], low), two = _mm512_sub_epi32(sums[r][1], high);
        found[r][0] = (Vec)_mm512_cvtepi32_ps(one) * left * row_scales[r];
        found[r][1] = (Vec)_mm512_cvtepi32_ps(two) * right * row_scales[r];
    });
    finish<R>(found, to);
}
#endif

// The rows of an input in the type of a product.
struct Operand {
    const void* rows;
    int64_t stride;       // elements between rows
    const float* scales;  // int8: scale of each row
};

Operand convert(const Map& map, const float* inputs, int64_t num_rows, int64_t stride) {
    // Rows whose distance is a multiple of a page share the same few lines of the first cache.
    int64_t width = round_up(map.inputs, 64) + 64 / (map.precision == INT8 ? 1 : 2);
    if (map.precision == FP32) {
        if (num_rows <= 8 || stride % 256) return {inputs, stride, nullptr};
        thread_local Scratch scratch;
        float* rows = scratch.take<float>(num_rows * width);
        for (int64_t r = 0; r < num_rows; ++r)
            std::memcpy(rows + r * width, inputs + r * stride, map.inputs * 4);
        return {rows, width, nullptr};
    }
#if defined(__AVX512BF16__)
    if (map.precision == BF16) {
        thread_local Scratch scratch;
        uint16_t* rows = scratch.take<uint16_t>(num_rows * width);
        for (int64_t r = 0; r < num_rows; ++r) {
            const float* from = inputs + r * stride;
            uint16_t* to = rows + r * width;
            int64_t k = 0;
            for (; k + 16 <= map.inputs; k += 16) {
                __m256bh low = _mm512_cvtneps_pbh(_mm512_loadu_ps(from + k));
                std::memcpy(to + k, &low, 32);
            }
            for (; k < map.inputs; ++k) to[k] = to_bf16(from[k]);
            if (k % 2) to[k] = 0;
        }
        return {rows, width, nullptr};
    }
#endif
#if defined(__AVX512VNNI__)
    if (map.precision == INT8) {
        thread_local Scratch scratch;
        uint8_t* rows = scratch.take<uint8_t>(num_rows * (width + 4) + 64);
        float* scales = reinterpret_cast<float*>(rows + num_rows * width);
        for (int64_t r = 0; r < num_rows; ++r) {
            const float* from = inputs + r * stride;
            uint8_t* to = rows + r * width;
            Vec most = {};
            int64_t k = 0;
            for (; k + V <= map.inputs; k += V) {
                Vec vec = load(from + k);
                most = maximum(most, vec < 0.0f ? -vec : vec);
            }
            float peak = largest(most);
            for (; k < map.inputs; ++k) peak = std::max(peak, std::fabs(from[k]));
            scales[r] = std::max(peak, 1e-8f) / 127.0f;
            float factor = 1.0f / scales[r];
            for (k = 0; k + V <= map.inputs; k += V) {
                __m512i whole = _mm512_cvtps_epi32((__m512)(load(from + k) * factor));
                __m512i shifted = _mm512_add_epi32(whole, _mm512_set1_epi32(128));
                _mm_storeu_si128((__m128i*)(to + k), _mm512_cvtepi32_epi8(shifted));
            }
            for (; k < map.inputs; ++k) to[k] = (uint8_t)(std::nearbyint(from[k] * factor) + 128);
            for (; k % 4; ++k) to[k] = 0;
        }
        return {rows, width, scales};
    }
#endif
    return {nullptr, 0, nullptr};
}

// Where a block of rows is multiplied by a panel.
struct Place {
    int64_t row, panel;
    int64_t first, last;  // inputs
};

template <int R>
void multiply_rows(const Map& map, const Operand& in, const Place& at, Target to) {
    int64_t width = round_up(map.inputs, group_size(map.precision));
    int64_t row = at.row, begin = at.panel * PANEL;
    if (map.precision == FP32) {
        const float* weight = static_cast<const float*>(map.panels) + begin * width;
        const float* rows = static_cast<const float*>(in.rows) + row * in.stride;
        multiply_fp32<R>(
            rows + at.first, in.stride, weight + at.first * PANEL, at.last - at.first, to,
            at.first == 0, at.last == map.inputs);
    }
#if defined(__AVX512BF16__)
    if (map.precision == BF16) {
        const uint16_t* weight = static_cast<const uint16_t*>(map.panels) + begin * width;
        const uint16_t* rows = static_cast<const uint16_t*>(in.rows) + row * in.stride;
        multiply_bf16<R>(rows, in.stride, weight, map.inputs, to);
    }
#endif
#if defined(__AVX512VNNI__)
    if (map.precision == INT8) {
        const int8_t* weight = static_cast<const int8_t*>(map.panels) + begin * width;
        const uint8_t* rows = static_cast<const uint8_t*>(in.rows) + row * in.stride;
        multiply_int8<R>(
            rows, in.stride, weight, map.inputs, to, map.scales + begin, map.offsets + begin,
            in.scales + row);
    }
#endif
}

template <int R>
void multiply_block(
    int64_t num_rows, const Map& map, const Operand& in, const Place& at, Target to) {
    if constexpr (R > 0) {
        if (num_rows == R) return multiply_rows<R>(map, in, at, to);
        multiply_block<R - 1>(num_rows, map, in, at, to);
    }
}

void map_rows(
    const Map& map, const float* inputs, int64_t num_rows, int64_t stride, float* outputs,
    int64_t output_stride, int32_t activation = NONE) {
    Operand in = convert(map, inputs, num_rows, stride);
    int64_t num_panels = (map.outputs + PANEL - 1) / PANEL;
    // Rows of a block and panels that are multiplied one after another stay in the caches.
    int64_t depth = map.precision == FP32 ? std::min(map.inputs, MAX_DEPTH) : map.inputs;
    int64_t panel_bytes = PANEL * depth * 4 / group_size(map.precision);
    int64_t num_joint = std::max<int64_t>(1, CACHE_BYTES / panel_bytes);
    for (int64_t start = 0; start < num_panels; start += num_joint)
        for (int64_t first = 0; first < map.inputs; first += depth)
            for (int64_t row = 0; row < num_rows;) {
                // Blocks of about the same size: 13 rows are 7 and 6, not 12 and 1.
                int64_t left = num_rows - row, blocks = (left + MAX_ROWS - 1) / MAX_ROWS;
                int64_t size = (left + blocks - 1) / blocks;
                for (int64_t panel = start; panel < std::min(start + num_joint, num_panels);
                     ++panel) {
                    int64_t begin = panel * PANEL;
                    Target to = {
                        outputs + row * output_stride + begin, output_stride, map.outputs - begin,
                        map.bias ? map.bias + begin : nullptr, activation};
                    Place at = {row, panel, first, std::min(first + depth, map.inputs)};
                    multiply_block<MAX_ROWS>(size, map, in, at, to);
                }
                row += size;
            }
}

}  // namespace

// Precisions with fast code on this processor, as bits.
EXPORT int32_t supported_precisions() {
    int32_t found = 1 << FP32;
#if defined(__AVX512BF16__)
    found |= 1 << BF16;
#endif
#if defined(__AVX512VNNI__)
    found |= 1 << INT8;
#endif
    return found;
}

EXPORT int64_t panel_size() { return PANEL; }

EXPORT void multiply(
    const Map* map, const float* inputs, int64_t num_rows, int64_t stride, float* outputs,
    int32_t activation) {
    map_rows(*map, inputs, num_rows, stride, outputs, map->outputs, activation);
}

struct Norm {
    const float* weight;
    const float* bias;  // or null
    float epsilon;
    int32_t is_rms;
};

struct Block {
    Map joint, self_output, query, cross_output, hidden, output;
    Norm self_norm, cross_norm, feed_norm;
    int32_t is_norm_first, has_cross, activation, is_gated;
};

// Keys and values (B, H, K, E) of a block.
struct KeyValue {
    float* keys;
    float* values;
    int64_t batch, head, position;  // strides
};

struct Step {
    const Block* blocks;
    int64_t num_blocks, num_rounds;
    float* states;  // (B, R, D), overwritten
    int64_t batch, rows, dim, num_heads;
    KeyValue* caches;  // one per block, to which the rows are added; null = attend to the rows
    int64_t num_keys;  // keys of a cache with those of this step
    const uint8_t* mask;  // (B, R, K), or null
    int64_t mask_batch, mask_row;
    int32_t is_causal;
    KeyValue* memories;  // one per block, or null
    int64_t memory_length;
    const uint8_t* memory_mask;  // (B, S)
    int64_t memory_batch;
    const float* cosines;  // (R, E / 2) of rotary positions, or null
    const float* sines;
};

namespace {

void normalise(const Norm& norm, const float* from, float* to, int64_t dim) {
    Vec sums = {}, squares = {};
    int64_t whole = dim / V * V;
    float mean = 0, square = 0;
    if (!norm.is_rms) {
        for (int64_t d = 0; d < whole; d += V) sums += load(from + d);
        mean = sum(sums);
        for (int64_t d = whole; d < dim; ++d) mean += from[d];
        mean /= dim;
    }
    for (int64_t d = 0; d < whole; d += V) {
        Vec centred = load(from + d) - mean;
        squares += centred * centred;
    }
    square = sum(squares);
    for (int64_t d = whole; d < dim; ++d) square += (from[d] - mean) * (from[d] - mean);
    float scale = 1.0f / std::sqrt(square / dim + norm.epsilon);
    for (int64_t d = 0; d < whole; d += V) {
        Vec normed = (load(from + d) - mean) * scale * load(norm.weight + d);
        store(to + d, norm.bias ? normed + load(norm.bias + d) : normed);
    }
    for (int64_t d = whole; d < dim; ++d)
        to[d] = (from[d] - mean) * scale * norm.weight[d] + (norm.bias ? norm.bias[d] : 0.0f);
}

// Add the output of a layer to the states; with post-norm, normalise the sum.
void leave(const Step& step, const Block& block, const Norm& norm, const float* update) {
    int64_t num_rows = step.batch * step.rows;
    for (int64_t r = 0; r < num_rows; ++r) {
        float* states = step.states + r * step.dim;
        for (int64_t d = 0; d < step.dim; ++d) states[d] += update[r * step.dim + d];
        if (!block.is_norm_first) normalise(norm, states, states, step.dim);
    }
}

// Return the inputs of a layer.
const float* enter(const Step& step, const Block& block, const Norm& norm, float* normed) {
    if (!block.is_norm_first) return step.states;
    for (int64_t r = 0; r < step.batch * step.rows; ++r)
        normalise(norm, step.states + r * step.dim, normed + r * step.dim, step.dim);
    return normed;
}

inline float dot(const float* a, const float* b, int64_t dim) {
    Vec sums = {};
    int64_t d = 0;
    for (; d + V <= dim; d += V) sums += load(a + d) * load(b + d);
    float total = sum(sums);
    for (; d < dim; ++d) total += a[d] * b[d];
    return total;
}

struct Heads {
    const float* queries;
    int64_t query_row;  // stride between rows
    KeyValue keys;
    int64_t num_keys;
    const uint8_t* mask;
    int64_t mask_batch, mask_row;
    int32_t is_causal;
    float* context;  // (B, R, D)
};

// Turn the scores of a row into exponentials, with zeros up to a whole vector; return their sum.
float exponentiate(float* row, int64_t number, float scale) {
    float most = -INFINITY;
    for (int64_t i = 0; i < number; ++i) most = std::max(most, row[i] *= scale);
    for (int64_t i = number; i < round_up(number, V); ++i) row[i] = -INFINITY;
    Vec sums = {};
    for (int64_t i = 0; i < number; i += V) {
        Vec each = load(row + i);
        each = each > -INFINITY ? exponential(each - most) : fill(0.0f);
        store(row + i, each);
        sums += each;
    }
    return sum(sums);
}

// Attention of all rows of a sentence to the same keys, by two products.
void attend_together(
    const Step& step, const Heads& heads, int64_t sentence, const int32_t* allowed, int64_t number) {
    thread_local Scratch memory;
    int64_t head_dim = step.dim / step.num_heads, width = round_up(number, PANEL);
    int64_t wide = round_up(head_dim, PANEL);
    float* key_panels = memory.take<float>(width * head_dim + wide * number + step.rows * width);
    float* value_panels = key_panels + width * head_dim;
    float* scores = value_panels + wide * number;
    float scale = 1.0f / std::sqrt((float)head_dim);
    for (int64_t h = 0; h < step.num_heads; ++h) {
        int64_t start = sentence * heads.keys.batch + h * heads.keys.head;
        for (int64_t i = 0; i < width; ++i) {
            const float* key = heads.keys.keys + start + allowed[std::min(i, number - 1)] *
                                                             heads.keys.position;
            float* to = key_panels + i / PANEL * PANEL * head_dim + i % PANEL;
            for (int64_t d = 0; d < head_dim; ++d) to[d * PANEL] = i < number ? key[d] : 0.0f;
        }
        for (int64_t i = 0; i < number; ++i) {
            const float* value = heads.keys.values + start + allowed[i] * heads.keys.position;
            for (int64_t d = 0; d < wide; d += PANEL) {
                float* to = value_panels + d * number + i * PANEL;
                int64_t left = std::min(PANEL, head_dim - d);
                std::memcpy(to, value + d, left * 4);
                std::fill(to + left, to + PANEL, 0.0f);
            }
        }
        Map keys = {key_panels, nullptr, nullptr, nullptr, head_dim, number, FP32};
        Map values = {value_panels, nullptr, nullptr, nullptr, number, head_dim, FP32};
        const float* queries =
            heads.queries + sentence * step.rows * heads.query_row + h * head_dim;
        float* context = heads.context + sentence * step.rows * step.dim + h * head_dim;
        map_rows(keys, queries, step.rows, heads.query_row, scores, width);
        thread_local Scratch found;
        float* totals = found.take<float>(step.rows);
        for (int64_t r = 0; r < step.rows; ++r)
            totals[r] = exponentiate(scores + r * width, number, scale);
        map_rows(values, scores, step.rows, width, context, step.dim);
        for (int64_t r = 0; r < step.rows; ++r)
            for (int64_t d = 0; d < head_dim; ++d) context[r * step.dim + d] *= 1.0f / totals[r];
    }
}

// Scaled dot-product attention. Masked keys are left out, so they change nothing.
void attend(const Step& step, const Heads& heads) {
    thread_local Scratch found, numbers;
    float* weights = found.take<float>(heads.num_keys + V);
    int32_t* allowed = numbers.take<int32_t>(heads.num_keys);
    int64_t head_dim = step.dim / step.num_heads;
    float scale = 1.0f / std::sqrt((float)head_dim);
    bool is_shared = !heads.is_causal && (!heads.mask || heads.mask_row == 0);
    for (int64_t b = 0; b < step.batch; ++b) {
        int64_t number = 0;
        for (int64_t r = 0; r < step.rows; ++r) {
            int64_t end = heads.is_causal ? heads.num_keys - step.rows + r + 1 : heads.num_keys;
            const uint8_t* mask =
                heads.mask ? heads.mask + b * heads.mask_batch + r * heads.mask_row : nullptr;
            if (r == 0 || !is_shared) {
                number = 0;
                for (int64_t k = 0; k < end; ++k)
                    if (!mask || mask[k]) allowed[number++] = k;
                // The number of keys does not depend on padding, so neither does this choice.
                if (is_shared && std::min(number, step.rows) >= MANY) {
                    attend_together(step, heads, b, allowed, number);
                    break;
                }
            }
            int64_t row = b * step.rows + r;
            for (int64_t h = 0; h < step.num_heads; ++h) {
                const float* query = heads.queries + row * heads.query_row + h * head_dim;
                int64_t start = b * heads.keys.batch + h * heads.keys.head;
                const float* keys = heads.keys.keys + start;
                const float* values = heads.keys.values + start;
                float* context = heads.context + row * step.dim + h * head_dim;
                for (int64_t i = 0; i < number; ++i)
                    weights[i] = dot(query, keys + allowed[i] * heads.keys.position, head_dim);
                float total = exponentiate(weights, number, scale);
                float factor = total > 0 ? 1.0f / total : 0.0f;
                int64_t d = 0;
                for (; d + 4 * V <= head_dim; d += 4 * V) {
                    Vec parts[4] = {};
                    for (int64_t i = 0; i < number; ++i) {
                        const float* value = values + allowed[i] * heads.keys.position + d;
                        for (int p = 0; p < 4; ++p) parts[p] += weights[i] * load(value + p * V);
                    }
                    for (int p = 0; p < 4; ++p) store(context + d + p * V, parts[p] * factor);
                }
                for (; d < head_dim; d += V) {
                    Vec part = {};
                    for (int64_t i = 0; i < number; ++i) {
                        const float* value = values + allowed[i] * heads.keys.position + d;
                        part += weights[i] * load_some(value, head_dim - d);
                    }
                    store_some(context + d, part * factor, head_dim - d);
                }
            }
        }
    }
}

// Rotate the pairs of columns i and i + E/2 of each head.
void rotate(const Step& step, float* rows, int64_t stride) {
    int64_t head_dim = step.dim / step.num_heads, half = head_dim / 2;
    for (int64_t r = 0; r < step.batch * step.rows; ++r) {
        const float* cosines = step.cosines + r % step.rows * half;
        const float* sines = step.sines + r % step.rows * half;
        for (int64_t h = 0; h < step.num_heads; ++h) {
            float* head = rows + r * stride + h * head_dim;
            for (int64_t d = 0; d < half; ++d) {
                float first = head[d], second = head[d + half];
                head[d] = first * cosines[d] - second * sines[d];
                head[d + half] = second * cosines[d] + first * sines[d];
            }
        }
    }
}

// Write keys and values of the new positions to the end of a cache.
void append(const Step& step, const float* joint, const KeyValue& cache) {
    int64_t dim = step.dim, head_dim = dim / step.num_heads;
    for (int64_t b = 0; b < step.batch; ++b)
        for (int64_t r = 0; r < step.rows; ++r)
            for (int64_t h = 0; h < step.num_heads; ++h) {
                const float* from = joint + (b * step.rows + r) * 3 * dim + h * head_dim;
                int64_t to = b * cache.batch + h * cache.head +
                             (step.num_keys - step.rows + r) * cache.position;
                std::memcpy(cache.keys + to, from + dim, head_dim * 4);
                std::memcpy(cache.values + to, from + 2 * dim, head_dim * 4);
            }
}

}  // namespace

// Run transformer blocks over the states of a step.
EXPORT void run_blocks(const Step* given) {
    const Step& step = *given;
    int64_t num_rows = step.batch * step.rows, dim = step.dim, head_dim = dim / step.num_heads;
    int64_t hidden_dim = 0;
    for (int64_t i = 0; i < step.num_blocks; ++i)
        hidden_dim = std::max(hidden_dim, step.blocks[i].hidden.outputs);
    int64_t wide = std::max(3 * dim, hidden_dim);
    thread_local Scratch scratch;
    float* normed = scratch.take<float>(num_rows * (3 * dim + wide));
    float* context = normed + num_rows * dim;
    float* update = context + num_rows * dim;
    float* joint = update + num_rows * dim;
    for (int64_t index = 0; index < step.num_rounds * step.num_blocks; ++index) {
        int64_t i = index % step.num_blocks;
        const Block& block = step.blocks[i];
        const float* inputs = enter(step, block, block.self_norm, normed);
        map_rows(block.joint, inputs, num_rows, dim, joint, 3 * dim);
        if (step.cosines) {
            rotate(step, joint, 3 * dim);
            rotate(step, joint + dim, 3 * dim);
        }
        Heads heads = {joint, 3 * dim, {}, step.rows, step.mask, step.mask_batch, step.mask_row,
                       step.is_causal, context};
        if (step.caches) {
            append(step, joint, step.caches[i]);
            heads.keys = step.caches[i];
            heads.num_keys = step.num_keys;
        } else {
            heads.keys = {joint + dim, joint + 2 * dim, step.rows * 3 * dim, head_dim, 3 * dim};
        }
        attend(step, heads);
        map_rows(block.self_output, context, num_rows, dim, update, dim);
        leave(step, block, block.self_norm, update);
        if (step.memories) {
            inputs = enter(step, block, block.cross_norm, normed);
            map_rows(block.query, inputs, num_rows, dim, joint, dim);
            attend(step, {joint, dim, step.memories[i], step.memory_length, step.memory_mask,
                          step.memory_batch, 0, 0, context});
            map_rows(block.cross_output, context, num_rows, dim, update, dim);
            leave(step, block, block.cross_norm, update);
        }
        inputs = enter(step, block, block.feed_norm, normed);
        int64_t width = block.hidden.outputs;
        map_rows(block.hidden, inputs, num_rows, dim, joint, width,
                 block.is_gated ? NONE : block.activation);
        if (block.is_gated)
            for (int64_t r = 0; r < num_rows; ++r) {
                float* row = joint + r * width;
                int64_t half = width / 2, d = 0;
                for (; d + V <= half; d += V)
                    store(row + d, activate(load(row + d), SILU) * load(row + half + d));
                for (; d < half; ++d) row[d] = activate(fill(row[d]), SILU)[0] * row[half + d];
            }
        map_rows(block.output, joint, num_rows, width, update, dim);
        leave(step, block, block.feed_norm, update);
    }
}

// Replace logits (N, V) by log-probabilities; banned tokens get -inf afterwards.
EXPORT void log_softmax(
    float* rows, int64_t num_rows, int64_t vocab, const int64_t* banned, int64_t num_banned) {
    int64_t whole = vocab / V * V;
    for (int64_t r = 0; r < num_rows; ++r) {
        float* row = rows + r * vocab;
        Vec most = fill(-INFINITY);
        for (int64_t v = 0; v < whole; v += V) most = maximum(load(row + v), most);
        float peak = largest(most);
        for (int64_t v = whole; v < vocab; ++v) peak = std::max(peak, row[v]);
        Vec sums = {};
        for (int64_t v = 0; v < whole; v += V) sums += exponential(load(row + v) - peak);
        float total = sum(sums);
        for (int64_t v = whole; v < vocab; ++v) total += exponential(fill(row[v] - peak))[0];
        float rest = std::log(total);
        for (int64_t v = 0; v < whole; v += V) store(row + v, load(row + v) - peak - rest);
        for (int64_t v = whole; v < vocab; ++v) row[v] = row[v] - peak - rest;
        for (int64_t i = 0; i < num_banned; ++i)
            if (banned[i] >= 0 && banned[i] < vocab) row[banned[i]] = -INFINITY;
    }
}

namespace {

// Find the k largest totals + log_probs of W rows (W, V), largest first, and their indices
// row * V + token. Of equal ones, the first.
void find_top_of_rows(
    const float* totals, const float* log_probs, int64_t beams, int64_t vocab, int64_t k,
    float* values, int64_t* indices) {
    constexpr int64_t CHUNK = 4 * V;
    int64_t number = 0;
    for (int64_t w = 0; w < beams; ++w) {
        float total = totals[w];
        const float* row = log_probs + w * vocab;
        for (int64_t begin = 0; begin < vocab; begin += CHUNK) {
            int64_t end = std::min(begin + CHUNK, vocab);
            if (number == k && end - begin == CHUNK) {
                const float* at = row + begin;
                Vec most = maximum(maximum(load(at), load(at + V)),
                                   maximum(load(at + 2 * V), load(at + 3 * V)));
                if (!(largest(most) + total > values[k - 1])) continue;
            }
            for (int64_t v = begin; v < end; ++v) {
                float value = total + row[v];
                if (number == k && !(value > values[k - 1])) continue;
                int64_t at = number < k ? number++ : k - 1;
                for (; at > 0 && value > values[at - 1]; --at) {
                    values[at] = values[at - 1];
                    indices[at] = indices[at - 1];
                }
                values[at] = value;
                indices[at] = w * vocab + v;
            }
        }
    }
}

}  // namespace

// The same for the rows (B * W, V) of several sentences.
EXPORT void find_top(
    const float* totals, const float* log_probs, int64_t batch, int64_t beams, int64_t vocab,
    int64_t k, float* values, int64_t* indices) {
    for (int64_t b = 0; b < batch; ++b)
        find_top_of_rows(
            totals + b * beams, log_probs + b * beams * vocab, beams, vocab, k, values + b * k,
            indices + b * k);
}

// A step of beam search: see regard/search/advance.py. C = 2 W candidates.
struct Advance {
    const float* totals;     // (B, W)
    const float* log_probs;  // (B * W, V)
    const int64_t* limits;   // (B)
    int64_t batch, beams, vocab, length, end;
    // Candidates, (B, C) each; the first W of those that do not end are kept.
    float* best;
    float* best_log_probs;
    int64_t* tokens;
    int64_t* parents;
    uint8_t* is_end;
    uint8_t* is_finished;  // (B, W), as all that follow
    float* finished;
    int64_t* kept;
    float* next_totals;
    int64_t* next_tokens;
    int64_t* next_rows;
};

EXPORT void advance(const Advance* given) {
    const Advance& step = *given;
    int64_t beams = step.beams, count = 2 * beams;
    for (int64_t b = 0; b < step.batch; ++b) {
        float* best = step.best + b * count;
        int64_t* tokens = step.tokens + b * count;
        int64_t* parents = step.parents + b * count;
        uint8_t* is_end = step.is_end + b * count;
        const float* log_probs = step.log_probs + b * beams * step.vocab;
        find_top_of_rows(
            step.totals + b * beams, log_probs, beams, step.vocab, count, best, tokens);
        for (int64_t c = 0; c < count; ++c) {
            step.best_log_probs[b * count + c] = log_probs[tokens[c]];
            parents[c] = tokens[c] / step.vocab;
            tokens[c] %= step.vocab;
            is_end[c] = tokens[c] == step.end || step.limits[b] <= step.length;
        }
        for (int64_t w = 0; w < beams; ++w) {
            step.finished[b * beams + w] = is_end[w] ? best[w] : -INFINITY;
            step.is_finished[b * beams + w] = is_end[w] && best[w] > -INFINITY;
        }
        int64_t number = 0;
        for (int ended = 0; ended < 2; ++ended)
            for (int64_t c = 0; c < count && number < beams; ++c) {
                if (is_end[c] != ended) continue;
                int64_t at = b * beams + number++;
                step.kept[at] = c;
                step.next_totals[at] = ended ? -INFINITY : best[c];
                step.next_tokens[at] = tokens[c];
                step.next_rows[at] = b * beams + parents[c];
            }
    }
}

// Whether the search of each sentence is done: as many results as beams, and no active beam is better
// than the best of them. See regard/search/stopping.py.
EXPORT void stop(
    const float* finished, const float* active, int64_t batch, int64_t beams, float scale,
    const int64_t* num_ended, const float* best, int64_t* next_ended, float* next_best,
    uint8_t* is_done) {
    for (int64_t b = 0; b < batch; ++b) {
        int64_t number = num_ended[b];
        float found = best[b], rival = -INFINITY;
        for (int64_t at = b * beams; at < (b + 1) * beams; ++at) {
            number += finished[at] > -INFINITY;
            found = std::max(found, finished[at] / scale);
            rival = std::max(rival, active[at] / scale);
        }
        next_ended[b] = number;
        next_best[b] = found;
        is_done[b] = number >= beams && found >= rival;
    }
}

namespace {

inline Vec sigmoid(Vec x) { return 1.0f / (1.0f + exponential(-x)); }

inline Vec tanh_of(Vec x) { return 1.0f - 2.0f / (1.0f + exponential(2.0f * x)); }

}  // namespace

// State (N, D) of a GRU from W x and U h, (N, 3 D) each: reset gate, update gate, new state.
EXPORT void gru(
    const float* input, const float* hidden, const float* state, int64_t num_rows, int64_t dim,
    float* output) {
    for (int64_t r = 0; r < num_rows; ++r)
        for (int64_t d = 0; d < dim; d += V) {
            int64_t number = dim - d;
            const float* in = input + r * 3 * dim + d;
            const float* from = hidden + r * 3 * dim + d;
            Vec reset = sigmoid(load_some(in, number) + load_some(from, number));
            Vec update = sigmoid(load_some(in + dim, number) + load_some(from + dim, number));
            Vec inner = load_some(in + 2 * dim, number) + reset * load_some(from + 2 * dim, number);
            Vec fresh = tanh_of(inner), old = load_some(state + r * dim + d, number);
            store_some(output + r * dim + d, fresh + update * (old - fresh), number);
        }
}

// State and cell (N, D) of an LSTM from W x + U h, (N, 4 D): gates i, f, g and o.
EXPORT void lstm(
    const float* sums, const float* cell, int64_t num_rows, int64_t dim, float* next_state,
    float* next_cell) {
    for (int64_t r = 0; r < num_rows; ++r)
        for (int64_t d = 0; d < dim; d += V) {
            int64_t number = dim - d, at = r * dim + d;
            const float* from = sums + r * 4 * dim + d;
            Vec in = sigmoid(load_some(from, number));
            Vec forget = sigmoid(load_some(from + dim, number));
            Vec fresh = tanh_of(load_some(from + 2 * dim, number));
            Vec out = sigmoid(load_some(from + 3 * dim, number));
            Vec next = forget * load_some(cell + at, number) + in * fresh;
            store_some(next_cell + at, next, number);
            store_some(next_state + at, out * tanh_of(next), number);
        }
}

// Additive scores v · tanh(a + b) = Σ v - 2 Σ v / (1 + exp(2a) exp(2b)) of queries a (B, Q, D)
// and exponentials exp(2b) of keys (B, K, D), with exponents up to `limit`: (B, Q, K).
EXPORT void score_additively(
    const float* queries, const float* keys, const float* weight, float limit, int64_t batch,
    int64_t num_queries, int64_t num_keys, int64_t dim, float* scores) {
    thread_local Scratch scratch;
    float* query = scratch.take<float>(dim + V);
    Vec most = fill(limit), weights = {};
    for (int64_t d = 0; d < dim; d += V) weights += load_some(weight + d, dim - d);
    float total = sum(weights);
    for (int64_t row = 0; row < batch * num_queries; ++row) {
        for (int64_t d = 0; d < dim; d += V) {
            Vec twice = 2.0f * load_some(queries + row * dim + d, dim - d);
            twice = twice < most ? twice : most;
            store(query + d, exponential(twice > -most ? twice : -most));
        }
        for (int64_t k = 0; k < num_keys; ++k) {
            const float* key = keys + (row / num_queries * num_keys + k) * dim;
            Vec sums = {};
            for (int64_t d = 0; d < dim; d += V) {
                Vec product = load(query + d) * load_some(key + d, dim - d);
                sums += load_some(weight + d, dim - d) / (1.0f + product);
            }
            scores[row * num_keys + k] = total - 2.0f * sum(sums);
        }
    }
}

// Softmax of scores (B, Q, K) over the allowed keys, (B, K), and the sums of values (B, K, D).
EXPORT void mix(
    const float* scores, const uint8_t* mask, const float* values, int64_t batch,
    int64_t num_queries, int64_t num_keys, int64_t dim, float* weights, float* context) {
    thread_local Scratch scratch;
    int64_t width = round_up(num_keys, V);
    float* row_weights = scratch.take<float>(width);
    for (int64_t row = 0; row < batch * num_queries; ++row) {
        int64_t b = row / num_queries;
        const uint8_t* allowed = mask + b * num_keys;
        for (int64_t k = 0; k < num_keys; ++k)
            row_weights[k] = allowed[k] ? scores[row * num_keys + k] : -INFINITY;
        float total = exponentiate(row_weights, num_keys, 1.0f);
        float factor = total > 0 ? 1.0f / total : 0.0f;
        for (int64_t k = 0; k < num_keys; ++k)
            weights[row * num_keys + k] = row_weights[k] * factor;
        for (int64_t d = 0; d < dim; d += 4 * V) {
            Vec parts[4] = {};
            for (int64_t k = 0; k < num_keys; ++k) {
                if (!allowed[k]) continue;
                const float* value = values + (b * num_keys + k) * dim + d;
                float weight = weights[row * num_keys + k];
                for (int p = 0; p < 4; ++p) {
                    int64_t left = dim - d - p * V;
                    if (left > 0) parts[p] += weight * load_some(value + p * V, left);
                }
            }
            for (int p = 0; p < 4; ++p) {
                int64_t left = dim - d - p * V;
                if (left > 0) store_some(context + row * dim + d + p * V, parts[p], left);
            }
        }
    }
}
