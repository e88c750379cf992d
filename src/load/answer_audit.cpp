// SPDX-License-Identifier: Apache-2.0
#include "audit_parts.hpp"

#include "servetune/audit.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <cstddef>
#include <string>

namespace servetune {
namespace {

using namespace audit_tolerances;

/// Successful answers in which a client that reads every field sees text: one token may be the end
/// of sequence alone.
bool should_show_text(const RequestRecord& record) {
    return record.succeeded() && record.output_tokens.value_or(2) >= 2;
}

bool shows_no_text(const RequestRecord& record) {
    return !record.last_token || !record.unread_field.empty();
}

std::string why_unseen(std::span<const RequestRecord> records) {
    const auto any = [&](const auto& holds) {
        return find_if(records, [&](const RequestRecord& record) {
            return should_show_text(record) && shows_no_text(record) && holds(record);
        });
    };
    const std::string unknown =
        "; when tokens came is not known, and rates rest on the server's own count";
    if (const auto unread =
            any([](const RequestRecord& record) { return !record.unread_field.empty(); });
        unread != records.end())
        return "the answers have text in the field '" + unread->unread_field.substr(0, 100) +
               "', which is not read" + unknown;
    if (any([](const RequestRecord& record) { return record.hidden_tokens > 0; }) != records.end())
        return "all their tokens are reasoning, which is counted and not sent: let the answers be "
               "longer" +
               unknown;
    return "the server counts tokens and sends no text of them: special tokens alone, as a broken "
           "model gives" +
           unknown;
}

Validity unseen(std::span<const RequestRecord> records) {
    std::size_t answers = 0;
    std::size_t without = 0;
    double tokens = 0;
    for (const RequestRecord& record : records) {
        if (!should_show_text(record)) continue;
        ++answers;
        if (!shows_no_text(record)) continue;
        ++without;
        tokens += double(record.output_tokens.value_or(0));
    }
    if (double(without) <= (1 - success_wanted) * double(answers)) return {};
    const std::string counted = " answers that count " + figure_shown(tokens) + " tokens";
    const std::string which =
        without == answers
            ? "no token text seen in any of " + figure_shown(double(answers)) + counted
            : "no token text seen in " + figure_shown(double(without)) + counted;
    return {Verdict::unsound,
            {{"unseen", which, "text in all " + figure_shown(double(answers)) + " answers",
              why_unseen(records)}}};
}

/// A note: the figures are those of what came.
Validity hidden(std::span<const RequestRecord> records) {
    double output = 0;
    double kept = 0;
    for (const RequestRecord& record : records) {
        if (!record.succeeded()) continue;
        output += double(record.output_tokens.value_or(0));
        kept += double(record.hidden_tokens);
    }
    if (!(kept > 0)) return {};
    return {Verdict::sound,
            {{"hidden_tokens", figure_shown(kept) + " tokens were counted and not sent",
              "output = " + figure_shown(output) + " tokens",
              "a note: the server keeps its reasoning to itself; TPOT and ITL are those of the "
              "tokens that came, TTFT is that of the "
              "first of these, and rates count all"}}};
}

bool runs_backwards(const RequestRecord& record) {
    const double first = record.first_token.value_or(record.sent);
    return first < record.sent || record.last_token.value_or(first) < first ||
           any_of(record.gaps, [](float gap) { return gap < 0; });
}

Validity backwards(std::span<const RequestRecord> records) {
    const auto count = count_if(records, runs_backwards);
    if (count == 0) return {};
    return {Verdict::unsound,
            {{"order",
              figure_shown(double(count)) +
                  " answers have a token before their request or before an earlier token",
              "none may",
              "impossible: the client's time stamps are wrong, and with them all its times"}}};
}

}  // namespace

Validity audit_answers(std::span<const RequestRecord> records) {
    Validity result = unseen(records);
    add(result, hidden(records));
    add(result, backwards(records));
    return result;
}

}  // namespace servetune
