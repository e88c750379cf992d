// SPDX-License-Identifier: Apache-2.0
// How far apart the levels of parameters are to the optimizer.
#include "search/level_geometry.hpp"
#include "support/observed_points.hpp"
#include "support/test.hpp"

#include <Eigen/Eigenvalues>

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

/// What a scale makes of squared distances (LevelGeometry::roughness).
double rough(double squared) { return std::pow(squared, 0.75); }

}  // namespace

TEST_CASE(
    "level geometry: distances are Euclidean, inactive meets inactive, a concept is one "
    "dimension") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    REQUIRE(geometry.dimensions() == 7);  // the two of one concept are one, what is fixed is none
    for (std::size_t d = 0; d < geometry.dimensions(); ++d) {
        const Eigen::MatrixXd& table = geometry.table(d);
        CHECK(table.diagonal().cwiseAbs().maxCoeff() == 0);
        CHECK((table - table.transpose()).cwiseAbs().maxCoeff() == 0);
        // Squared Euclidean distances: -1/2 J T J has no negative eigenvalue (Schoenberg 1935), and
        // so no Matern of them has.
        const Eigen::Index n = table.rows();
        const Eigen::MatrixXd centring =
            Eigen::MatrixXd::Identity(n, n) - Eigen::MatrixXd::Constant(n, n, 1.0 / double(n));
        CHECK(Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(-0.5 * centring * table * centring)
                  .eigenvalues()
                  .minCoeff() > -1e-12);
    }
    const auto encode = [&](const Assignment& values) {
        return geometry.encode(space.completed(values));
    };
    const auto squared = [&](std::size_t d, const Assignment& a, const Assignment& b) {
        return geometry.squared_distance(d, encode(a), encode(b));
    };
    const std::int64_t n128 = 128;
    const std::int64_t n256 = 256;
    CHECK(squared(1, {{"engine", "a"}, {"a.seqs", n128}}, {{"engine", "b"}, {"b.running", n128}}) ==
          0);  // the same idea, the same number
    CHECK(squared(1, {{"engine", "a"}, {"a.seqs", Unset{}}}, {{"engine", "a"}, {"a.seqs", n256}}) ==
          Approx(rough(0.01)));
    CHECK(squared(1, {{"engine", "a"}, {"a.seqs", n128}}, {{"engine", "a"}, {"a.seqs", n256}}) <
          0.1);
    CHECK(squared(2, {{"backend", Unset{}}}, {{"backend", "y"}}) == Approx(0.01));
    CHECK(squared(2, {{"backend", "x"}}, {{"backend", "z"}}) == Approx(1));
    CHECK(squared(3, {{"level", "low"}}, {{"level", "high"}}) == Approx(1));
    CHECK(squared(3, {{"level", "low"}}, {{"level", "middle"}}) == Approx(rough(0.25)));
    CHECK(squared(5, {{"method", "none"}}, {{"method", "none"}}) == 0);
    CHECK(geometry.typical_distance(0) > 0.8);  // categories
    CHECK(geometry.typical_distance(1) < 0.6);  // a scale of many levels
    CHECK(squared(5, {{"method", "none"}}, {{"method", "ngram"}, {"guesses", std::int64_t{3}}}) ==
          Approx(rough(0.25)));
}

TEST_CASE("level geometry: reals lie where they are on their scale") {
    const SearchSpace space({Parameter::real("share", 0.1, 0.9).or_unset(0.5),
                             Parameter::choice("method", {"none", "some"}),
                             Parameter::real("rate", 1, 100, Scale::log).when("method", {"some"})});
    const LevelGeometry geometry(space);
    CHECK_FALSE(geometry.finite());
    const auto encode = [&](const Assignment& values) {
        return geometry.encode(space.completed(values));
    };
    CHECK(geometry.squared_distance(0, encode({{"share", 0.1}}), encode({{"share", 0.9}})) ==
          Approx(1));
    CHECK(geometry.squared_distance(0, encode({{"share", 0.3}}), encode({{"share", 0.5}})) ==
          Approx(0.0625));
    CHECK(geometry.squared_distance(0, encode({{"share", Unset{}}}), encode({{"share", 0.5}})) ==
          Approx(0.01));
    const auto with_rate = [&](double rate) {
        return encode({{"method", "some"}, {"rate", rate}});
    };
    CHECK(geometry.squared_distance(2, with_rate(1), with_rate(10)) == Approx(0.25));
    CHECK(geometry.squared_distance(2, with_rate(10), encode({{"method", "none"}})) ==
          Approx(0.25));
    CHECK(geometry.squared_distance(2, with_rate(100), encode({{"method", "none"}})) ==
          Approx(0.5));
}

TEST_CASE(
    "level geometry: integers of very many levels lie as reals do, and a word among numbers counts "
    "by its rank") {
    const SearchSpace space({Parameter::integer("tokens", 1024, 65536).or_unset(8192),
                             Parameter::integer("rows", 1, 1 << 20, Scale::log),
                             Parameter::choice("slots", {0, 16, 32, "all"}, true).or_unset(16),
                             Parameter::integer("few", 1, 8)});
    const LevelGeometry geometry(space);
    CHECK(geometry.continuous(0));
    CHECK(geometry.continuous(1));
    CHECK_FALSE(geometry.continuous(2));
    CHECK_FALSE(geometry.continuous(3));
    CHECK(geometry.level_count(0) == 3);
    const auto squared = [&](std::size_t d, const std::string& name, const Value& a,
                             const Value& b) {
        return geometry.squared_distance(d, geometry.encode(space.completed({{name, a}})),
                                         geometry.encode(space.completed({{name, b}})));
    };
    const auto whole = [](std::int64_t value) { return Value(value); };
    CHECK(squared(0, "tokens", whole(1024), whole(65536)) == Approx(1));
    CHECK(squared(0, "tokens", whole(1024), whole(1024 + 64512 / 2)) == Approx(0.25));
    CHECK(squared(0, "tokens", Unset{}, whole(8192)) == Approx(0.01));
    CHECK(squared(1, "rows", whole(1), whole(1024)) == Approx(0.25));
    CHECK(squared(2, "slots", whole(0), "all") == Approx(1));
    CHECK(squared(2, "slots", whole(32), "all") < squared(2, "slots", whole(16), "all"));
    CHECK(squared(2, "slots", Unset{}, whole(16)) == Approx(rough(0.01)));
}

TEST_CASE(
    "level geometry: where an engine's own value has no place on a logarithmic scale, it is not "
    "known") {
    const SearchSpace space({Parameter::real("rate", 0.01, 1, Scale::log).or_unset(0.0)});
    const LevelGeometry geometry(space);
    for (const double rate : {0.01, 0.3, 1.0}) {
        const double distance =
            geometry.squared_distance(0, geometry.encode(space.completed({{"rate", Unset{}}})),
                                      geometry.encode(space.completed({{"rate", rate}})));
        CHECK(std::isfinite(distance));
        CHECK(distance > 0.2);
    }
    CHECK(geometry.table(0).allFinite());
}
