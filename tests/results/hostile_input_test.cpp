// SPDX-License-Identifier: Apache-2.0
// Files that nobody means to write, and files that other systems write differently: an exact
// message, or the same result.
#include "support/test.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "results/import.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "study_file/yaml.hpp"
#include "support/shipped.hpp"

#include <unistd.h>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string mark(byte_order_mark);

std::string repeated(const std::string& text, std::size_t times) {
    std::string result;
    result.reserve(text.size() * times);
    for (std::size_t i = 0; i < times; ++i) result += text;
    return result;
}

std::string with_crlf(const std::string& text) {
    std::string result;
    for (const char c : text) result += c == '\n' ? "\r\n" : std::string(1, c);
    return result;
}

StudyFile published_study() {
    return load_study(search_spaces / "published/qwen3-14b-h100/study.yaml", shipped_catalogue);
}

std::string yaml_error(const std::string& text) {
    return message_of<ParseError>([&] { (void)Yaml::parse(text, "f"); });
}

/// Kinds, keys and scalars of a tree in one line.
std::string spelled(const Yaml& node) {
    std::string result;
    if (node.is_scalar()) return "'" + node.text() + "'";
    if (node.is_sequence())
        for (const Yaml& item : node.items()) result += spelled(item) + ",";
    if (node.is_mapping())
        for (const auto& [key, child] : node.entries()) result += key + ":" + spelled(child) + ",";
    return "{" + result + "}";
}

}  // namespace

TEST_CASE("hostile YAML: ten megabytes are refused before they are read") {
    CHECK(yaml_error(repeated("- [a, b, c, d, e]\n", 582'543)) ==
          "f: a YAML file has at most 1048576 bytes, got 10485774");
}

TEST_CASE("hostile YAML: nested ten thousand deep, in either style") {
    CHECK(yaml_error(repeated("[", 10'000)).starts_with("f:1:"));
    CHECK(has(yaml_error(repeated("[", 10'000) + repeated("]", 10'000)), "not YAML: "));
    CHECK(has(yaml_error(repeated("{a: ", 10'000) + "b" + repeated("}", 10'000)), "not YAML: "));
    CHECK(has(yaml_error(repeated("- ", 10'000) + "a"), "not YAML: "));
    std::string block;
    for (std::size_t i = 0; i < 1'000; ++i) block += repeated(" ", i) + "a:\n";
    CHECK(has(yaml_error(block), "not YAML: "));
    const std::string path = "[0]";
    CHECK(yaml_error(repeated("[", 101) + repeated("]", 101)) == "");
    CHECK(yaml_error(repeated("[", 102) + repeated("]", 102)) ==
          "f:1:102: '" + repeated(path, 101) + "': nested more than 100 deep");
}

TEST_CASE("hostile YAML: a long text repeated, a long key above many nodes, an anchor in itself") {
    const std::string aliases = repeated("*a, ", 999) + "*a";
    const std::string text = "a: &a " + repeated("x", 100'000) + "\nb: [" + aliases + "]\n";
    CHECK(yaml_error(text) == "f:1:4: 'b[334]': the file expands to more than 33554432 bytes");
    const std::string key = repeated("k", 1'000);
    CHECK(yaml_error(key + ": [" + repeated("x, ", 100'000) + "x]")
              .ends_with("': the file expands to more than 33554432 bytes"));
    CHECK(yaml_error("a: &a [*a]").ends_with("': nested more than 100 deep"));
}

TEST_CASE("hostile YAML: text after the end of the document is refused, and never read for ever") {
    for (const char* text : {"{},", "{}, {}", "\"a\", 5},\n", "[1], [2]\n"})
        CHECK(yaml_error(text) == "f:1: not YAML: text after the end of the document");
    CHECK(yaml_error("a: 1\n---\n---\n") == "f:3: not YAML: text after the end of the document");
    for (const char* text : {"a: 1\n...\n", "---\na: 1\n", "# one\na: 1\n# two\n"})
        CHECK(Yaml::parse(text, "f").entry(std::string("a")) != nullptr);
}

TEST_CASE("hostile YAML: what is not UTF-8 text is refused with its place") {
    CHECK(yaml_error("a: b\nc: \xFF\n") ==
          "f:2:4: UTF-8 text wanted, got the byte 0xFF; save the file as UTF-8");
    CHECK(yaml_error("\xFF\xFE" + std::string("a\0:\0", 4)) ==
          "f:1:1: UTF-8 text wanted, got the byte 0xFF; save the file as UTF-8");
    CHECK(yaml_error(std::string("a: b\nc: d\0e\n", 12)) ==
          "f:2:5: UTF-8 text wanted, got the byte 0x00; save the file as UTF-8");
    CHECK(yaml_error("a: \"x\\0\"") ==
          "f:1:4: 'a': a NUL character, which no flag or path can have");
    // Of a sequence that is cut short, too long, a surrogate, or beyond the last character.
    for (const char* bytes : {"\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                              "\xF4\x90\x80\x80", "\xF0\x9F\x98", "\x80"}) {
        INFO(bytes);
        CHECK(message_of<ParseError>([&] {
                  (void)utf8_text(bytes, "f");
              }).starts_with("f:1:1: UTF-8 text wanted"));
    }
    CHECK(utf8_text("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "f").size() == 9);
    CHECK(Yaml::parse("a: \xC3\xA9", "f").entry(std::string("a"))->text() == "\xC3\xA9");
}

TEST_CASE("YAML from other systems: CRLF and a byte order mark change nothing") {
    const std::string text =
        "a: b\nlist:\n  - x\n  - 'y'\ntext: |\n  one\n  two\nlong: >\n  three\n  four\nlast: {c: "
        "1, d: [2]}\n";
    const std::string plain = spelled(Yaml::parse(text, "f"));
    CHECK(plain ==
          "{a:'b',list:{'x','y',},text:'one\ntwo\n',long:'three four\n',last:{c:'1',d:{'2',},},}");
    CHECK(spelled(Yaml::parse(with_crlf(text), "f")) == plain);
    CHECK(spelled(Yaml::parse(mark + text, "f")) == plain);
    CHECK(spelled(Yaml::parse(mark + with_crlf(text), "f")) == plain);
    CHECK(message_of<ParseError>([] {
              Yaml::parse("a: 1\r\nb: x\r\n", "f").entry(std::string("b"))->fail("no");
          }) == "f:2:4: 'b': no");
}

TEST_CASE("files that are folders, empty, unreadable or not there") {
    const TemporaryFolder folder;
    const std::string at = folder.path().string();
    const std::string refused = "cannot read " + at + ": it is a folder";
    CHECK(message_of<IoError>([&] { (void)Yaml::load(folder.path()); }) == refused);
    CHECK(message_of<IoError>([&] { (void)read_table(folder.path()); }) == refused);
    const std::string long_name(300, 'x');
    CHECK(message_of<IoError>([&] { (void)read_file(long_name); }) ==
          "cannot read " + long_name + ": File name too long");
    CHECK(Yaml::load(folder.write("empty.yaml", "")).kind() == Yaml::Kind::null);
    CHECK(message_of<ParseError>([&] { (void)read_table(folder.write("empty.csv", "")); }) ==
          at + "/empty.csv:1: a table starts with a line of column names");
    const auto closed = folder.write("closed.yaml", "a: b\n");
    std::filesystem::permissions(closed, std::filesystem::perms::none);
    if (geteuid() != 0)  // nothing is unreadable for root
        CHECK(message_of<IoError>([&] { (void)Yaml::load(closed); }) ==
              "cannot read " + closed.string() + ": Permission denied");
}

TEST_CASE(
    "tables from other systems: CRLF and a byte order mark change nothing, other encodings are "
    "refused") {
    const std::string text =
        "seqs,status,total_tokens_per_second,note\n8,ok,100,\"two\nlines\"\n16,ok,110,\n";
    const auto cells = [](const std::string& csv) {
        std::string result;
        const MeasuredTable table = parse_table(csv, "t.csv");
        for (const MeasuredTable::Row& row : table.rows)
            result += row.cells.front().value_or("") + "=" +
                      text_of(std::get<Measurement>(row.outcome)
                                  .metrics.at("total_tokens_per_second")
                                  .value) +
                      "@" + std::to_string(row.line) + " ";
        return result;
    };
    CHECK(cells(text) == "8=100@2 16=110@4 ");
    CHECK(cells(with_crlf(text)) == cells(text));
    CHECK(cells(mark + with_crlf(text)) == cells(text));
    const auto error = [](const std::string& csv) {
        return message_of<ParseError>([&] { (void)parse_table(csv, "t.csv"); });
    };
    CHECK(error("a,status,note\n1,ok,caf\xE9\n") ==
          "t.csv:2:9: UTF-8 text wanted, got the byte 0xE9; save the file as UTF-8");
    CHECK(error(std::string("a,status\n\0,ok\n", 14)) ==
          "t.csv:2:1: UTF-8 text wanted, got the byte 0x00; save the file as UTF-8");
}

TEST_CASE(
    "CSV: a row of one empty cell and a cell that begins with a byte order mark are written so "
    "that they can be read") {
    for (const std::vector<std::string>& cells :
         {std::vector<std::string>{""}, {mark + "a", "b"}, {"", ""}, {"\r"}}) {
        const auto rows = parse_csv(csv_line(cells), "t.csv");
        REQUIRE(rows.size() == 1);
        CHECK(rows.front().cells == cells);
    }
}

TEST_CASE(
    "documents from other systems: CRLF changes nothing, a failed count without a successful one "
    "is no ratio") {
    const std::string text =
        "# Runs\n\n```bash\nvllm serve org/m \\\n  --max-num-seqs 512\n```\n"
        "============ Serving Benchmark Result ============\nFailed requests:   3\nTotal Token "
        "throughput (tok/s):   5\n"
        "==================================================\n";
    const auto plain = read_results(text, "f", shipped_catalogue.engines());
    REQUIRE(plain.size() == 1);
    CHECK(plain[0].arguments == "vllm serve org/m --max-num-seqs 512");
    for (const std::string& same : {with_crlf(text), std::string(utf8_text(mark + text, "f"))})
        CHECK(csv_of(read_results(same, "f", shipped_catalogue.engines())) == csv_of(plain));
    const StudyFile study = published_study();
    std::string served = text;
    served.replace(served.find("org/m"), 5, study.model);
    const auto& launchers = study.composition->engines();
    const Imported imported = import_for_study(read_results(served, "f", launchers), study);
    CHECK(imported.rows + imported.unplaced.size() == 1);
    CHECK_FALSE(has(imported.csv, "success_ratio"));
}

TEST_CASE("flags of a document whose JSON is nested without end are not known") {
    const StudyFile study = published_study();
    const std::string deep = "{\"method\":" + repeated("[", 200'000) + repeated("]", 200'000) + "}";
    CHECK_FALSE(
        study.composition
            ->parse({"vllm", "serve", study.model, "--speculative-config", deep}, study.model)
            .unknown.empty());
}
