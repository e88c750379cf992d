// SPDX-License-Identifier: Apache-2.0
#include "level_geometry.hpp"

#include <map>
#include <utility>

namespace servetune {

LevelGeometry::LevelGeometry(SearchSpace searched) : space_(std::move(searched)) {
    const SearchSpace& space = space_;
    for (std::size_t i = 0; i < space.parameters().size(); ++i) {
        const Parameter& parameter = space.parameters()[i];
        if (is_fixed(parameter) && parameter.active_when.empty()) continue;
        const auto shares = [&](const Dimension& dimension) {
            return all_of(dimension.parameters, [&](std::size_t other) {
                return alike(space.parameters()[other], parameter) &&
                       exclude_each_other(space.parameters()[other], parameter);
            });
        };
        const auto linked =
            parameter.concept_name.empty() ? dimensions_.end() : find_if(dimensions_, shares);
        if (linked != dimensions_.end()) linked->parameters.push_back(i);
        else dimensions_.push_back({{i}});
    }
    dimension_of_.resize(space.parameters().size());
    for (std::size_t d = 0; d < dimensions_.size(); ++d)
        for (const std::size_t i : dimensions_[d].parameters) dimension_of_[i] = d;
    for (Dimension& dimension : dimensions_) {
        for (const std::size_t i : dimension.parameters) {
            dimension.first_level.push_back(dimension.inactive);
            const Parameter& parameter = space.parameters()[i];
            dimension.inactive += has_positions(parameter)
                                      ? (parameter.offers_unset ? 1U : 0U)
                                      : static_cast<std::uint32_t>(parameter.level_count());
        }
        const Parameter& first = space.parameters()[dimension.parameters.front()];
        if (!has_positions(first) && !first.ordered()) {
            embed_categories(dimension);
            continue;
        }
        if (has_positions(first)) {
            dimension.real_level = dimension.inactive++;
            finite_ = false;
            embed_real(dimension);
        } else embed_ordered(dimension);
        fill_table(dimension, first.ordered() && !has_positions(first) ? roughness : 1);
    }
}

/// Conditions on one parent with no value in common.
bool LevelGeometry::exclude_each_other(const Parameter& a, const Parameter& b) {
    for (const Condition& mine : a.active_when)
        for (const Condition& other : b.active_when)
            if (mine.parent == other.parent && none_of(mine.values, [&](const Value& value) {
                    return contains(other.values, value);
                }))
                return true;
    return false;
}

/// One concept, one kind of domain; reals are kept apart, for each has a scale of its own.
bool LevelGeometry::alike(const Parameter& a, const Parameter& b) {
    return !a.concept_name.empty() && a.concept_name == b.concept_name &&
           a.ordered() == b.ordered() && !has_positions(a) && !has_positions(b) &&
           logarithmic(a) == logarithmic(b) &&
           (!a.ordered() || number_of(a.level(a.level_count() - 1)).has_value() ==
                                number_of(b.level(b.level_count() - 1)).has_value());
}

void LevelGeometry::embed_ordered(Dimension& dimension) const {
    std::vector<const Parameter*> parameters;
    for (const std::size_t i : dimension.parameters) parameters.push_back(&space_.parameters()[i]);
    const LevelMarks kind = marks_of(parameters);
    std::vector<std::optional<Place>> places;  // nothing: unset, nobody knows what it is
    for (const Parameter* parameter : parameters)
        for (std::size_t level = 0; level < parameter->level_count(); ++level) {
            const Value value = parameter->level(level);
            const bool unset = is_unset(value);
            const auto mark = mark_of(
                *parameter, unset ? parameter->value_when_unset.value_or(Unset{}) : value, kind);
            places.push_back(mark ? std::optional(Place{*mark, unset ? unset_lift : 0})
                                  : std::nullopt);
        }
    std::vector<double> marks;
    for (const auto& place : places)
        if (place) marks.push_back(place->mark);
    sort(marks);
    marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
    const auto unit = [](double value, double low, double high) {
        return high > low ? (value - low) / (high - low) : 0.5;
    };
    const auto last_rank = double(marks.empty() ? 0 : marks.size() - 1);
    const bool by_ratio =
        any_of(parameters, [](const Parameter* parameter) { return parameter->by_ratio(); });
    const double half = std::sqrt(0.5);
    dimension.coordinates.setZero(
        dimension.inactive + 1,
        5);  // position, rank, lift when inactive, when unset, when unset and unknown
    for (std::size_t level = 0; level <= places.size(); ++level) {
        auto row = dimension.coordinates.row(static_cast<Eigen::Index>(level));
        if (level == places.size() || !places[level]) {
            row << half * 0.5, half * 0.5, 0, 0, 0;
            row(level == places.size() ? 2 : 4) = 0.5;
            continue;
        }
        const auto rank = double(std::lower_bound(marks.begin(), marks.end(), places[level]->mark) -
                                 marks.begin());
        const double position = unit(places[level]->mark, marks.front(), marks.back());
        row << half * position, half * (by_ratio ? position : unit(rank, 0, last_rank)), 0,
            places[level]->lift, 0;
    }
}

void LevelGeometry::embed_categories(Dimension& dimension) const {
    std::map<std::string, Eigen::Index> vertices;
    struct Row {
        Eigen::Index vertex = 0;
        double lift = 0;
    };
    std::vector<Row> rows;
    const auto vertex = [&](const std::string& text) {
        return vertices.emplace(text, static_cast<Eigen::Index>(vertices.size())).first->second;
    };
    for (const std::size_t i : dimension.parameters) {
        const Parameter& parameter = space_.parameters()[i];
        for (std::size_t level = 0; level < parameter.level_count(); ++level) {
            const Value value = parameter.level(level);
            if (is_unset(value) && parameter.value_when_unset)
                rows.push_back({vertex(category(*parameter.value_when_unset)), unset_lift});
            else rows.push_back({vertex(category(value)), 0});
        }
    }
    rows.push_back({vertex("inactive"), 0});
    // Vertices of a simplex, sqrt(0.5) along an axis each, with the lift on one more axis.
    // Coordinates would take as many axes as there are levels.
    const auto levels = static_cast<Eigen::Index>(rows.size());
    const double along = std::sqrt(0.5);
    const double between_vertices = along * along + along * along;
    dimension.table.resize(levels, levels);
    for (Eigen::Index a = 0; a < levels; ++a)
        for (Eigen::Index b = 0; b < levels; ++b) {
            const Row &one = rows[std::size_t(a)], &other = rows[std::size_t(b)];
            const double lifted = one.lift - other.lift;
            dimension.table(a, b) =
                (one.vertex == other.vertex ? 0.0 : between_vertices) + lifted * lifted;
        }
}

/// Position and rank of a real are the same: one axis. Rows: unset (where it is offered), the reals
/// at position 0, inactive.
void LevelGeometry::embed_real(Dimension& dimension) const {
    const Parameter& parameter = space_.parameters()[dimension.parameters.front()];
    dimension.coordinates.setZero(dimension.inactive + 1, 4);
    if (parameter.offers_unset) {
        const auto number =
            parameter.value_when_unset ? number_of(*parameter.value_when_unset) : std::nullopt;
        if (number && std::isfinite(parameter.position_of(*number)))
            dimension.coordinates.row(0) << parameter.position_of(*number), 0, unset_lift, 0;
        else dimension.coordinates.row(0) << 0.5, 0, 0, 0.5;
    }
    dimension.coordinates.row(dimension.inactive) << 0.5, 0.5, 0, 0;
}

void LevelGeometry::fill_table(Dimension& dimension, double power) {
    const Eigen::Index levels = dimension.coordinates.rows();
    dimension.table.resize(levels, levels);
    for (Eigen::Index a = 0; a < levels; ++a)
        for (Eigen::Index b = 0; b <= a; ++b)
            dimension.table(a, b) = dimension.table(b, a) = std::pow(
                (dimension.coordinates.row(a) - dimension.coordinates.row(b)).squaredNorm(), power);
}

EncodedPoint LevelGeometry::encode(const Configuration& configuration) const {
    EncodedPoint point;
    point.levels.reserve(dimensions_.size());
    point.positions.assign(dimensions_.size(), 0);
    for (const Dimension& dimension : dimensions_) {
        point.levels.push_back(dimension.inactive);
        for (const std::size_t parameter : dimension.parameters)
            if (const Value* value = configuration.find(space_.parameters()[parameter].name))
                encode(parameter, *value, point);
    }
    return point;
}

std::vector<double> LevelGeometry::numbers(const Configuration& configuration) const {
    std::vector<double> result;
    for (const Dimension& dimension : dimensions_) {
        const Value* value =
            dimension.real_level
                ? configuration.find(space_.parameters()[dimension.parameters.front()].name)
                : nullptr;
        result.push_back(value == nullptr ? 0 : number_of(*value).value_or(0));
    }
    return result;
}

Configuration LevelGeometry::decode(const EncodedPoint& point,
                                    const std::vector<double>& numbers) const {
    std::vector<Configuration::Entry> entries;
    for (std::size_t i = 0; i < space_.parameters().size(); ++i) {
        const Parameter& parameter = space_.parameters()[i];
        if (!dimension_of_[i]) {
            entries.emplace_back(parameter.name, parameter.level(0));
            continue;
        }
        const std::size_t d = *dimension_of_[i];
        const Dimension& dimension = dimensions_[d];
        const std::uint32_t level = point.levels[d];
        if (dimension.real_level == level) {
            entries.emplace_back(parameter.name, parameter.continuous()
                                                     ? Value(numbers[d])
                                                     : Value(std::int64_t(numbers[d])));
            continue;
        }
        const std::size_t k = place_of(dimension, i);
        const std::uint32_t end = k + 1 < dimension.first_level.size()
                                      ? dimension.first_level[k + 1]
                                      : dimension.real_level.value_or(dimension.inactive);
        if (level >= dimension.first_level[k] && level < end)
            entries.emplace_back(parameter.name, parameter.level(level - dimension.first_level[k]));
    }
    return Configuration(std::move(entries));
}

/// Of a parameter among those of its dimension.
std::size_t LevelGeometry::place_of(const Dimension& dimension, std::size_t parameter) {
    return std::size_t(
        std::find(dimension.parameters.begin(), dimension.parameters.end(), parameter) -
        dimension.parameters.begin());
}

void LevelGeometry::encode(std::size_t which, const Value& value, EncodedPoint& point) const {
    const std::size_t d = *dimension_of_[which];
    const Dimension& dimension = dimensions_[d];
    const Parameter& parameter = space_.parameters()[which];
    const bool placed = dimension.real_level && !is_unset(value);
    point.positions[d] = placed ? parameter.position_of(number_of(value).value_or(0)) : 0;
    if (placed) {
        point.levels[d] = *dimension.real_level;
        return;
    }
    point.levels[d] = dimension.first_level[place_of(dimension, which)] +
                      static_cast<std::uint32_t>(parameter.level_of(value).value_or(0));
}

double LevelGeometry::squared_distance(std::size_t which, const EncodedPoint& a,
                                       const EncodedPoint& b) const {
    const Dimension& dimension = dimensions_[which];
    const double between_levels = dimension.table(a.levels[which], b.levels[which]);
    if (!dimension.real_level) return between_levels;
    const auto position = [&](const EncodedPoint& point) {
        return dimension.coordinates(point.levels[which], 0) + point.positions[which];
    };
    const double at_zero =
        dimension.coordinates(a.levels[which], 0) - dimension.coordinates(b.levels[which], 0);
    const double apart = position(a) - position(b);
    return between_levels - at_zero * at_zero + apart * apart;
}

}  // namespace servetune
