// Linear maps with packed weights.

#pragma once

#include "base.h"

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

// The same with -inf.
inline Vec load_tail(const float* from, int64_t number) {
    float padded[V];
    std::fill(padded, padded + V, -INFINITY);
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
    if (activation == RELU) return vec < 0.0f ? fill(0.0f) : vec;  // NaN stays
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

struct Destination {
    float* outputs;
    int64_t stride;
    int64_t number;  // outputs of the panel that exist
    const float* bias;
    int32_t activation;
};

template <int R>
inline void finish(Vec (&sums)[R][2], const Destination& to) {
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
    const float* rows, int64_t stride, const float* panel, int64_t inputs, Destination to, bool is_first,
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
    const uint16_t* rows, int64_t stride, const uint16_t* panel, int64_t inputs, Destination to) {
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
    const uint8_t* rows, int64_t stride, const int8_t* panel, int64_t inputs, Destination to,
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
        float* rows = operands.take<float>(num_rows * width);
        for (int64_t r = 0; r < num_rows; ++r)
            std::memcpy(rows + r * width, inputs + r * stride, map.inputs * 4);
        return {rows, width, nullptr};
    }
#if defined(__AVX512BF16__)
    if (map.precision == BF16) {
        uint16_t* rows = operands.take<uint16_t>(num_rows * width);
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
        uint8_t* rows = operands.take<uint8_t>(num_rows * (width + 4) + 64);
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

// Rows, panel and inputs of a part of a product.
struct Part {
    int64_t row, panel;
    int64_t first, last;  // inputs
};

template <int R>
void multiply_rows(const Map& map, const Operand& in, const Part& at, Destination to) {
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
    int64_t num_rows, const Map& map, const Operand& in, const Part& at, Destination to) {
    if constexpr (R > 0) {
        if (num_rows == R) return multiply_rows<R>(map, in, at, to);
        multiply_block<R - 1>(num_rows, map, in, at, to);
    }
}

void map_part(
    const Map& map, const float* inputs, int64_t num_rows, int64_t stride, float* outputs,
    int64_t output_stride, int32_t activation) {
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
                    Destination to = {
                        outputs + row * output_stride + begin, output_stride, map.outputs - begin,
                        map.bias ? map.bias + begin : nullptr, activation};
                    Part at = {row, panel, first, std::min(first + depth, map.inputs)};
                    multiply_block<MAX_ROWS>(size, map, in, at, to);
                }
                row += size;
            }
}

struct Layout {
    int64_t num_rows, stride, output_stride, threads;
};

// Map rows of inputs to rows of outputs.
void map_rows(
    const Map& map, const float* inputs, float* outputs, const Layout& at,
    int32_t activation = NONE) {
    split(at.num_rows, at.threads, [&](int64_t first, int64_t last) {
        map_part(map, inputs + first * at.stride, last - first, at.stride,
                 outputs + first * at.output_stride, at.output_stride, activation);
    });
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

EXPORT int32_t multiply(
    const Map* map, const float* inputs, int64_t num_rows, int64_t threads, float* outputs,
    int32_t activation) {
    return guard([&] {
        map_rows(*map, inputs, outputs, {num_rows, map->inputs, map->outputs, threads}, activation);
    });
}
