// Vectors, memory and threads of the kernels.

#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

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
constexpr int64_t MIN_ATTENDED = 16;  // rows and keys from which attention is faster by products
constexpr size_t KEPT_BYTES = 16 << 20;  // memory that a thread keeps for the next step
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
class Scratch {
public:
    ~Scratch() { std::free(data_); }

    template <typename T>
    T* take(int64_t number) {
        size_t needed = (number * sizeof(T) + 127) / 64 * 64;
        if (needed > size_) {
            release();
            data_ = std::aligned_alloc(64, needed);
            if (!data_) throw std::bad_alloc();
            size_ = needed;
        }
        return static_cast<T*>(data_);
    }

    // Free what is more than most steps need.
    void trim() {
        if (size_ > KEPT_BYTES) release();
    }

private:
    void release() {
        std::free(data_);
        data_ = nullptr;
        size_ = 0;
    }

    void* data_ = nullptr;
    size_t size_ = 0;
};

// Converted inputs of products, states of blocks, and keys and values of attention.
thread_local Scratch operands, layers, attended;

// Call a function and return 0, or 1 if there is not enough memory.
template <typename Function>
int32_t guard(const Function& function) {
    int32_t code = 0;
    try {
        function();
    } catch (const std::bad_alloc&) {
        code = 1;
    }
    operands.trim();
    layers.trim();
    attended.trim();
    return code;
}

// Call a function with the parts of a range, each in a thread of its own.
template <typename Function>
void split(int64_t number, int64_t threads, const Function& function) {
    threads = std::min(threads, number);
    if (threads <= 1) return function(0, number);
    std::vector<std::thread> others;
    std::atomic<bool> has_failed{false};
    for (int64_t i = 1; i < threads; ++i)
        others.emplace_back([&, i] {
            try {
                function(i * number / threads, (i + 1) * number / threads);
            } catch (const std::bad_alloc&) {
                has_failed = true;
            }
        });
    try {
        function(0, number / threads);
    } catch (const std::bad_alloc&) {
        has_failed = true;
    }
    for (std::thread& one : others) one.join();
    if (has_failed) throw std::bad_alloc();
}

enum Precision : int32_t { FP32 = 0, BF16 = 1, INT8 = 2 };
enum Activation : int32_t { NONE = 0, RELU = 1, SILU = 2 };

}  // namespace
