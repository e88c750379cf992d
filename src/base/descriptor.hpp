// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace servetune {

/// A file descriptor that is closed with its owner; -1: none.
class Descriptor {
public:
    explicit Descriptor(int id = -1) : id_(id) {}
    ~Descriptor() { reset(); }
    Descriptor(Descriptor&& other) noexcept : id_(other.id_) { other.id_ = -1; }
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(id_, other.id_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    [[nodiscard]] int id() const { return id_; }
    void reset() {
        if (id_ >= 0) ::close(id_);
        id_ = -1;
    }
    [[nodiscard]] int release() { return std::exchange(id_, -1); }  ///< it is the caller's to close

private:
    int id_;
};

}  // namespace servetune
