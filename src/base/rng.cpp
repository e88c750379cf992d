// SPDX-License-Identifier: Apache-2.0
#include "servetune/rng.hpp"

#include <boost/random/gamma_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_01.hpp>
#include <boost/random/uniform_int_distribution.hpp>

#include <numeric>
#include <random>
#include <utility>

namespace servetune {

struct Rng::Engine {
    explicit Engine(std::uint64_t seed) : bits(seed) {}
    std::mt19937_64 bits;
};

Rng::Rng(std::uint64_t seed) : engine_(std::make_unique<Engine>(seed)) {}
Rng::Rng(const Rng& other) : engine_(std::make_unique<Engine>(*other.engine_)) {}
Rng& Rng::operator=(const Rng& other) { return *this = Rng(other); }
Rng::Rng(Rng&&) noexcept = default;
Rng& Rng::operator=(Rng&&) noexcept = default;
Rng::~Rng() = default;

double Rng::uniform() { return boost::random::uniform_01<double>()(engine_->bits); }

std::size_t Rng::index(std::size_t count) {
    return boost::random::uniform_int_distribution<std::size_t>(0, count - 1)(engine_->bits);
}

double Rng::normal() { return boost::random::normal_distribution<double>()(engine_->bits); }

double Rng::gamma(double shape) {
    return boost::random::gamma_distribution<double>(shape)(engine_->bits);
}

std::vector<std::size_t> ordered_by(std::uint64_t seed, std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (seed == 0) return order;
    Rng rng(seed);
    for (std::size_t left = count; left > 1; --left)
        std::swap(order[left - 1], order[rng.index(left)]);
    return order;
}

}  // namespace servetune
