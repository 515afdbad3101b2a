// Recurrent cells, and attention of recurrent decoders.

#pragma once

#include "transformer.h"

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
EXPORT int32_t score_additively(
    const float* queries, const float* keys, const float* weight, float limit, int64_t batch,
    int64_t num_queries, int64_t num_keys, int64_t dim, float* scores) {
    return guard([&] {
        float* query = attended.take<float>(dim + V);
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
    });
}

// Softmax of scores (B, Q, K) over the allowed keys, (B, K), and the sums of values (B, K, D).
EXPORT int32_t mix(
    const float* scores, const uint8_t* mask, const float* values, int64_t batch,
    int64_t num_queries, int64_t num_keys, int64_t dim, float* weights, float* context) {
    return guard([&] {
        int64_t width = round_up(num_keys, V);
        float* row_weights = attended.take<float>(width);
        for (int64_t row = 0; row < batch * num_queries; ++row) {
            int64_t b = row / num_queries;
            const uint8_t* allowed = mask + b * num_keys;
            for (int64_t k = 0; k < num_keys; ++k)
                row_weights[k] = allowed[k] ? scores[row * num_keys + k] : -INFINITY;
            float factor = exponentiate(row_weights, num_keys, 1.0f);
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
    });
}
