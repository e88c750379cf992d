// SPDX-License-Identifier: Apache-2.0
#include "servetune/parameter.hpp"

namespace servetune {

Parameter Parameter::scaled(Scale scale) const {
    Parameter result = *this;
    if (auto* whole = std::get_if<IntegerDomain>(&result.domain)) whole->scale = scale;
    else if (auto* range = std::get_if<RealDomain>(&result.domain)) range->scale = scale;
    else throw SpaceError("'" + name + "' has no numbers that a logarithmic scale could spread");
    return result;
}

std::size_t Parameter::domain_levels() const {
    struct {
        std::size_t operator()(BoolDomain) const { return 2; }
        std::size_t operator()(const RealDomain&) const { return 0; }
        std::size_t operator()(TextDomain) const { return 0; }
        std::size_t operator()(const ChoiceDomain& choice) const { return choice.values.size(); }
        std::size_t operator()(const IntegerDomain& range) const {
            if (range.scale != Scale::log2)
                return std::size_t((range.high - range.low) / range.step) + 1;
            std::size_t count = 1;
            for (std::int64_t ratio = range.high / range.low; ratio >= 2; ratio /= 2) ++count;
            return count;
        }
    } visitor;
    return std::visit(visitor, domain);
}

Value Parameter::level(std::size_t i) const {
    if (offers_unset && i-- == 0) return Unset{};
    if (const auto* range = std::get_if<IntegerDomain>(&domain))
        return range->scale == Scale::log2 ? range->low << i
                                           : range->low + std::int64_t(i) * range->step;
    if (const auto* choice = std::get_if<ChoiceDomain>(&domain)) return choice->values[i];
    return i == 1;
}

std::optional<std::size_t> Parameter::level_of(const Value& value) const {
    const std::size_t first = offers_unset ? 1 : 0;
    if (is_unset(value)) return offers_unset ? std::optional<std::size_t>(0) : std::nullopt;
    if (const auto* choice = std::get_if<ChoiceDomain>(&domain)) {
        const auto found = std::find(choice->values.begin(), choice->values.end(), value);
        if (found == choice->values.end()) return std::nullopt;
        return first + std::size_t(found - choice->values.begin());
    }
    if (const auto* range = std::get_if<IntegerDomain>(&domain)) {
        const auto* integer = std::get_if<std::int64_t>(&value);
        if (integer == nullptr || *integer < range->low || *integer > range->high)
            return std::nullopt;
        if (range->scale != Scale::log2) {
            if ((*integer - range->low) % range->step != 0) return std::nullopt;
            return first + std::size_t((*integer - range->low) / range->step);
        }
        for (std::size_t i = first; i < level_count(); ++i)
            if (level(i) == value) return i;
        return std::nullopt;
    }
    const auto* boolean = std::get_if<bool>(&value);
    if (boolean == nullptr || !std::holds_alternative<BoolDomain>(domain)) return std::nullopt;
    return first + (*boolean ? 1U : 0U);
}

bool Parameter::contains(const Value& value) const {
    if (const auto* range = std::get_if<RealDomain>(&domain);
        range != nullptr && !is_unset(value)) {
        const auto* number = std::get_if<double>(&value);
        return number != nullptr && *number >= range->low && *number <= range->high;
    }
    if (const auto* text = std::get_if<std::string>(&value);
        text != nullptr && std::holds_alternative<TextDomain>(domain))
        return !text->empty();
    return level_of(value).has_value();
}

double Parameter::share_below(std::size_t i) const {
    const std::size_t first = offers_unset ? 1 : 0;
    const std::size_t count = domain_levels();
    if (!by_ratio() || i <= first || count < 2) return double(i);
    const auto log_of = [&](std::size_t k) {
        return std::log(double(std::get<std::int64_t>(level(first + k))));
    };
    const auto edge =
        [&](std::size_t k) {  // between k - 1 and k; at the ends as far as to the other side
            if (k == 0) return 1.5 * log_of(0) - 0.5 * log_of(1);
            if (k == count) return 1.5 * log_of(count - 1) - 0.5 * log_of(count - 2);
            return 0.5 * (log_of(k - 1) + log_of(k));
        };
    const double low = edge(0);
    return double(first) + double(count) * (edge(i - first) - low) / (edge(count) - low);
}

std::size_t Parameter::level_at_share(double share) const {
    std::size_t below = std::min(std::size_t(share), level_count() - 1);
    if (!by_ratio() || share < (offers_unset ? 1 : 0)) return below;
    below = offers_unset ? 1 : 0;
    for (std::size_t above = level_count(); above - below > 1;) {
        const std::size_t middle = below + (above - below) / 2;
        if (share_below(middle) <= share) below = middle;
        else above = middle;
    }
    return below;
}

std::size_t Parameter::level_at_position(double u) const {
    const std::size_t last = level_count() - 1;
    const std::size_t first = offers_unset ? 1 : 0;
    if (!by_ratio()) return first + std::size_t(std::llround(u * double(last - first)));
    const auto& range = std::get<IntegerDomain>(domain);
    const auto low = double(range.low);
    const double steps = low * (std::pow(double(range.high) / low, u) - 1) / double(range.step);
    return std::min(first + std::size_t(std::llround(steps)), last);
}

double Parameter::at_position(double u) const {
    const auto& range = std::get<RealDomain>(domain);
    if (range.scale == Scale::linear)
        return std::clamp(range.low + u * (range.high - range.low), range.low, range.high);
    return std::clamp(range.low * std::pow(range.high / range.low, u), range.low, range.high);
}

double Parameter::position_of(double value) const {
    const auto position = [value](double low, double high, Scale scale) {
        if (low == high) return 0.0;
        return scale == Scale::linear ? (value - low) / (high - low)
                                      : std::log(value / low) / std::log(high / low);
    };
    if (const auto* range = std::get_if<IntegerDomain>(&domain))
        return position(double(range->low), double(range->high),
                        range->low > 0 ? range->scale : Scale::linear);
    const auto& range = std::get<RealDomain>(domain);
    return position(range.low, range.high, range.scale);
}

std::string Parameter::domain_text() const {
    struct {
        static std::string scale(Scale scale) {
            return scale == Scale::linear ? "" : scale == Scale::log ? " (log)" : " (log2)";
        }
        std::string operator()(BoolDomain) const { return "true or false"; }
        std::string operator()(TextDomain) const { return "any text"; }
        std::string operator()(const IntegerDomain& range) const {
            return "integer " + std::to_string(range.low) + ".." + std::to_string(range.high) +
                   (range.step == 1 ? "" : " by " + std::to_string(range.step)) +
                   scale(range.scale);
        }
        std::string operator()(const RealDomain& range) const {
            return "real " + text_of(range.low) + ".." + text_of(range.high) + scale(range.scale);
        }
        std::string operator()(const ChoiceDomain& choice) const {
            std::string result = choice.values.size() == 1 ? "" : "one of ";
            for (std::size_t i = 0; i < choice.values.size(); ++i)
                result += (i == 0 ? "" : ", ") + text_of(choice.values[i]);
            return result;
        }
    } visitor;
    return std::visit(visitor, domain) + (offers_unset ? ", or " + std::string(unset_text) : "");
}

Parameter Parameter::boolean(std::string name, bool default_value) {
    return {std::move(name), BoolDomain{}, default_value};
}
Parameter Parameter::integer(std::string name, std::int64_t low, std::int64_t high, Scale scale) {
    return {std::move(name), IntegerDomain{low, high, 1, scale}, low};
}
Parameter Parameter::real(std::string name, double low, double high, Scale scale) {
    return {std::move(name), RealDomain{low, high, scale}, low};
}
Parameter Parameter::choice(std::string name, std::vector<Value> values, bool ordered) {
    const Value first = values.empty() ? Value{} : values.front();
    return {std::move(name), ChoiceDomain{std::move(values), ordered}, first};
}
Parameter Parameter::fixed(std::string name, Value value) {
    return choice(std::move(name), {std::move(value)});
}

Parameter Parameter::log2() const { return scaled(Scale::log2); }
Parameter Parameter::log() const { return scaled(Scale::log); }
Parameter Parameter::with_default(Value value) const {
    Parameter result = *this;
    result.default_value = std::move(value);
    return result;
}
Parameter Parameter::or_unset(std::optional<Value> engine_default) const {
    Parameter result = with_default(Unset{});
    result.offers_unset = true;
    result.value_when_unset = std::move(engine_default);
    return result;
}
Parameter Parameter::growing_memory() const {
    Parameter result = *this;
    result.grows_memory = true;
    return result;
}
Parameter Parameter::when(std::string parent, std::vector<Value> values) const {
    Parameter result = *this;
    result.active_when.push_back({std::move(parent), std::move(values)});
    return result;
}

Parameter flag(std::string name, bool default_value) {
    return Parameter::boolean(std::move(name), default_value);
}
Parameter integer(std::string name, std::int64_t low, std::int64_t high) {
    return Parameter::integer(std::move(name), low, high);
}
Parameter real(std::string name, double low, double high) {
    return Parameter::real(std::move(name), low, high);
}
Parameter choice(std::string name, std::vector<Value> values) {
    return Parameter::choice(std::move(name), std::move(values));
}

}  // namespace servetune
