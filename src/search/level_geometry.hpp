// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigen.hpp"
#include "level_scale.hpp"
#include "servetune/configuration.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A configuration as the kernels see it: for each dimension its level, and of a continuous one its
/// position in [0, 1] (else 0).
struct EncodedPoint {
    std::vector<std::uint32_t> levels;
    std::vector<double> positions;

    friend bool operator==(const EncodedPoint&, const EncodedPoint&) = default;
};

/// How far apart the levels of each parameter are, as squared Euclidean distances, so that any
/// Matern kernel of them is positive definite.
///
/// A dimension is a parameter that can vary, or several parameters of one concept that are never
/// active together (an idea that each engine has under a name of its own): what one engine has
/// taught of many sequences holds for the other until it is told otherwise.
///
/// - Listed numbers and ordered choices: T[a, b] = (0.5 (u_a - u_b)^2 + 0.5 (r_a - r_b)^2)^0.75, u
///   the position on the scale (logarithmic where the domain is, and for lists of positive numbers
///   that span a factor of 4 or more), r the rank among the levels, both in [0, 1]; of integers on
///   a logarithmic scale r is u. A squared Euclidean distance to a power below 1 is a squared
///   Euclidean distance again (Schoenberg 1938). It sets neighbours on a long scale farther apart:
///   measured tables are rougher than the squares would have them.
/// - Reals, and integers of more than 1024 levels: (u_a - u_b)^2.
/// - Others: 1 between two different values.
/// - `Unset`, where it is known what the engine then does: at that value, lifted by `unset_lift` on
///   an axis of its own. Elsewhere as inactive, on an axis of its own.
/// - Inactive: at the centre of the numbers, lifted by 1/2 on an axis of its own; one more vertex
///   of the others. A constant distance to all numbers could not be embedded. Two configurations in
///   which it is inactive are at distance 0, so what is common to them is learned once.
class LevelGeometry {
public:
    /// T[unset, the same value set] = 0.01, on a scale 0.03: alike, unless told otherwise.
    static constexpr double unset_lift = 0.1;
    static constexpr double roughness = 0.75;  ///< the power of a scale's distances; 1: smooth

    explicit LevelGeometry(SearchSpace space);

    [[nodiscard]] std::size_t dimensions() const { return dimensions_.size(); }
    /// Number of levels of a dimension, the inactive one included (it is the last). Of a continuous
    /// one: unset, inactive and the reals.
    [[nodiscard]] std::size_t level_count(std::size_t dimension) const {
        return std::size_t(dimensions_[dimension].table.rows());
    }
    [[nodiscard]] bool continuous(std::size_t dimension) const {
        return dimensions_[dimension].real_level.has_value();
    }
    /// Whether neighbouring levels are alike.
    [[nodiscard]] bool ordered(std::size_t dimension) const {
        return space_.parameters()[dimensions_[dimension].parameters.front()].ordered();
    }
    /// All dimensions have tables only.
    [[nodiscard]] bool finite() const { return finite_; }

    [[nodiscard]] EncodedPoint encode(const Configuration& configuration) const;
    /// The dimension of a parameter (an index of the space) that can vary; nothing for a fixed one.
    [[nodiscard]] std::optional<std::size_t> dimension_of(std::size_t parameter) const {
        return dimension_of_[parameter];
    }
    /// Of each continuous dimension the number itself, for positions are rounded; of others 0.
    [[nodiscard]] std::vector<double> numbers(const Configuration& configuration) const;
    /// The configuration of a point. `numbers`: its own; not read where all dimensions are finite.
    [[nodiscard]] Configuration decode(const EncodedPoint& point,
                                       const std::vector<double>& numbers) const;
    /// Sets the dimension of a parameter to what `value` is there.
    void encode(std::size_t parameter, const Value& value, EncodedPoint& point) const;

    /// T of a dimension, level by level, symmetric with zeros on the diagonal; of reals only among
    /// the other levels.
    [[nodiscard]] const Eigen::MatrixXd& table(std::size_t dimension) const {
        return dimensions_[dimension].table;
    }
    [[nodiscard]] double squared_distance(std::size_t dimension, const EncodedPoint& a,
                                          const EncodedPoint& b) const;
    /// Root of the mean squared distance of two different levels (inactive is one), of a continuous
    /// dimension of two positions: near 1 between categories, half of that on a scale. At least
    /// 0.01.
    [[nodiscard]] double typical_distance(std::size_t dimension) const {
        constexpr double of_positions = 1.0 / 6;  // of two even draws in [0, 1]
        const Eigen::MatrixXd& table = dimensions_[dimension].table;
        const auto n = double(table.rows());
        return std::max(std::sqrt(continuous(dimension) ? of_positions
                                  : n > 1               ? table.sum() / (n * (n - 1))
                                                        : 1),
                        0.01);
    }

private:
    struct Dimension {
        std::vector<std::size_t> parameters{};     ///< of the space
        std::vector<std::uint32_t> first_level{};  ///< of each of them
        std::uint32_t inactive = 0;
        std::optional<std::uint32_t>
            real_level{};               ///< stands for all reals of a continuous parameter
        Eigen::MatrixXd coordinates{};  ///< level x axis; of reals: at position 0
        Eigen::MatrixXd table{};
    };

    /// What a level is on the scale of its parameter; nothing for a category.
    struct Place {
        double mark = 0;
        double lift = 0;  ///< for `Unset`
    };

    static bool is_fixed(const Parameter& parameter) {
        return parameter.level_count() <= 1 && !parameter.continuous();
    }
    static bool exclude_each_other(const Parameter& a, const Parameter& b);
    static bool alike(const Parameter& a, const Parameter& b);
    static std::string category(const Value& value) {
        return std::to_string(value.index()) + text_of(value);
    }
    static std::size_t place_of(const Dimension& dimension, std::size_t parameter);
    void embed_ordered(Dimension& dimension) const;
    void embed_categories(Dimension& dimension) const;
    void embed_real(Dimension& dimension) const;
    static void fill_table(Dimension& dimension, double power);

    SearchSpace space_;
    std::vector<Dimension> dimensions_;
    std::vector<std::optional<std::size_t>> dimension_of_{};  ///< by parameter
    bool finite_ = true;
};

}  // namespace servetune
