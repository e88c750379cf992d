// SPDX-License-Identifier: Apache-2.0
#include "engine/shell_word.hpp"

#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"

#include "support/test.hpp"

using namespace servetune;

namespace {

/// `text`, or `?text` where it is not literal, by command.
std::vector<std::vector<std::string>> read_commands(std::string_view text) {
    std::vector<std::vector<std::string>> result;
    for (const ShellCommand& command : shell_commands(text)) {
        result.emplace_back();
        for (const ShellWord& word : command)
            result.back().push_back((word.literal ? "" : "?") + word.text);
    }
    return result;
}

}  // namespace

TEST_CASE("a shell's text is read as simple commands of words") {
    struct Row {
        const char* text;
        std::vector<std::vector<std::string>> commands;
    };
    const Row rows[] = {
        {"a b\tc", {{"a", "b", "c"}}},
        {"a \\\n  b # not c\nd", {{"a", "b"}, {"d"}}},
        {"a && b || c; d | e & f", {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}}},
        {"(a) \r\nb", {{"a"}, {"b"}}},
        {"'a b' \"c \\\"d\\\" \\n\" e\\ f ''", {{"a b", "c \"d\" \\n", "e f", ""}}},
        {"--x={\"a\":1}", {{"--x={a:1}"}}},
        {"a\"b\"'c'", {{"abc"}}},
        {"a > out 2>&1 <in b >>more &>all c", {{"a", "b", "c"}}},
        {"a $X ${Y:-1} $(b c; d) `e f` \"$Z\" '$q' \\$r",
         {{"a", "?$X", "?${Y:-1}", "?$(b c; d)", "?`e f`", "?$Z", "$q", "$r"}}},
        {"~/m *.x a~ --p=~/q", {{"?~/m", "?*.x", "a~", "?--p=~/q"}}},
        {" \n # nothing\n", {}},
        {"a\\", {{"a"}}},
    };
    for (const Row& row : rows) {
        INFO(row.text);
        CHECK(read_commands(row.text) == row.commands);
    }
    for (const char* broken : {"a 'b", "a \"b", "a $(b", "a `b", "a ${b", "cat <<END\nx\nEND"}) {
        INFO(broken);
        CHECK_THROWS_AS(shell_commands(broken), ParseError);
    }
}

TEST_CASE("a word knows the bytes that say it, its quotes too") {
    const std::string text = "x --a='b c' \"d\" e\"f\" 'g'";
    const ShellCommand words = shell_commands(text).front();
    REQUIRE(words.size() == 5);
    const char* said[] = {"x", "--a='b c'", "\"d\"", "e\"f\"", "'g'"};
    for (std::size_t i = 0; i < words.size(); ++i)
        CHECK(text.substr(words[i].begin, words[i].end - words[i].begin) == said[i]);
}

TEST_CASE("what is written as words is read as the same words, by both readers") {
    const std::vector<std::string> words{"plain", "",     "two words", "it's", "--j={\"a\": \"b\"}",
                                         "$HOME", "a\nb", "\\",        "'",    "~",
                                         "*",     "#",    ";"};
    CHECK(shell_words(shell_line(words)) == words);
    const auto read = read_commands(shell_line(words));
    REQUIRE(read.size() == 1);
    CHECK(read.front() == words);
    CHECK(quoted_where_needed("--a=b/c:8") == "--a=b/c:8");
    CHECK(shell_quoted("it's") == "'it'\\''s'");
}

TEST_CASE("printed words keep quotes inside, and none of their characters is an operator") {
    using Words = std::vector<std::string>;
    CHECK(shell_words("a;b && c | $X # d") == Words{"a;b", "&&", "c", "|", "$X", "#", "d"});
    CHECK(shell_words("a \\ --b=1 \\\r\n --c") == Words{"a", "--b=1", "--c"});
    CHECK(shell_words("it's") == Words{"it's"});
    CHECK(shell_words("--j='{\"a\": 1}' 'open end") == Words{"--j={\"a\": 1}", "open end"});
}
