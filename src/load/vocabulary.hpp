// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/calibration.hpp"
#include "servetune/rng.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// One token each, with and without a blank before it, in r50k, cl100k, o200k and Llama 2's
/// vocabulary.
inline constexpr std::array<std::string_view, 256> vocabulary_words{
    "the",    "in",     "to",     "of",     "and",    "for",    "be",     "on",     "it",
    "that",   "as",     "you",    "with",   "this",   "or",     "at",     "he",     "are",
    "from",   "was",    "we",     "by",     "if",     "have",   "not",    "can",    "us",
    "all",    "new",    "will",   "but",    "get",    "go",     "out",    "has",    "up",
    "one",    "no",     "man",    "which",  "more",   "his",    "app",    "they",   "set",
    "any",    "part",   "work",   "their",  "class",  "public", "time",   "about",  "over",
    "add",    "when",   "use",    "who",    "some",   "there",  "other",  "had",    "would",
    "also",   "her",    "just",   "what",   "end",    "need",   "into",   "data",   "first",
    "than",   "may",    "our",    "year",   "name",   "want",   "under",  "should", "back",
    "make",   "two",    "after",  "start",  "where",  "list",   "could",  "see",    "let",
    "long",   "most",   "way",    "now",    "right",  "find",   "help",   "him",    "these",
    "does",   "test",   "hand",   "type",   "even",   "well",   "used",   "people", "down",
    "here",   "while",  "before", "call",   "point",  "again",  "run",    "much",   "show",
    "good",   "real",   "many",   "high",   "think",  "try",    "last",   "same",   "being",
    "best",   "found",  "made",   "system", "event",  "those",  "open",   "key",    "view",
    "take",   "state",  "child",  "text",   "still",  "say",    "great",  "day",    "main",
    "direct", "check",  "place",  "order",  "top",    "must",   "second", "final",  "mark",
    "next",   "men",    "fact",   "create", "put",    "world",  "pop",    "print",  "too",
    "model",  "count",  "fun",    "head",   "code",   "local",  "change", "break",  "around",
    "come",   "life",   "word",   "item",   "home",   "three",  "group",  "left",   "equal",
    "since",  "field",  "stand",  "book",   "game",   "report", "page",   "super",  "during",
    "free",   "little", "few",    "leg",    "design", "small",  "better", "things", "access",
    "always", "level",  "ask",    "allow",  "turn",   "full",   "never",  "keep",   "port",
    "hard",   "war",    "week",   "able",   "link",   "bit",    "lot",    "month",  "give",
    "human",  "image",  "far",    "less",   "given",  "color",  "action", "done",   "record",
    "web",    "match",  "kind",   "void",   "style",  "lead",   "mean",   "feel",   "days",
    "school", "date",   "base",   "law",    "range",  "four",   "side",   "thing",  "plan",
    "total",  "short",  "big",    "until",  "times",  "later",  "family", "search", "bar",
    "single", "water",  "away",   "once"};

/// The words that prompts of our own are made of.
///
/// A prompt of words begins with the same word always: the first has no blank before it, and a
/// vocabulary may count it differently.
class Symbols {
public:
    explicit Symbols(const Calibration& calibration);

    /// Symbols at the start of a prompt that a salt changes, or the numbers that stand for it; what
    /// comes before them is always the same.
    [[nodiscard]] std::size_t header_begin() const { return 1; }
    [[nodiscard]] std::size_t header_end() const { return header_begin() + digits_; }

    /// Draws symbols `from` ... `to` - 1.
    void fill(std::vector<std::uint32_t>& symbols, std::size_t from, std::size_t to, Rng rng) const;
    /// Writes `key` as digits from `at` on, as far as there is room; different keys, different
    /// digits.
    void write_key(std::vector<std::uint32_t>& symbols, std::size_t at, std::uint64_t key) const;
    [[nodiscard]] std::string text(const std::vector<std::uint32_t>& symbols) const;

private:
    std::vector<std::string_view> words_;
    std::uint32_t count_ = 0;
    std::size_t digits_ = 0;
};

}  // namespace servetune
