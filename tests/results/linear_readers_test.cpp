// SPDX-License-Identifier: Apache-2.0
// Whoever reads a file of others does work in proportion to its size: twice the input takes about
// twice the time. Each attack has siblings. The time is that of this thread's processor, of inputs
// that the quadratic way reads for minutes.
#include "results/plain_table.hpp"
#include "search/level_geometry.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"
#include "servetune/study_file.hpp"
#include "study/table.hpp"
#include "study_file/yaml.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <ctime>

#include <algorithm>
#include <functional>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string result_block =
    "============ Serving Benchmark Result ============\nSuccessful requests: 100\nRequest "
    "throughput (req/s): 10.0\n"
    "==================================================\n";

std::string repeated_text(std::size_t count, const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < count; ++i) result += text;
    return result;
}
std::string counted(std::size_t count, const std::string& before, const std::string& behind) {
    std::string result;
    for (std::size_t i = 0; i < count; ++i) result += before + std::to_string(i) + behind;
    return result;
}
std::string in_a_fence(const std::string& text) {
    return "```\n" + text + "\n```\n" + result_block;
}

double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// How many times longer a text of four times the size takes: 4 where the work is linear, 16 where
/// it is quadratic. The shortest of several runs each, for others use the machine too.
template <class Read>
double growth(const Read& read, const std::function<std::string(std::size_t)>& text,
              std::size_t size) {
    const auto shortest = [&](std::size_t count) {
        const std::string content = text(count);
        double best = 1e9;
        for (int run = 0; run < 2; ++run) {
            const double begin = thread_seconds();
            read(content);
            best = std::min(best, thread_seconds() - begin);
        }
        return best;
    };
    return shortest(4 * size) / std::max(shortest(size), 1e-4);
}

void read_document(const std::string& text) {
    static const std::vector<Engine> shipped = shipped_catalogue.engines();
    try {
        (void)read_results(text, "f", shipped);
    } catch (const ParseError&) {
    }
}

constexpr double linear_at_most = 9;

}  // namespace

TEST_CASE("linear readers: documents with long commands, many variables and open quotes") {
    const std::vector<std::function<std::string(std::size_t)>> shapes{
        [](std::size_t n) {
            return in_a_fence("vllm serve m \\\n" + repeated_text(n, "  --a b \\\n"));
        },
        [](std::size_t n) { return in_a_fence("vllm serve m \\\n" + repeated_text(n, "\\\n")); },
        [](std::size_t n) {
            return "vllm serve m \\\n" + repeated_text(n, "  --a b \\\n") + "\n" + result_block;
        },
        [](std::size_t n) {
            return in_a_fence("vllm serve m \"\n" + repeated_text(n, "  --a b\n"));
        },
        [](std::size_t n) { return in_a_fence("echo a \\\n" + repeated_text(n, "  b # c \\\n")); },
        [](std::size_t n) {
            return in_a_fence(counted(n, "export A", "=1\n") + counted(n, "echo $A", "\n") +
                              "vllm serve $A1");
        },
        [](std::size_t n) {
            return in_a_fence(counted(n, "A", "=1\n") + counted(n, "B=1 true $A", "\n") +
                              "vllm serve m");
        },
        [](std::size_t n) {
            return in_a_fence(counted(n, "export A", "=1\n") + repeated_text(n, "vllm serve m\n"));
        },
        [](std::size_t n) { return repeated_text(10 * n, "[x](http://a)") + "\n" + result_block; },
        [](std::size_t n) { return "# " + repeated_text(10 * n, "a:") + "\n" + result_block; },
        [](std::size_t n) {
            return "Say " + repeated_text(n, "vllm serve a ") + "\n" + result_block;
        },
        [](std::size_t n) {
            return repeated_text(n, "Profile: `x`\n# h\n- item\n") + result_block;
        },
        [](std::size_t n) {
            return repeated_text(
                n, "vllm serve a-b --tp 1\nvllm bench serve --model z-1\n" + result_block);
        },
    };
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        INFO("shape " << i);
        CHECK(growth(read_document, shapes[i], 1500) < linear_at_most);
    }
}

TEST_CASE("linear readers: tables of a sweep, of a person, and lists of results") {
    const std::string head = "duration,completed,request_throughput,_bench\n";
    CHECK(growth(
              read_document,
              [&](std::size_t n) { return head + repeated_text(n, "10,100,10,x\n"); },
              2000) < linear_at_most);
    CHECK(growth(
              read_document, [&](std::size_t n) { return head + counted(n, "10,100,10,", "\n"); },
              1000) < linear_at_most);
    const auto refused = [](const std::string& text) {
        return message_of<ParseError>([&] { (void)read_results(text, "f", {}); });
    };
    CHECK(
        refused("duration,completed,request_throughput\n" + repeated_text(20'001, "10,100,10\n")) ==
        "f: a table of 1 to 20000 rows wanted, got 20001");
    const std::string result = R"({"duration": 10, "completed": 100, "request_throughput": 10})";
    CHECK(refused(repeated_text(20'001, result)) ==
          "f: more than 20000 results in one file; split it");
    CHECK(has(refused("{" + counted(300'001, "\"k", "\": 1,") + "\"a\": 1}"),
              "JSON of more than 300000 fields is not read"));
    const auto read_plain = [](const std::string& text) {
        (void)read_plain_table(text, "t.csv", {"maximize:score"});
    };
    for (const auto& [before, behind] :
         {std::pair("a,1\n", ""), std::pair("a,", "\n"), std::pair("v", ",1\n")})
        CHECK(growth(
                  read_plain,
                  [before = before, behind = behind](std::size_t n) {
                      return "k,score\n" +
                             (*behind == 0 ? repeated_text(n, before) : counted(n, before, behind));
                  },
                  2000) < linear_at_most);
}

TEST_CASE(
    "linear readers: names that nobody knows are bounded in number, and a message quotes a line at "
    "most") {
    const TemporaryFolder folder;
    const std::string head =
        "study: s\nmodel: m\nengine: vllm\nworkloads: [random]\nobjective: {maximize: "
        "x}\nevaluator: {deploy: {}}\n";
    const auto loading = [&](const std::string& text) {
        return message_of<ParseError>(
            [&] { (void)load_study(folder.write("s.yaml", text), shipped_catalogue); });
    };
    CHECK(has(loading(head + "space:\n" + counted(1001, "  k", ": 1\n")),
              "'space': at most 1000 names wanted, got 1001"));
    CHECK(
        has(loading(head + "space: {a: {flag: --a, choice: [" + counted(2001, "v", ",") + "]}}\n"),
            "at most 2000 listed values, got 2001"));
    CHECK(has(loading(head + "space: {max_num_seqs: [" + counted(2001, "", ",") + "]}\n"),
              "at most 2000 listed values, got 2001"));
    const std::string unknown = loading(head + counted(3000, "k", ": 1\n"));
    CHECK(std::count(unknown.begin(), unknown.end(), '\n') == 100);
    CHECK(has(unknown, "there may be more errors; these are the first"));

    folder.write("other.yaml",
                 repeated_text(20'000, "a line of a foreign text that is no study at all\n"));
    for (const std::string& text :
         {head + "use: other.yaml\n", replaced(head, "[random]", "[other.yaml]"),
          replaced(head, "[random]", "[./other.yaml]"),
          replaced(head, "engine: vllm", "engine: ./other.yaml"),
          head + "preset: ./other.yaml\n"}) {
        const std::string message = loading(text);
        CHECK(!message.empty());
        CHECK(message.size() < 4000);
    }
    const std::string word(100'000, 'k');
    CHECK(loading(head + word + ": 1\n").size() < 4000);
    CHECK(loading(replaced(head, "maximize: x", "maximize: {" + word + ": 1}")).size() < 4000);
    CHECK(loading(replaced(head, "engine: vllm", "engine: " + word)).size() < 4000);
    CHECK(has(loading(head + "space: {" + std::string(500, 'k') + ": 1}\n"),
              "a name has at most 200 bytes"));
}

TEST_CASE("linear readers: a choice takes as much as its table of distances") {
    std::vector<Value> values;
    for (int i = 0; i < 300; ++i) values.emplace_back("v" + std::to_string(i));
    const LevelGeometry geometry(SearchSpace({Parameter::choice("c", values).or_unset()}));
    CHECK(geometry.level_count(0) == 302);
    CHECK(std::abs(geometry.table(0)(0, 1) - 1) < 1e-12);
    CHECK(geometry.table(0)(7, 7) == 0);
    const auto table = [](const std::string& text) {
        std::vector<Value> levels;
        for (std::size_t i = 0; i < text.size(); ++i) levels.emplace_back("v" + std::to_string(i));
        (void)LevelGeometry(SearchSpace({Parameter::choice("c", levels)}));
    };
    // The table has 16 times the cells. With an axis for each level it took 64 times as long.
    CHECK(growth(
              table, [](std::size_t n) { return std::string(n, 'x'); }, 150) < 32);
}
