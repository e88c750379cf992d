// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/calibration.hpp"

#include "base/text.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace servetune {
namespace {

constexpr int most_questions = 64;        ///< a word that is left out takes at most eight
constexpr std::size_t fewest_words = 64;  ///< with fewer prompts would look too much alike

/// Prose, a list, numbers and code: what the factor between our estimate and a server's count is
/// taken from.
constexpr std::string_view sample_text =
    "Could you explain why the second query is slower than the first one? I've already added an "
    "index on `customer_id`, but "
    "the planner still chooses a sequential scan.\n\n"
    "Certainly! There are several possible reasons:\n\n"
    "1. **Statistics are outdated.** Run `ANALYZE orders;` and compare the estimated rows (1,250) "
    "with the actual rows (98,431).\n"
    "2. The condition isn't selective; about 40% of the table matches, so reading everything is "
    "cheaper.\n\n"
    "```python\ndef average_latency(values: list[float]) -> float:\n    if not values:\n        "
    "return 0.0\n"
    "    return sum(values) / len(values)\n```\n\n"
    "In 2023, researchers at the University of Copenhagen published a comprehensive overview of "
    "adaptive optimisation techniques; "
    "unfortunately, reproducing their experiments requires considerable infrastructure.";

const std::vector<std::string>& vocabulary() {
    static const auto all = words_of(words_txt.text);
    return all;
}

std::string sentence_of(const std::vector<std::string_view>& words) {
    std::string text(vocabulary()[0]);
    for (const std::string_view word : words) text.append(" ").append(word);
    return text;
}

std::vector<std::string_view> words_from(std::size_t begin, std::size_t end) {
    return {vocabulary().begin() + std::ptrdiff_t(begin),
            vocabulary().begin() + std::ptrdiff_t(end)};
}

/// A server that is asked, and how often.
class AskedServer {
public:
    explicit AskedServer(const TokenCount& count) : count_(count) {}
    /// The tokens of the first word and these.
    std::int64_t operator()(const std::vector<std::string_view>& words) {
        return text(sentence_of(words));
    }
    std::int64_t text(const std::string& text) {
        ++questions_;
        const std::int64_t tokens = count_(text);
        if (tokens < 1)
            throw UsageError("calibration: at least 1 token wanted for '" + text.substr(0, 40) +
                             "...', the server counted " + std::to_string(tokens));
        return tokens;
    }
    [[nodiscard]] int questions() const { return questions_; }

private:
    const TokenCount& count_;
    int questions_ = 0;
};

/// The words from `begin` to `end` that are not one token, by halves: together they are `excess`
/// tokens more than words. False where there are too many to ask for, or where halves do not add
/// up.
bool find_left_out(AskedServer& asked, std::int64_t overhead, std::size_t begin, std::size_t end,
                   std::int64_t excess, std::vector<std::uint16_t>& left_out) {
    if (excess == 0) return true;
    if (end - begin == 1) {
        left_out.push_back(static_cast<std::uint16_t>(begin));
        return true;
    }
    if (asked.questions() >= most_questions - 2) return false;  // two more come after
    const std::size_t middle = (begin + end) / 2;
    const std::int64_t left =
        asked(words_from(begin, middle)) - overhead - 1 - std::int64_t(middle - begin);
    if (left < 0 || left > excess) return false;
    return find_left_out(asked, overhead, begin, middle, left, left_out) &&
           find_left_out(asked, overhead, middle, end, excess - left, left_out);
}

bool ascii_letter(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool ascii_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool ascii_mark(unsigned char c) {
    return c > ' ' && c < 0x7f && !ascii_letter(c) && !ascii_digit(c);
}
bool line_end(unsigned char c) { return c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

Symbols::Symbols(const Calibration& calibration) {
    for (std::size_t i = 0; i < vocabulary().size(); ++i)
        if (!contains(calibration.left_out, i)) words_.push_back(vocabulary()[i]);
    if (words_.size() < 2)
        throw UsageError("calibration: at least 2 words wanted that are one token each");
    count_ = static_cast<std::uint32_t>(words_.size());
    digits_ = std::size_t(std::ceil(64 / std::log2(count_)));
}

void Symbols::fill(std::vector<std::uint32_t>& symbols, std::size_t from, std::size_t to,
                   Rng rng) const {
    for (std::size_t i = from; i < to; ++i)
        symbols[i] = static_cast<std::uint32_t>(rng.index(count_));
    if (from == 0 && to > 0) symbols[0] = 0;
}

void Symbols::write_key(std::vector<std::uint32_t>& symbols, std::size_t at,
                        std::uint64_t key) const {
    for (std::size_t i = at; i < std::min(symbols.size(), at + digits_); ++i, key /= count_)
        symbols[i] = static_cast<std::uint32_t>(key % count_);
}

std::string Symbols::text(const std::vector<std::uint32_t>& symbols) const {
    std::string result;
    result.reserve(symbols.size() * 6);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        if (i > 0) result += ' ';
        result += words_[symbols[i]];
    }
    return result;
}

Calibration calibrate(const TokenCount& count) {
    AskedServer asked(count);
    Calibration result;
    const auto words = std::int64_t(vocabulary().size());
    // The same words once and twice: the difference is what they count, the rest what is counted
    // beside them.
    std::vector<std::string_view> all = words_from(1, vocabulary().size());
    const std::int64_t once = asked(all);
    std::vector<std::string_view> twice = all;
    twice.push_back(vocabulary()[0]);
    std::ranges::copy(all, std::back_inserter(twice));
    const std::int64_t counted = asked(twice) - once;
    if (counted < words)
        throw UsageError("calibration: a text of " + std::to_string(words) +
                         " more words is at least as many more tokens, the server counted " +
                         std::to_string(counted) +
                         "; does it report usage.prompt_tokens of the whole prompt?");
    result.overhead_tokens = std::max<std::int64_t>(0, once - counted);
    bool single = counted == words;
    if (!single) {
        // The first word counts twice in `counted` only where it is more than one token by itself.
        const std::int64_t one = asked({});
        result.overhead_tokens = std::max<std::int64_t>(0, one - 1);
        single = find_left_out(asked, result.overhead_tokens, 0, vocabulary().size(),
                               counted - words, result.left_out) &&
                 vocabulary().size() - result.left_out.size() >= fewest_words;
        if (!single) {
            result.left_out.clear();
            result.tokens_per_word = double(counted) / double(words);
        }
    }
    // Once more as prompts really are: words in any order.
    if (single) {
        const Symbols symbols(result);
        std::vector<std::uint32_t> some(200);
        symbols.fill(some, 0, some.size(), Rng(1));
        result.exact =
            asked.text(symbols.text(some)) == result.overhead_tokens + std::int64_t(some.size());
    }
    const std::string text(sample_text);
    result.tokens_per_estimated_token =
        std::max(0.1, double(asked.text(text) - result.overhead_tokens) / estimated_tokens(text));
    return result;
}

double estimated_tokens(std::string_view text) {
    const auto at = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i])
                               : static_cast<unsigned char>(0);
    };
    const auto run = [&](std::size_t i, auto&& of_class) {
        while (i < text.size() && of_class(at(i))) ++i;
        return i;
    };
    double tokens = 0;
    for (std::size_t i = 0; i < text.size();) {
        const unsigned char c = at(i);
        std::size_t end = i + 1;
        if (ascii_letter(c)) {
            end = run(i, ascii_letter);
            tokens += 1 + 0.1 * double(end - i > 6 ? end - i - 6 : 0);
        } else if (ascii_digit(c)) {
            end = run(i, ascii_digit);
            tokens += std::ceil(double(end - i) / 3);
        } else if (c == ' ') {
            end = run(i, [](unsigned char other) { return other == ' '; });
            tokens += end - i > 1 ? 1 : 0;  // a single one belongs to the word behind it
        } else if (line_end(c)) {
            end = run(i, line_end);
            tokens += i > 0 && ascii_mark(at(i - 1)) ? 0 : 1;
        } else if (c < 0x80) {
            end = std::max(end, run(i, ascii_mark));
            tokens += (end - i == 1 && ascii_letter(at(end)) ? 0.6 : 1) + 0.3 * double(end - i - 1);
        } else {
            end = i + (c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4);
            tokens += c < 0xe0 ? 0.55 : c < 0xf0 ? 0.8 : 2;
        }
        i = end;
    }
    return tokens;
}

}  // namespace servetune
