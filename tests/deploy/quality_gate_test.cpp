// SPDX-License-Identifier: Apache-2.0
// What answers are worth: how two of them compare, what accuracy a program printed, once for each
// set of values.
#include "servetune/detail/deploy/quality_gate.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/study_file.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A server of which only the address is asked.
class AddressOnly : public Server {
public:
    explicit AddressOnly(std::string url) : url_(std::move(url)) {}
    [[nodiscard]] Endpoint endpoint() const override { return {.url = url_, .model = "m"}; }
    [[nodiscard]] std::optional<Failure> died() const override { return std::nullopt; }
    [[nodiscard]] std::optional<Failure> changed() const override { return std::nullopt; }
    bool reset_cache() override { return false; }
    [[nodiscard]] std::vector<std::string> not_in_force() const override { return {}; }
    [[nodiscard]] std::unique_ptr<MachineWatch> watch(
        MachineWatchOptions /*options*/) const override {
        return nullptr;
    }

private:
    std::string url_;
};

/// Prints the accuracy that the last part of the address says, and counts how often it was run.
struct AccuracyProgram {
    TemporaryFolder folder{};
    fs::path script = folder.write(
        "accuracy",
        "#!/bin/sh\necho run >> \"$0.runs\"\necho noise >&2\n"
        "[ \"${1##*/}\" = broken ] && exit 3\necho \"{\\\"accuracy\\\": ${1##*/}}\"\n");
    AccuracyProgram() { fs::permissions(script, fs::perms::owner_all); }

    [[nodiscard]] QualityOptions options() const {
        QualityOptions options;
        options.command = {script.string(), "{url}"};
        options.defaults = {{"kv", Value("auto")}, {"quantization", Value("none")}};
        options.file = folder.path() / "quality.json";
        return options;
    }
    [[nodiscard]] std::size_t runs() const {
        std::error_code none;
        const auto bytes = fs::file_size(script.string() + ".runs", none);
        return none ? 0 : bytes / 4;
    }
};

Configuration answering(const std::string& kv, std::int64_t seqs = 8) {
    return Configuration::of(
        {{"kv", Value(kv)}, {"quantization", Value("none")}, {"seqs", Value(seqs)}});
}

/// What the gate says of a server whose address ends so.
std::variant<Metrics, Failure> answer_of(QualityGate& gate, const std::string& says,
                                         const Configuration& configuration) {
    return gate.of(AddressOnly("http://h/" + says), configuration, {});
}

double drop_in(const std::variant<Metrics, Failure>& found) {
    REQUIRE(std::holds_alternative<Metrics>(found));
    return std::get<Metrics>(found).at("quality_drop").value;
}

}  // namespace

TEST_CASE("quality: two answers agree as far as they begin alike") {
    CHECK(agreement_of("", "") == 1);
    CHECK(agreement_of("abc", "abc") == 1);
    CHECK(agreement_of("abc", "") == 0);
    CHECK(agreement_of("abcd", "abXd") == 0.5);
    CHECK(agreement_of("ab", "abcd") == 0.5);
}

TEST_CASE(
    "quality: an accuracy is read from a number, an object, and lm-evaluation-harness' table") {
    CHECK(accuracy_in("loading\n0.71\n\n") == 0.71);
    CHECK(accuracy_in("x\n{\"accuracy\": 0.5, \"f1\": 0.4}") == 0.5);
    CHECK(accuracy_in("{\"accuracy\": 0.5, \"f1\": 0.4}", "f1") == 0.4);
    CHECK_FALSE(accuracy_in("{\"accuracy\": 0.5}", "f1"));
    CHECK_FALSE(accuracy_in("all done"));
    CHECK_FALSE(accuracy_in(""));
    const std::string table =
        "local-completions (base_url=http://127.0.0.1:8000), num_fewshot: 5\n"
        "|Tasks|Version|     Filter     |n-shot|  Metric   |   |Value |   |Stderr|\n"
        "|-----|------:|----------------|-----:|-----------|---|-----:|---|-----:|\n"
        "|gsm8k|      3|flexible-extract|     5|exact_match|\u2191  |0.7012|\u00b1  |0.0126|\n"
        "|     |       |strict-match    |     5|other_match|\u2191  |0.6911|\u00b1  |0.0127|\n"
        "|arc  |      1|none            |     0|acc        |\u2191  |0.4000|\u00b1  |0.0143|\n";
    CHECK(accuracy_in(table) == 0.7012);
    CHECK(accuracy_in(table, "gsm8k/other_match") == 0.6911);
    CHECK(accuracy_in(table, "arc/acc") == 0.4);
    CHECK_FALSE(accuracy_in(table, "arc/exact_match"));
    CHECK_FALSE(accuracy_in(
        "|Tasks|Metric|   |Value |\n|wiki|word_perplexity|\u2193  |10.2|\n"));  // less is better
}

TEST_CASE(
    "quality: the drop is against the default, measured once for each set of values that touches "
    "answers") {
    const AccuracyProgram program;
    QualityGate gate(program.options());
    CHECK(std::get<Metrics>(answer_of(gate, "0.6", answering("fp8")))
              .empty());  // the default was never asked
    CHECK(drop_in(answer_of(gate, "0.8", answering("auto"))) == 0);
    CHECK(drop_in(answer_of(gate, "0.6", answering("fp8"))) == Approx(0.25));
    CHECK(drop_in(answer_of(gate, "0.1", answering("fp8", 64))) ==
          Approx(0.25));  // the same answers as before
    CHECK(drop_in(answer_of(gate, "0.1", answering("auto", 64))) == 0);
    CHECK(program.runs() == 2);
    QualityGate resumed(program.options());
    CHECK(drop_in(answer_of(resumed, "0.1", answering("fp8"))) == Approx(0.25));
    CHECK(program.runs() == 2);

    QualityOptions others = program.options();  // another question: nothing that was kept counts
    others.metric = "accuracy";
    QualityGate anew(others);
    CHECK(std::get<Metrics>(answer_of(anew, "0.6", answering("fp8"))).empty());
}

TEST_CASE(
    "quality: what the default does not have counts as set, and another default or command asks "
    "anew") {
    const AccuracyProgram program;
    QualityOptions options = program.options();
    options.defaults["engine"] = Value("vllm");
    options.defaults["sglang.quantization"] = std::nullopt;  // the default is vLLM's
    QualityGate gate(options);
    const auto on = [](const std::string& engine) {
        Assignment values{
            {"kv", Value("auto")}, {"quantization", Value("none")}, {"engine", Value(engine)}};
        if (engine == "sglang") values["sglang.quantization"] = Value("none");
        return Configuration::of(values);
    };
    CHECK_FALSE(gate.lacks_default(on("vllm")));
    CHECK(gate.lacks_default(on("sglang")));
    CHECK(drop_in(answer_of(gate, "0.8", on("vllm"))) == 0);
    CHECK_FALSE(gate.lacks_default(on("sglang")));
    CHECK(drop_in(answer_of(gate, "0.6", on("sglang"))) == Approx(0.25));
    CHECK(program.runs() == 2);

    CHECK_FALSE(QualityGate(options).lacks_default(on("sglang")));  // it is kept
    options.baseline = "vllm serve another-model";
    CHECK(QualityGate(options).lacks_default(on("sglang")));
    options.baseline.clear();
    options.defaults["kv"] = Value("fp8");
    CHECK(QualityGate(options).lacks_default(on("sglang")));
}

TEST_CASE(
    "quality: the command's program may be a name in PATH, and is the study's fault where it is "
    "not there") {
    const AccuracyProgram program;
    QualityOptions options = program.options();
    options.command.insert(options.command.begin(), "sh");
    QualityGate gate(options);
    CHECK(drop_in(answer_of(gate, "0.8", answering("auto"))) == 0);
    CHECK(program.runs() == 1);
    options.command.front() = "no-such-program";
    options.file = program.folder.path() / "other.json";
    QualityGate missing(options);
    CHECK_THROWS_AS(answer_of(missing, "0.8", answering("auto")), UsageError);
}

TEST_CASE(
    "quality: a broken limit and a program that fails are the configuration's failure, of the "
    "default the study's end") {
    const AccuracyProgram program;
    QualityOptions options = program.options();
    options.limits = {Limit::parse("quality_drop <= 1%")};
    QualityGate gate(options);
    CHECK(std::holds_alternative<Failure>(
        answer_of(gate, "0.6", answering("fp8"))));  // nothing to judge it by
    CHECK_THROWS_AS(answer_of(gate, "broken", answering("auto")), UsageError);
    CHECK_THROWS_AS(answer_of(gate, "0", answering("auto")), UsageError);
    CHECK(drop_in(answer_of(gate, "0.8", answering("auto"))) == 0);
    const auto refused = answer_of(gate, "0.6", answering("fp8"));
    REQUIRE(std::holds_alternative<Failure>(refused));
    CHECK(std::get<Failure>(refused).message ==
          "limit quality_drop <= 1% broken: 0.25 (kv=fp8); it was not load-tested");
    const auto failed = answer_of(gate, "broken", answering("fp4"));
    REQUIRE(std::holds_alternative<Failure>(failed));
    CHECK(has(std::get<Failure>(failed).message, "exit code 3"));

    options.prompts = {"both"};
    CHECK_THROWS_AS(QualityGate(options), UsageError);
}

TEST_CASE(
    "quality: a limit on the drop says what it lacks, and prompts that are not there are the only "
    "error") {
    const TemporaryFolder folder;
    folder.write("empty.txt", " \n");
    const auto refused = [&](const std::string& more, const std::string& evaluator = "deploy") {
        const auto file =
            folder.write("study.yaml",
                         "study: s\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\n"
                         "workloads: [{use: random, requests: 40}]\nothers: default\n"
                         "space: {max_num_seqs: {choice: [64, 128]}}\nevaluator: " +
                             evaluator +
                             "\nobjective: {maximize: output_tokens_per_second, limits: "
                             "[quality_drop <= 1%]}\n" +
                             more);
        const std::string message =
            message_of<ParseError>([&] { (void)load_study(file, shipped_catalogue); });
        return message.substr(std::min(message.size(), file.string().size()));
    };
    const std::string limit = ":9:58: 'objective.limits[0]': 'quality_drop' cannot be had: ";
    CHECK(refused("") ==
          limit + "answers are compared for `quality`: add `quality: {}` to the study");
    CHECK(refused("", "simulate") ==
          limit + "only `evaluator: {deploy: ...}` with `quality` compares answers");
    CHECK(refused("quality: {}\n").empty());
    const std::string prompts = ":10:20: 'quality.prompts': there is no ";
    CHECK(refused("quality: {prompts: empty.txt}\n") ==
          prompts + "prompt in " + (folder.path() / "empty.txt").string());
    CHECK(refused("quality: {prompts: none.txt}\n") ==
          prompts + "file " + (folder.path() / "none.txt").string());
}
