// SPDX-License-Identifier: Apache-2.0
#include "servetune/budget.hpp"

namespace servetune {

const Failure* common_failure(std::span<const Trial> trials, std::size_t since,
                              std::size_t enough) {
    if (enough == 0) return nullptr;
    const Failure* first = nullptr;
    std::size_t failed = 0;
    for (const Trial& trial : trials) {
        if (!trial.of_search() || !trial.told()) continue;
        const Failure* failure = trial.failure();
        if (failure == nullptr || failure->kind == FailureKind::not_in_table) return nullptr;
        if (trial.id < since) continue;
        if (first != nullptr && failure->kind != first->kind) return nullptr;
        if (first == nullptr) first = failure;
        ++failed;
    }
    return failed >= enough ? first : nullptr;
}

}  // namespace servetune
