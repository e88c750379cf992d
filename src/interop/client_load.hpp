// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace servetune {

/// What stands directly above the blocks of one document says of their load: the client's command
/// (`--request-rate 8`, `--max-concurrency 16`), its arguments as Python prints them
/// (`request_rate=8.0`), and lines it prints before the title (`Traffic request rate: 8.0`,
/// `Maximum request concurrency: 16`). What stands under a heading counts for the blocks under the
/// deeper headings behind it, until one speaks of a load itself.
class ClientLoads {
public:
    /// The text between the block before and this one. Where it says several loads, none is the
    /// block's.
    void add(std::string_view above);

    /// Gives the blocks (as many as texts, in their order) what they do not say themselves. A load
    /// that stands above some of them only, the same each time, may be meant for all and tells none
    /// of them apart: it is left out.
    void tell(const std::vector<PublishedResult*>& blocks) const;

private:
    struct Said {
        bool any = false;               ///< something is said; else the number is not known
        std::optional<double> value{};  ///< nothing: as many as there are (`inf`, `None`)
    };
    struct Load {
        Said rate{};
        Said in_flight{};
    };
    struct Found {
        Said said{};
        std::size_t behind = 0;  ///< the last place where it is said; 0: nothing is
    };
    template <class Names>
    static Found found_in(std::string_view text, const Names& names);
    /// Forgets what is carried where a heading ends its section or speaks of a load.
    void follow_headings(std::string_view text);

    std::vector<Load> loads_;
    Load carried_{};
    std::size_t carried_level_ = 0;  ///< of the heading over what is carried; 0: nothing is
    std::size_t level_ = 0;          ///< of the last heading
    bool in_fence_ = false;
};

}  // namespace servetune
