// SPDX-License-Identifier: Apache-2.0
#include "block_pool.hpp"

#include "servetune/detail/base/ranges.hpp"

#include <algorithm>

namespace servetune {

BlockPool::BlockPool(std::int64_t blocks, std::int64_t unit_blocks)
    : blocks_(blocks), unit_blocks_(unit_blocks), used_(blocks) {
    give_back(blocks);
}

bool BlockPool::take(std::int64_t count) {
    if (count > available()) return false;
    used_ += count;
    while (count > 0) {
        Node& oldest = nodes_[first_];
        if (oldest.named) {
            index_.erase(oldest.name);
            oldest.named = false;
        }
        const std::int64_t taken = std::min(count, oldest.blocks);
        oldest.blocks -= taken;
        count -= taken;
        if (oldest.blocks > 0) break;
        const Unit empty = first_;
        dequeue(empty);
        spare_.push_back(empty);
    }
    return true;
}

void BlockPool::give_back(std::int64_t count) {
    if (count == 0) return;
    used_ -= count;
    if (last_ == none || nodes_[last_].named) enqueue(new_node());
    nodes_[last_].blocks += count;
}

std::optional<BlockPool::Unit> BlockPool::find(std::uint64_t name) const {
    const auto* found = entry_in(index_, name);
    return found != nullptr ? std::optional(*found) : std::nullopt;
}

void BlockPool::acquire(Unit unit) {
    if (nodes_[unit].users++ > 0) return;
    dequeue(unit);
    used_ += unit_blocks_;
}

void BlockPool::release(Unit unit) {
    if (--nodes_[unit].users > 0) return;
    used_ -= unit_blocks_;
    enqueue(unit);
}

std::optional<BlockPool::Unit> BlockPool::name(std::uint64_t name) {
    const auto [place, fresh] = index_.try_emplace(name, none);
    if (!fresh) return std::nullopt;
    const Unit unit = new_node();
    nodes_[unit] = {.name = name, .blocks = unit_blocks_, .users = 1, .named = true};
    place->second = unit;
    return unit;
}

void BlockPool::forget_unused() {
    for (Unit node = first_; node != none; node = nodes_[node].after) {
        if (!nodes_[node].named) continue;
        index_.erase(nodes_[node].name);
        nodes_[node].named = false;
    }
}

BlockPool::Unit BlockPool::new_node() {
    if (spare_.empty()) {
        nodes_.emplace_back();
        return static_cast<Unit>(nodes_.size() - 1);
    }
    const Unit node = spare_.back();
    spare_.pop_back();
    nodes_[node] = {};
    return node;
}

void BlockPool::enqueue(Unit node) {
    nodes_[node].before = last_;
    nodes_[node].after = none;
    (last_ == none ? first_ : nodes_[last_].after) = node;
    last_ = node;
}

void BlockPool::dequeue(Unit node) {
    const Unit before = nodes_[node].before;
    const Unit after = nodes_[node].after;
    (before == none ? first_ : nodes_[before].after) = after;
    (after == none ? last_ : nodes_[after].before) = before;
}

}  // namespace servetune
