// Log-softmax, and steps of beam search.

#pragma once

#include "base.h"

// Replace logits (N, vocabulary) by log-probabilities; banned tokens get -inf afterwards.
EXPORT void log_softmax(
    float* rows, int64_t num_rows, int64_t vocab, const int64_t* banned, int64_t num_banned) {
    int64_t whole = vocab / V * V;
    for (int64_t r = 0; r < num_rows; ++r) {
        float* row = rows + r * vocab;
        Vec most = fill(-INFINITY);
        IntVec is_nan = {};
        for (int64_t v = 0; v < vocab; v += V) {
            Vec each = vocab - v < V ? load_tail(row + v, vocab - v) : load(row + v);
            is_nan |= each != each;
            most = maximum(each, most);
        }
        float peak = largest(most);
        for (int i = 0; i < V; ++i)
            if (is_nan[i]) peak = NAN;  // as in torch, the whole row
        Vec sums = {};
        for (int64_t v = 0; v < whole; v += V) sums += exponential(load(row + v) - peak);
        float total = sum(sums);
        for (int64_t v = whole; v < vocab; ++v) total += exponential(fill(row[v] - peak))[0];
        float rest = std::log(total);
        if (!(peak < INFINITY && peak > -INFINITY)) rest = NAN;
        for (int64_t v = 0; v < whole; v += V) store(row + v, load(row + v) - peak - rest);
        for (int64_t v = whole; v < vocab; ++v) row[v] = row[v] - peak - rest;
        for (int64_t i = 0; i < num_banned; ++i)
            if (banned[i] >= 0 && banned[i] < vocab) row[banned[i]] = -INFINITY;
    }
}

namespace {

// Find the k largest totals + log_probs of W rows (W, vocabulary), largest first, and their indices
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

// The same for the rows (B * W, vocabulary) of several sentences.
EXPORT void find_top(
    const float* totals, const float* log_probs, int64_t batch, int64_t beams, int64_t vocab,
    int64_t k, float* values, int64_t* indices) {
    for (int64_t b = 0; b < batch; ++b)
        find_top_of_rows(
            totals + b * beams, log_probs + b * beams * vocab, beams, vocab, k, values + b * k,
            indices + b * k);
}

// A step of beam search: `Step.choose` of regard/search/backtracking.py. C = 2 W candidates.
struct Advance {
    const float* totals;     // (B, W)
    const float* log_probs;  // (B * W, vocabulary)
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
