// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// The headings above a place in a document, outermost first, each with a number that tells equal
/// ones apart; the tab it lies in counts as one more.
using DocumentPlace = std::vector<std::pair<std::size_t, std::string>>;

/// The launches that a document printed so far, and which of them a block belongs to.
class Launches {
public:
    struct Launch {
        std::string text;
        std::string engine;
        DocumentPlace place;
        std::size_t group = 0;  ///< those that no result and no benchmark parts are one group
    };
    struct Choice {
        const Launch* launch = nullptr;
        std::string why_none{};  ///< where there is none
        std::string other{};     ///< one that may be meant as well
    };

    void add(const std::string& text, const std::string& engine, DocumentPlace place);
    /// Several in one fence: one of them is it where the clients say which.
    void add_several(std::vector<Launch> launches);
    /// What stands last is no launch: flags alone, or a command that we do not know.
    void interrupt();
    /// Commands of clients in a text: the models that the last of them names.
    void read_clients(std::string_view text);
    /// A result was read, or a crash.
    void measured();

    /// Of those that one fence has, the only one whose model all clients since then name; null:
    /// none, or nobody knows.
    [[nodiscard]] const Launch* one_of_several() const;
    [[nodiscard]] const Launch* last() const { return launches_.empty() ? nullptr : &launches_.back(); }
    /// The last launch, unless the benchmark names another model, or others stand beside it. Of
    /// those, the last where its section is nearer to the block than theirs, or one whose heading
    /// has words that `labels` have and the others do not.
    [[nodiscard]] Choice for_block(const DocumentPlace& place, const std::vector<std::string>& labels) const;

private:
    void forget_clients();
    std::vector<Launch> launches_;
    std::vector<std::string> benchmarked_;           ///< models that the client's command names, since the last launch or block
    std::vector<Launch> several_;                    ///< of the last fence, where it has more than one
    std::vector<std::vector<std::string>> clients_;  ///< models that each client names, since the last launch or block
    std::size_t group_ = 0;
    bool parted_ = false;  ///< the next launch begins a group
};

}  // namespace servetune
