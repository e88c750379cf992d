// SPDX-License-Identifier: Apache-2.0
#include "space/expression_states.hpp"

namespace servetune {

bool Expression::mentions(std::size_t at, std::size_t name) const {
    const Node& node = nodes_[at];
    if (node.kind == Kind::name) return node.index == name;
    return any_of(node.operands, [&](std::size_t operand) { return mentions(operand, name); });
}

/// Of two numbers, at least one of them an interval.
Expression::Possible Expression::combined(Kind kind, const Possible& left,
                                          const Possible& right) const {
    constexpr double any = std::numeric_limits<double>::infinity();
    const auto ends = [&](const Possible& side) {
        return side.kind == Possible::Kind::numbers
                   ? std::array{side.low, side.high}
                   : std::array{number(side.value), number(side.value)};
    };
    const bool equality = kind == Kind::equal || kind == Kind::not_equal;
    if (equality)  // what is no number is different
        for (const Possible* side : {&left, &right})
            if (side->kind == Possible::Kind::value && !number_of(side->value))
                return Possible::of(kind == Kind::not_equal);
    const auto [a, b] = ends(left);
    const auto [c, d] = ends(right);
    const auto surely = [&](bool yes, bool no) {
        return yes ? Possible::of(true) : no ? Possible::of(false) : Possible::either();
    };
    // Rounding keeps the order of numbers, so the ends of an interval are those of the results.
    switch (kind) {
        case Kind::add: return Possible::between(a + c, b + d);
        case Kind::subtract: return Possible::between(a - d, b - c);
        case Kind::multiply:
            return Possible::between(std::min({a * c, a * d, b * c, b * d}),
                                     std::max({a * c, a * d, b * c, b * d}));
        case Kind::divide:
            if (c <= 0 && d >= 0) return Possible::between(any, any);
            return Possible::between(std::min({a / c, a / d, b / c, b / d}),
                                     std::max({a / c, a / d, b / c, b / d}));
        case Kind::modulo: {
            const double widest = std::max(std::abs(c), std::abs(d));
            if (c == d && c > 0 && a >= 0 && std::floor(a / c) == std::floor(b / c) && b < 0x1p53)
                return Possible::between(std::fmod(a, c), std::fmod(b, c));
            return c <= 0 && d >= 0 ? Possible::between(any, any)
                                    : Possible::between(-widest, widest);
        }
        default: break;
    }
    if (!std::isfinite(a) || !std::isfinite(c)) return Possible::either();
    switch (kind) {
        case Kind::equal: return surely(a == b && b == c && c == d, b < c || d < a);
        case Kind::not_equal: return surely(b < c || d < a, a == b && b == c && c == d);
        case Kind::less: return surely(b < c, a >= d);
        case Kind::less_equal: return surely(b <= c, a > d);
        case Kind::greater: return surely(a > d, b <= c);
        default: return surely(a >= d, b < c);
    }
}

}  // namespace servetune
