// SPDX-License-Identifier: Apache-2.0
#include "client_load.hpp"

#include "base/lower_case.hpp"
#include "base/text.hpp"
#include "base/whole_number.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace servetune {
namespace {

constexpr std::array<std::string_view, 3> rate_spellings{"--request-rate",
                                                         "request_rate=", "Traffic request rate:"};
constexpr std::array<std::string_view, 4> in_flight_spellings{
    "--max-concurrency",
    "max_concurrency=", "Maximum request concurrency:", "Max request concurrency:"};

/// The word at `at`, behind blanks, quotes and one `=`; a flag's name may go on, then it is another
/// flag.
std::string_view word_behind(std::string_view text, std::size_t at) {
    const bool of_python = text[at - 1] == '=';  // name=value, name=value
    const bool goes_on =
        at < text.size() && (text[at] == '-' || text[at] == '_' ||
                             std::isalnum(static_cast<unsigned char>(text[at])) != 0);
    if (goes_on && !of_python) return {};
    while (at < text.size()) {
        if (text.substr(at).starts_with("\\\n")) at += 2;  // the line goes on
        else if (std::string_view(" \t=\"'").find(text[at]) != std::string_view::npos) ++at;
        else break;
    }
    const auto end = std::min(
        text.find_first_of(of_python ? " \r\n\"'\\,)" : " \t\r\n\"'`\\;)|", at), text.size());
    return text.substr(at, end - at);
}

}  // namespace

template <class Names>
ClientLoads::Found ClientLoads::found_in(std::string_view text, const Names& names) {
    std::set<std::optional<double>> values;
    bool readable = true;
    Found found;
    for (const std::string_view name : names)
        for (auto at = text.find(name); at != std::string_view::npos;
             at = text.find(name, at + name.size())) {
            const std::string_view word = word_behind(text, at + name.size());
            if (word.empty()) continue;
            const auto number = real_of(word);
            if (word == "inf" || word == "None") values.insert(std::nullopt);
            else if (number && *number > 0) values.insert(*number);
            else readable = false;  // a variable, a list
            found.behind = std::max(found.behind, at + name.size());
        }
    if (readable && values.size() == 1) found.said = {true, *values.begin()};
    return found;
}

void ClientLoads::follow_headings(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = trimmed(text.substr(begin, end - begin));
        const std::size_t level = std::min(line.find_first_not_of('#'), line.size());
        if (line.starts_with("```")) in_fence_ = !in_fence_;
        else if (!in_fence_ && level > 0 && level < line.size() && line[level] == ' ') {
            const std::string title = lower_case(std::string(line));
            level_ = level;
            for (const std::string_view load :
                 {"rate", "concurren", "qps", "rps", "req/s", "requests"})
                if (title.find(load) != std::string::npos) carried_level_ = 0;
            if (level <= carried_level_) carried_level_ = 0;
        }
        begin = end + 1;
    }
}

void ClientLoads::add(std::string_view above) {
    const Found rate = found_in(above, rate_spellings),
                in_flight = found_in(above, in_flight_spellings);
    const std::size_t said_at = std::max(rate.behind, in_flight.behind);
    follow_headings(above.substr(0, said_at));
    // What a client is not told is its default: no bound.
    const auto of = [](const Found& found) {
        return found.behind > 0 ? found.said : Said{true, std::nullopt};
    };
    const Load said{of(rate), of(in_flight)};
    if (said_at > 0) {
        carried_ = said;
        carried_level_ = level_;
    }
    follow_headings(above.substr(said_at));
    const bool in_force = carried_level_ > 0 && level_ > carried_level_;
    loads_.push_back(said_at > 0 ? said : in_force ? carried_ : Load{});
}

void ClientLoads::tell(const std::vector<PublishedResult*>& blocks) const {
    const auto give = [&](Said Load::*said, std::optional<double> BenchmarkResult::*figure) {
        std::set<std::optional<double>> values;
        bool all = true;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            if ((loads_[i].*said).any) values.insert((loads_[i].*said).value);
            else all = all && (blocks[i]->result.*figure).has_value();
        }
        if (!all && values.size() < 2) return;
        for (std::size_t i = 0; i < blocks.size(); ++i)
            if (auto& own = blocks[i]->result.*figure; !own && (loads_[i].*said).any)
                own = (loads_[i].*said).value;
    };
    give(&Load::rate, &BenchmarkResult::requested_rate_per_second);
    give(&Load::in_flight, &BenchmarkResult::maximum_concurrency);
}

}  // namespace servetune
