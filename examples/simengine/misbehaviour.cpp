// SPDX-License-Identifier: Apache-2.0
#include "misbehaviour.hpp"

#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

namespace simengine {
namespace {

using servetune::UsageError;

/// Where a word's value goes, which also says what it may be: nothing, an exit code, a count,
/// seconds or a rate, a text.
using VicePlace =
    std::variant<bool Misbehaviour::*, std::optional<int> Misbehaviour::*,
                 std::int64_t Misbehaviour::*, double Misbehaviour::*, std::string Misbehaviour::*>;

struct Word {
    std::string_view name;
    VicePlace place;
    std::string_view value;  ///< as --help names it
    int usual_code = 0;
};

const std::array words{
    Word{"never_ready", &Misbehaviour::never_ready, ""},
    Word{"exit_at_once", &Misbehaviour::exit_at_once, "[=CODE]", 1},
    Word{"exit_at_load", &Misbehaviour::exit_at_load, "[=CODE]", 137},
    Word{"oom_then_hang", &Misbehaviour::oom_then_hang, ""},
    Word{"slow_start", &Misbehaviour::slow_start_seconds, "=SECONDS"},
    Word{"listen_late", &Misbehaviour::listen_late_seconds, "=SECONDS"},
    Word{"answer_503", &Misbehaviour::answer_503_seconds, "=SECONDS"},
    Word{"die_at_requests", &Misbehaviour::die_at_requests, "=N"},
    Word{"die_at_tokens", &Misbehaviour::die_at_tokens, "=N"},
    Word{"stall_mid_stream", &Misbehaviour::stall_mid_stream, "=N"},
    Word{"restart_mid_run", &Misbehaviour::restart_mid_run, "=N"},
    Word{"wrong_model", &Misbehaviour::wrong_model, "=NAME"},
    Word{"grandchild_keeps_port", &Misbehaviour::grandchild_keeps_port, ""},
    Word{"ignore_term", &Misbehaviour::ignore_term, ""},
    Word{"stop_slowly", &Misbehaviour::stop_slowly_seconds, "=SECONDS"},
    Word{"flood_log", &Misbehaviour::flood_log_bytes_per_second, "=BYTES_PER_SECOND"},
    Word{"wrong_json", &Misbehaviour::wrong_json, ""},
    Word{"abort_every", &Misbehaviour::abort_every, "=N"},
    Word{"unread_text", &Misbehaviour::unread_text, ""},
    Word{"bad_usage", &Misbehaviour::bad_usage, ""},
};

/// Puts one value where it belongs; says what was wanted where it cannot.
struct Put {
    Misbehaviour& into;
    const Word& word;
    const std::string& value;

    [[noreturn]] void refuse(const std::string& wanted) const {
        throw UsageError("--misbehave " + std::string(word.name) + ": " + wanted +
                         " wanted, got '" + value + "'");
    }
    void operator()(bool Misbehaviour::*place) const {
        if (!value.empty()) refuse("no value");
        into.*place = true;
    }
    void operator()(std::optional<int> Misbehaviour::*place) const {
        const auto code =
            value.empty() ? word.usual_code : servetune::integer_of(value).value_or(-1);
        if (code < 0 || code > 255) refuse("an exit code, 0 ... 255,");
        into.*place = static_cast<int>(code);
    }
    void operator()(std::int64_t Misbehaviour::*place) const {
        const auto count = servetune::integer_of(value);
        if (!count || *count < 1) refuse("a count of 1 or more");
        into.*place = *count;
    }
    void operator()(double Misbehaviour::*place) const {
        const auto number = servetune::real_of(value);
        if (!number || *number <= 0 || *number > 1e9) refuse("a number above 0");
        into.*place = *number;
    }
    void operator()(std::string Misbehaviour::*place) const {
        if (value.empty()) refuse("a name");
        into.*place = value;
    }
};

}  // namespace

Misbehaviour Misbehaviour::of(const std::vector<std::string>& given) {
    Misbehaviour result;
    for (const std::string& text : given) {
        const auto equals = text.find('=');
        const std::string name = text.substr(0, equals);
        const auto word = std::find_if(words.begin(), words.end(),
                                       [&](const Word& known) { return known.name == name; });
        if (word == words.end()) {
            std::vector<std::string> names;
            for (const Word& known : words) names.emplace_back(known.name);
            throw UsageError("--misbehave: unknown word '" + name + "'" +
                             servetune::nearest_text(name, names));
        }
        const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
        std::visit(Put{result, *word, value}, word->place);
    }
    return result;
}

std::string misbehaviour_words() {
    std::string result;
    for (const Word& word : words)
        result += (result.empty() ? "" : " ") + std::string(word.name) + std::string(word.value);
    return result;
}

}  // namespace simengine
