// Transformer blocks.

#pragma once

#include "products.h"

struct Norm {
    const float* weight;
    const float* bias;  // or null
    float epsilon;
    int32_t is_rms;
};

struct Block {
    Map joint, self_output, query, cross_output, hidden, output;
    Norm self_norm, cross_norm, feed_norm;
    int32_t is_norm_first, activation, is_gated;
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
    int64_t threads;
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

struct Attention {
    const float* queries;
    int64_t query_row;  // stride between rows
    KeyValue keys;
    int64_t num_keys;
    const uint8_t* mask;
    int64_t mask_batch, mask_row;
    int32_t is_causal;
    float* context;  // (B, R, D)
};

// Turn the scores of a row into exponentials, with zeros up to a whole vector; return the inverse of
// their sum: 0 without keys, NaN if a score is.
float exponentiate(float* row, int64_t number, float scale) {
    float most = -INFINITY;
    bool is_nan = false;
    for (int64_t i = 0; i < number; ++i) {
        row[i] *= scale;
        is_nan |= row[i] != row[i];
        most = std::max(most, row[i]);
    }
    for (int64_t i = number; i < round_up(number, V); ++i) row[i] = -INFINITY;
    Vec sums = {};
    for (int64_t i = 0; i < number; i += V) {
        Vec each = load(row + i);
        each = each > -INFINITY ? exponential(each - most) : fill(0.0f);
        store(row + i, each);
        sums += each;
    }
    if (is_nan) return NAN;
    float total = sum(sums);
    return total > 0 ? 1.0f / total : 0.0f;
}

// Indices of the keys that a row of a sentence may attend to; return their number.
int64_t list_keys(
    const Step& step, const Attention& from, int64_t sentence, int64_t row, int32_t* allowed) {
    int64_t end = from.is_causal ? from.num_keys - step.rows + row + 1 : from.num_keys;
    const uint8_t* mask =
        from.mask ? from.mask + sentence * from.mask_batch + row * from.mask_row : nullptr;
    int64_t number = 0;
    for (int64_t k = 0; k < end; ++k)
        if (!mask || mask[k]) allowed[number++] = k;
    return number;
}

struct Keys {
    const int32_t* allowed;
    int64_t number;
};

// Attention of all rows of a sentence to the same keys in one head, by two products.
void attend_by_products(
    const Step& step, const Attention& from, int64_t sentence, int64_t head, const Keys& to) {
    int64_t head_dim = step.dim / step.num_heads, width = round_up(to.number, PANEL);
    int64_t wide = round_up(head_dim, PANEL), rows = step.rows;
    float* key_panels =
        attended.take<float>(width * head_dim + wide * to.number + rows * (width + 1));
    float* value_panels = key_panels + width * head_dim;
    float* scores = value_panels + wide * to.number;
    float* factors = scores + rows * width;
    float scale = 1.0f / std::sqrt((float)head_dim);
    int64_t start = sentence * from.keys.batch + head * from.keys.head;
    for (int64_t i = 0; i < width; ++i) {
        int64_t at = start + to.allowed[std::min(i, to.number - 1)] * from.keys.position;
        float* panel = key_panels + i / PANEL * PANEL * head_dim + i % PANEL;
        for (int64_t d = 0; d < head_dim; ++d)
            panel[d * PANEL] = i < to.number ? from.keys.keys[at + d] : 0.0f;
    }
    for (int64_t i = 0; i < to.number; ++i) {
        const float* value = from.keys.values + start + to.allowed[i] * from.keys.position;
        for (int64_t d = 0; d < wide; d += PANEL) {
            float* panel = value_panels + d * to.number + i * PANEL;
            int64_t left = std::min(PANEL, head_dim - d);
            std::memcpy(panel, value + d, left * 4);
            std::fill(panel + left, panel + PANEL, 0.0f);
        }
    }
    Map keys = {key_panels, nullptr, nullptr, nullptr, head_dim, to.number, FP32};
    Map values = {value_panels, nullptr, nullptr, nullptr, to.number, head_dim, FP32};
    const float* queries = from.queries + sentence * rows * from.query_row + head * head_dim;
    float* context = from.context + sentence * rows * step.dim + head * head_dim;
    map_rows(keys, queries, scores, {rows, from.query_row, width, 1});
    for (int64_t r = 0; r < rows; ++r)
        factors[r] = exponentiate(scores + r * width, to.number, scale);
    map_rows(values, scores, context, {rows, width, step.dim, 1});
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t d = 0; d < head_dim; ++d) context[r * step.dim + d] *= factors[r];
}

// Attention of one row of a sentence in one head.
void attend_row(
    const Step& step, const Attention& from, int64_t sentence, int64_t row, int64_t head,
    const Keys& to) {
    int64_t head_dim = step.dim / step.num_heads, stride = from.keys.position;
    int64_t start = sentence * from.keys.batch + head * from.keys.head;
    int64_t index = sentence * step.rows + row;
    const float* query = from.queries + index * from.query_row + head * head_dim;
    const float* keys = from.keys.keys + start;
    const float* values = from.keys.values + start;
    float* context = from.context + index * step.dim + head * head_dim;
    float* weights = attended.take<float>(to.number + V);
    for (int64_t i = 0; i < to.number; ++i)
        weights[i] = dot(query, keys + to.allowed[i] * stride, head_dim);
    float factor = exponentiate(weights, to.number, 1.0f / std::sqrt((float)head_dim));
    int64_t d = 0;
    for (; d + 4 * V <= head_dim; d += 4 * V) {
        Vec parts[4] = {};
        for (int64_t i = 0; i < to.number; ++i) {
            const float* value = values + to.allowed[i] * stride + d;
            for (int p = 0; p < 4; ++p) parts[p] += weights[i] * load(value + p * V);
        }
        for (int p = 0; p < 4; ++p) store(context + d + p * V, parts[p] * factor);
    }
    for (; d < head_dim; d += V) {
        Vec part = {};
        for (int64_t i = 0; i < to.number; ++i)
            part += weights[i] * load_some(values + to.allowed[i] * stride + d, head_dim - d);
        store_some(context + d, part * factor, head_dim - d);
    }
}

// Scaled dot-product attention. Masked keys are left out, so they change nothing.
void attend(const Step& step, const Attention& from) {
    bool is_shared = !from.is_causal && (!from.mask || from.mask_row == 0);
    split(step.num_heads, step.threads, [&](int64_t first, int64_t last) {
        thread_local Scratch numbers;
        int32_t* allowed = numbers.take<int32_t>(from.num_keys);
        for (int64_t b = 0; b < step.batch; ++b) {
            int64_t number = list_keys(step, from, b, 0, allowed);
            // In search and in encoders, this choice does not depend on padding.
            if (is_shared && std::min(number, step.rows) >= MIN_ATTENDED) {
                for (int64_t h = first; h < last; ++h)
                    attend_by_products(step, from, b, h, {allowed, number});
                continue;
            }
            for (int64_t r = 0; r < step.rows; ++r) {
                if (r > 0 && !is_shared) number = list_keys(step, from, b, r, allowed);
                for (int64_t h = first; h < last; ++h)
                    attend_row(step, from, b, r, h, {allowed, number});
            }
        }
    });
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

// Apply silu(gate) * hidden to rows [gate, hidden], in place of the gate.
void apply_gates(float* rows, int64_t num_rows, int64_t width) {
    int64_t half = width / 2;
    for (float* row = rows; row < rows + num_rows * width; row += width)
        for (int64_t d = 0; d < half; d += V) {
            Vec gate = activate(load_some(row + d, half - d), SILU);
            store_some(row + d, gate * load_some(row + half + d, half - d), half - d);
        }
}

// Intermediate results of a block: (N, D) each, and (N, largest width of a layer).
struct Buffers {
    float *normed, *context, *update, *joint;
};

void attend_self(const Step& step, const Block& block, int64_t index, const Buffers& to) {
    int64_t num_rows = step.batch * step.rows, dim = step.dim, wide = 3 * dim;
    const float* inputs = enter(step, block, block.self_norm, to.normed);
    map_rows(block.joint, inputs, to.joint, {num_rows, dim, wide, step.threads});
    if (step.cosines) {
        rotate(step, to.joint, wide);
        rotate(step, to.joint + dim, wide);
    }
    int64_t head_dim = dim / step.num_heads;
    Attention from = {
        to.joint, wide, {to.joint + dim, to.joint + 2 * dim, step.rows * wide, head_dim, wide},
        step.rows, step.mask, step.mask_batch, step.mask_row, step.is_causal, to.context};
    if (step.caches) {
        append(step, to.joint, step.caches[index]);
        from.keys = step.caches[index];
        from.num_keys = step.num_keys;
    }
    attend(step, from);
    map_rows(block.self_output, to.context, to.update, {num_rows, dim, dim, step.threads});
    leave(step, block, block.self_norm, to.update);
}

void attend_memory(const Step& step, const Block& block, int64_t index, const Buffers& to) {
    int64_t num_rows = step.batch * step.rows, dim = step.dim;
    const float* inputs = enter(step, block, block.cross_norm, to.normed);
    map_rows(block.query, inputs, to.joint, {num_rows, dim, dim, step.threads});
    attend(step, {to.joint, dim, step.memories[index], step.memory_length, step.memory_mask,
                  step.memory_batch, 0, 0, to.context});
    map_rows(block.cross_output, to.context, to.update, {num_rows, dim, dim, step.threads});
    leave(step, block, block.cross_norm, to.update);
}

void feed_forward(const Step& step, const Block& block, const Buffers& to) {
    int64_t num_rows = step.batch * step.rows, dim = step.dim, width = block.hidden.outputs;
    const float* inputs = enter(step, block, block.feed_norm, to.normed);
    map_rows(block.hidden, inputs, to.joint, {num_rows, dim, width, step.threads},
             block.is_gated ? NONE : block.activation);
    if (block.is_gated) apply_gates(to.joint, num_rows, width);
    map_rows(block.output, to.joint, to.update, {num_rows, width, dim, step.threads});
    leave(step, block, block.feed_norm, to.update);
}

}  // namespace

// Run transformer blocks over the states of a step.
EXPORT int32_t run_blocks(const Step* given) {
    const Step& step = *given;
    return guard([&] {
        int64_t size = step.batch * step.rows * step.dim, wide = 3 * step.dim;
        for (int64_t i = 0; i < step.num_blocks; ++i)
            wide = std::max(wide, step.blocks[i].hidden.outputs);
        float* memory = layers.take<float>(3 * size + step.batch * step.rows * wide);
        Buffers buffers = {memory, memory + size, memory + 2 * size, memory + 3 * size};
        for (int64_t round = 0; round < step.num_rounds; ++round)
            for (int64_t i = 0; i < step.num_blocks; ++i) {
                attend_self(step, step.blocks[i], i, buffers);
                if (step.memories) attend_memory(step, step.blocks[i], i, buffers);
                feed_forward(step, step.blocks[i], buffers);
            }
    });
}
