// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace servetune {

/// One step of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
/// OOPSLA 2014): a bijection on 64 bits whose output bits all depend on all input bits.
constexpr std::uint64_t mix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
}

/// A seed of its own for each (seed, stream): the seed of trial 7 does not depend on what trials
/// 0..6 drew.
constexpr std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t stream) {
    return mix64(seed ^ mix64(stream));
}

/// The seed of a stream as a study's seed changes it: seed 0 leaves the stream's own.
constexpr std::uint64_t reseeded(std::uint64_t stream, std::uint64_t seed) {
    return seed == 0 ? stream : derive_seed(seed, stream);
}

/// The source of all randomness in servetune; it comes in as an argument, never from a global.
///
/// The engine is std::mt19937_64 (its output is fixed by the C++ standard) and the distributions
/// are Boost.Random's (one implementation for every compiler), so the same seed draws the same
/// numbers everywhere.
class Rng {
public:
    explicit Rng(std::uint64_t seed);
    Rng(const Rng& other);
    Rng& operator=(const Rng& other);
    Rng(Rng&&) noexcept;
    Rng& operator=(Rng&&) noexcept;
    ~Rng();

    /// Uniform over [0, 1): 0 included, 1 not.
    double uniform();
    /// Uniform over {0, ..., count - 1}. `count` must be at least 1.
    std::size_t index(std::size_t count);
    /// Standard normal: mean 0, standard deviation 1.
    double normal();
    /// Gamma with this shape (more than 0) and scale 1: mean and variance are `shape`; shape 1 is
    /// the exponential distribution.
    double gamma(double shape);

private:
    struct Engine;
    std::unique_ptr<Engine> engine_;
};

/// The indices 0 .. count - 1 in an order that the seed draws (Fisher and Yates); seed 0: in their
/// own.
std::vector<std::size_t> ordered_by(std::uint64_t seed, std::size_t count);

}  // namespace servetune
