// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace servetune {

/// A number of at least 0 that may be far beyond the range of a double (five hundred parameters of
/// a thousand levels are 1e1500 configurations), with a double's 53 bits.
class WideNumber {
public:
    WideNumber() = default;
    /// `value` is finite and at least 0.
    explicit WideNumber(double value) : mantissa_(value) { normalize(); }

    WideNumber& operator+=(const WideNumber& other) {
        if (mantissa_ == 0) return *this = other;
        if (other.mantissa_ == 0) return *this;
        if (other.steps_ > steps_) {
            const WideNumber mine = *this;
            *this = other;
            return *this += mine;
        }
        if (steps_ - other.steps_ <= 1)
            mantissa_ += other.steps_ == steps_ ? other.mantissa_ : other.mantissa_ / step;
        normalize();
        return *this;
    }
    friend WideNumber operator*(WideNumber number, double factor) {
        number.mantissa_ *= factor;
        number.normalize();
        return number;
    }
    /// The quotient of two numbers; `whole` is not 0.
    friend double ratio(const WideNumber& part, const WideNumber& whole) {
        return std::ldexp(part.mantissa_ / whole.mantissa_,
                          static_cast<int>(part.steps_ - whole.steps_) * step_bits);
    }

private:
    static constexpr int step_bits = 512;
    static constexpr double step = 0x1p512;

    /// The mantissa is 0 or in [2^-256, 2^256).
    void normalize() {
        if (mantissa_ >= 0x1p256) {
            mantissa_ /= step;
            ++steps_;
        } else if (mantissa_ < 0x1p-256 && mantissa_ > 0) {
            mantissa_ *= step;
            --steps_;
        }
    }

    double mantissa_ = 0;  ///< the number is mantissa * 2^(512 steps)
    std::int32_t steps_ = 0;
};

}  // namespace servetune
