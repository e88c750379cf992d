// SPDX-License-Identifier: Apache-2.0
// Fixed beats searched: what `arguments` or `environment` sets of what a study searches or its
// launch passes.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/study_checks.hpp"
#include "study_file/yaml.hpp"

#include <cstdlib>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

struct FixedStudy {
    std::string engine = "vllm";
    std::string space = "{max_num_seqs: {choice: [4, 8, 64], default: 4}}";
    std::string arguments = "[]";
    std::string deploy = "watch: off";
    std::string more{};

    [[nodiscard]] StudyFile loaded() const {
        const TemporaryFolder folder;
        return load_study(
            folder.write(
                "s.yaml",
                "study: s\nmodel: org/m\nengine: " + engine + "\nspace: " + space +
                    "\narguments: " + arguments + "\n" + more +
                    "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
                    "evaluator: {deploy: {" +
                    deploy + "}}\n"),
            shipped_catalogue);
    }
    [[nodiscard]] std::string refusal() const {
        return message_of<Error>([&] { (void)loaded(); });
    }
};

}  // namespace

TEST_CASE("fixed beats searched: what is said twice is refused in every spelling") {
    const Yaml rows =
        Yaml::load(std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/cases/said_twice.yaml");
    for (const Yaml& row : rows.items()) {
        FixedStudy study;
        std::vector<std::string> spellings{study.arguments};
        std::string says;
        for (const auto& [key, node] : row.entries())
            if (key == "arguments") {
                spellings.clear();
                for (const Yaml& one : node.items()) spellings.push_back(one.text());
            } else
                (key == "says"     ? says
                 : key == "engine" ? study.engine
                 : key == "space"  ? study.space
                 : key == "deploy" ? study.deploy
                                   : study.more) = node.text() + (key == "more" ? "\n" : "");
        for (const std::string& words : spellings) {
            study.arguments = words;
            const std::string refusal = study.refusal();
            INFO(row.place() << " " << words << ": " << refusal);
            CHECK(refusal.empty() == says.empty());
            CHECK(has(refusal, says));
        }
    }
}

TEST_CASE("fixed beats searched: the refusal says where, with several engines of which") {
    CHECK(has(FixedStudy{.arguments = "[--max-num-seqs, \"16\"]"}.refusal(),
              "s.yaml:5:13: 'arguments[0]': '--max-num-seqs 16': this study sets max_num_seqs"));
    // With several engines each has its own words.
    const TemporaryFolder folder;
    const std::string several = message_of<Error>([&] {
        (void)load_study(
            folder.write(
                "t.yaml",
                "study: s\nmodel: org/m\nengine: [vllm, sglang]\nspace: {vllm.max_num_seqs: [4, "
                "8]}\n"
                "arguments:\n  sglang: [--max-running-requests, \"8\"]\n  vllm: [--max-num-seqs, "
                "\"16\"]\n"
                "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
                "evaluator: {deploy: {}}\n"),
            shipped_catalogue);
    });
    CHECK(has(several, "t.yaml:7:10: 'arguments.vllm[0]': '--max-num-seqs 16'"));
    CHECK_FALSE(has(several, "sglang"));
}

TEST_CASE("fixed beats searched: what this program's environment sets is told") {
    const std::string foo = "{foo: {env: FOO, choice: [a, b]}}";
    const std::string podman = "container: {image: i, options: ";
    // What this program's own shell exports is inherited by engines that it starts here.
    setenv("FOO", "z", 1);
    const auto inherited = set_by_own_environment(FixedStudy{.space = foo}.loaded());
    const auto in_container =
        set_by_own_environment(FixedStudy{.space = foo, .deploy = podman + "[]}"}.loaded());
    unsetenv("FOO");
    REQUIRE(inherited.size() == 1);
    CHECK(
        has(inherited.front(),
            "the environment of this program has FOO, which engines inherit: this study sets foo"));
    CHECK(in_container.empty());
    CHECK(set_by_own_environment(FixedStudy{.space = foo}.loaded()).empty());
}

TEST_CASE("fixed beats searched: arguments count in rules") {
    // However they are spelled: two devices here, so data parallelism of two
    // does not fit.
    for (const char* words :
         {"[-tp, \"2\"]", "[--tensor_parallel_size=2]", "[--tensor-parallel-size, \"2\"]"}) {
        INFO(words);
        const StudyFile study = FixedStudy{.space = "{data_parallel_size: [1, 2]}",
                                           .arguments = words,
                                           .more = "hardware: {count: 2}\n"}
                                    .loaded();
        const SearchSpace space(study.composition->parameters(), study.composition->constraints());
        CHECK_FALSE(space.feasible(space.completed({{"data_parallel_size", std::int64_t{2}}})));
        CHECK(study.composition->devices_of(space.default_configuration()) == 2);
    }
}
