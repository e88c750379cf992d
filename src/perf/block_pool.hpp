// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace servetune {

/// The blocks of one replica's cache of keys and values. Only how many a request has is kept, not
/// which: identity matters only to blocks whose content can be found again. These stand in units
/// (`unit_blocks` blocks each) that have a name and a count of users.
///
/// Blocks that nobody uses stand in a queue, the longest unused first. A unit in it keeps its
/// content until its blocks are needed; blocks without a name wait their turn among them, as they
/// do in an engine, so that a prefix ages while other requests come and go.
class BlockPool {
public:
    using Unit = std::uint32_t;

    BlockPool(std::int64_t blocks, std::int64_t unit_blocks);

    [[nodiscard]] std::int64_t blocks() const { return blocks_; }
    [[nodiscard]] std::int64_t available() const {
        return blocks_ - used_;
    }  ///< used by nobody, with a name or without
    [[nodiscard]] std::int64_t used() const { return used_; }

    /// Blocks without a name; false, and nothing taken, when fewer are available. Units that nobody
    /// uses give way, the oldest first.
    bool take(std::int64_t count);
    void give_back(std::int64_t count);

    [[nodiscard]] std::optional<Unit> find(std::uint64_t name) const;
    [[nodiscard]] bool in_use(Unit unit) const { return nodes_[unit].users > 0; }
    void acquire(Unit unit);
    void release(Unit unit);
    /// Makes `unit_blocks` blocks that were taken into a unit with one user. Nothing when the name
    /// is taken: the same content was computed twice, and the later copy stays without a name.
    std::optional<Unit> name(std::uint64_t name);

    /// Units that nobody uses are forgotten, their blocks stay available.
    void forget_unused();

private:
    static constexpr Unit none = ~Unit{0};

    /// A unit, or so many blocks without a name in the queue.
    struct Node {
        std::uint64_t name = 0;
        std::int64_t blocks = 0;
        std::uint32_t users = 0;
        bool named = false;
        Unit before = none, after = none;  ///< in the queue
    };

    Unit new_node();
    void enqueue(Unit node);  ///< as the last
    void dequeue(Unit node);

    std::int64_t blocks_;
    std::int64_t unit_blocks_;
    std::int64_t used_ = 0;
    std::vector<Node> nodes_;
    std::vector<Unit> spare_;  ///< nodes that hold nothing
    Unit first_ = none, last_ = none;
    std::unordered_map<std::uint64_t, Unit>
        index_;  ///< asked, never walked through: its order is no part of any result
};

}  // namespace servetune
