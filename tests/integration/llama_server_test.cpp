// SPDX-License-Identifier: Apache-2.0
// What we say of llama.cpp, asked of llama.cpp itself: its --help, its argument parser, and servers
// that answer.
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/real_engines.hpp"
#include "support/test.hpp"
#include "support/tiny_model.hpp"

#include "engine/flag_facts.hpp"
#include "engine/help.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/load_test.hpp"
#include "study_file/yaml.hpp"

#include <nlohmann/json.hpp>

#include <sched.h>

#include <csignal>
#include <optional>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
const fs::path root = fs::path(SERVETUNE_SOURCE) / "search_spaces";

Engine engine(const std::string& program) { return engine_started_by(program, "llama.cpp"); }

/// `b11669`, from "version: 0.7.0 (build 11669, ...".
std::string build_of(const std::string& program, const fs::path& folder) {
    ChildProcess process({program, "--version"}, folder);
    REQUIRE(process.wait_at_most(60s) == 0);
    const std::string text = process.out() + process.err();
    const auto at = text.find("(build ");
    return at == std::string::npos
               ? ""
               : "b" + text.substr(at + 7, text.find_first_not_of("0123456789", at + 7) - at - 7);
}

/// What is promised holds for the builds that were read. Debian goes on to others without asking
/// us: those are reported only.
class Findings {
public:
    explicit Findings(std::string build) : build_(std::move(build)) {
        for (const FlagFacts& facts : known_versions(root, "llama.cpp"))
            binding_ = binding_ || facts.version == build_;
    }
    void add(std::string finding) { findings_.push_back(std::move(finding)); }
    void judge() const {
        for (const std::string& finding : findings_) UNSCOPED_INFO(finding);
        if (binding_) CHECK(findings_.empty());
        else
            WARN("llama.cpp " << build_ << " is none of the builds that are stored; "
                              << findings_.size() << " findings"
                              << (findings_.empty() ? "" : ", first: " + findings_.front()));
    }

private:
    std::string build_;
    bool binding_ = false;
    std::vector<std::string> findings_;
};

/// Why the argument parser refuses a command with a model that is not there; empty when it does
/// not: then the server got as far as opening the model.
std::string parser_refusal(const std::vector<std::string>& argv, const fs::path& folder) {
    ChildProcess process(argv, folder);
    const auto code = process.wait_at_most(60s);
    const std::string log = process.out() + process.err();
    if (!code) return "did not end";
    for (const char* refused : {"error: invalid argument", "error while handling argument"})
        if (const auto at = log.find(refused); at != std::string::npos)
            return log.substr(at, log.find('\n', at) - at);
    return has(log, "failed to open GGUF file") ? "" : "never came to open the model: " + log;
}

SpaceEntry within(std::string name, std::vector<Value> values) {
    SpaceEntry entry{std::move(name)};
    entry.offers_unset =
        std::erase_if(values, [](const Value& value) { return is_unset(value); }) > 0;
    entry.domain = ChoiceDomain{std::move(values)};
    return entry;
}

}  // namespace

TEST_CASE("llama-server: its --help lists every flag of the engine file") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    const Engine llama = engine(program);
    const InstalledFlags installed = installed_flags(llama);
    INFO(installed.why_not);
    REQUIRE(installed.flags.size() > 100);
    const std::string build = build_of(program, folder.path());
    Findings findings(build);
    std::size_t asked = 0;
    const auto ask = [&](const std::string& flag) {
        if (flag.empty()) return;
        ++asked;
        if (!installed.flags.contains(flag)) findings.add("--help does not list " + flag);
    };
    for (const EngineParameter& parameter : llama.parameters) {
        ask(parameter.destination.flag);
        ask(parameter.destination.off_flag);
    }
    for (const FlagFacts& facts : known_versions(root, "llama.cpp")) {
        if (facts.version != build) continue;
        for (const auto& [flag, fact] : facts.flags) ask(flag);
        for (const std::string& flag : installed.flags)
            if (!facts.flags.contains(flag))
                findings.add("--help lists " + flag + ", the stored facts do not");
    }
    findings.judge();
    CHECK(asked > 50);
    CHECK_FALSE(installed.flags.contains("--no-such-flag"));
    WARN("llama.cpp " << build << ": " << asked << " flags looked up among the "
                      << installed.flags.size() << " of its --help");
}

TEST_CASE(
    "llama-server: its argument parser takes 50 random feasible configurations, and not what is "
    "wrong") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    const std::string model = (folder.path() / "absent.gguf").string();
    const LaunchTarget target{model, "127.0.0.1", free_port()};
    const Composition composition({{engine(program)}});
    const SearchSpace space(composition.parameters(), composition.constraints());
    const FeasibleSet feasible(space);
    Rng rng(1);
    const std::vector<std::string> plain =
        composition.render(space.default_configuration(), target).argv;
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), plain.begin(), plain.end());
        return parser_refusal(more, folder.path());
    };
    CHECK(with({}).empty());
    CHECK(with({"--no-such-flag"}) == "error: invalid argument: --no-such-flag");
    CHECK(with({"--cache-type-v", "q9"})
              .starts_with("error while handling argument \"--cache-type-v\""));
    CHECK(with({"--parallel", "0"}).starts_with("error while handling argument \"--parallel\""));
    CHECK(with({"--mlock"}) == "error: invalid argument: --mlock");

    Findings findings(build_of(program, folder.path()));
    for (int i = 0; i < 50; ++i) {
        const Command command = composition.render(feasible.sample(rng), target);
        const std::string refusal = parser_refusal(command.argv, folder.path());
        if (!refusal.empty()) findings.add(refusal + "\n  of " + command.text());
    }
    findings.judge();
}

TEST_CASE("llama-server: it takes both ends of every range and every value of every choice") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    Findings findings(build_of(program, folder.path()));
    const Engine llama = engine(program);
    for (const EngineParameter& declared : llama.parameters) {
        std::vector<std::string> values;
        if (const auto* range = std::get_if<IntegerDomain>(&declared.parameter.domain))
            values = {std::to_string(range->low), std::to_string(range->high)};
        if (const auto* choice = std::get_if<ChoiceDomain>(&declared.parameter.domain))
            for (const Value& value : choice->values)
                if (!is_unset(value)) values.push_back(text_of(value));
        if (declared.destination.flag.empty()) continue;
        for (const std::string& value : values) {
            const std::string refusal =
                parser_refusal({program, "--model", (folder.path() / "absent.gguf").string(),
                                "--host", "127.0.0.1", "--port", std::to_string(free_port()),
                                declared.destination.flag, value},
                               folder.path());
            if (!refusal.empty())
                findings.add(declared.parameter.name + " = " + value + ": " + refusal);
        }
    }
    findings.judge();
}

TEST_CASE("llama-server: 8 random configurations serve a tiny model and stop when told") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    const std::string model = folder.write("tiny.gguf", TinyModel{}.gguf()).string();
    // What two processors and little memory bear; the rest keeps its defaults.
    const auto integers = [](std::initializer_list<std::int64_t> list) {
        return std::vector<Value>(list.begin(), list.end());
    };
    const std::vector<Value> cache_types{Unset{}, "f32",  "bf16",   "q8_0", "q5_1",
                                         "q5_0",  "q4_1", "iq4_nl", "q4_0"};
    SpaceDescription description{{engine(program)}};
    description.others_searched = false;
    description.entries = {
        within("threads", integers({1, 2})),
        within("ctx_size", integers({1024, 2048, 4096})),
        within("parallel", integers({1, 2, 4})),
        within("batch_size", integers({64, 256, 2048})),
        within("ubatch_size", integers({32, 64, 512})),
        within("flash_attention", {Unset{}, "on", "off", "auto"}),
        within("cache_type_k", cache_types),
        within("cache_type_v", cache_types),
        within("kv_unified", {Unset{}, true, false}),
        within("cont_batching", {true, false}),
        within("cache_prompt", {true, false}),
        within("load_mode", {Unset{}, "none", "mmap"}),
        within("spec_type", {"none", "ngram-simple", "ngram-mod", "ngram-map-k"})};
    const Composition composition(description);
    const SearchSpace space(composition.parameters(), composition.constraints());
    const FeasibleSet feasible(space);
    Rng rng(1);
    for (int i = 0; i < 8; ++i) {
        const std::uint16_t port = free_port();
        const Command command =
            composition.render(feasible.sample(rng), {model, "127.0.0.1", port});
        INFO(command.text());
        ChildProcess process(command.argv, folder.path());
        HttpAnswer health;
        for (int tries = 0; tries < 600 && health.status != 200 && !process.wait_at_most(0s);
             ++tries) {
            std::this_thread::sleep_for(50ms);
            health = http(port, "/health");
        }
        INFO(process.err());
        REQUIRE(health.status == 200);
        const HttpAnswer answer = http(
            port, "/v1/completions", R"({"prompt": "to be", "max_tokens": 5, "ignore_eos": true})");
        INFO(answer.body);
        REQUIRE(answer.status == 200);
        CHECK(Json::parse(answer.body)["usage"]["completion_tokens"] == 5);
        process.signal(SIGTERM);
        CHECK(process.wait_at_most(60s) == 0);
    }
}

/// This thread, and what it starts from here on, runs on one core while this lives: client and
/// server do not wait for each other.
class OnCore {
public:
    explicit OnCore(std::size_t core) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        sched_getaffinity(0, sizeof before_, &before_);
        if (CPU_COUNT(&before_) > 1) sched_setaffinity(0, sizeof set, &set);
    }
    ~OnCore() { sched_setaffinity(0, sizeof before_, &before_); }
    OnCore(const OnCore&) = delete;
    OnCore& operator=(const OnCore&) = delete;

private:
    cpu_set_t before_{};
};

TEST_CASE("llama-server: a load test of it counts what it counts, and is sound") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    const std::string model = folder
                                  .write("tiny.gguf", TinyModel{.embedding = 256,
                                                                .layers = 6,
                                                                .heads = 4,
                                                                .kv_heads = 2,
                                                                .feed_forward = 768,
                                                                .context_tokens = 65536}
                                                          .gguf())
                                  .string();
    const Engine llama = engine(program);
    const std::uint16_t port = free_port();
    const std::vector<std::string> command{program,
                                           "--model",
                                           model,
                                           "--host",
                                           "127.0.0.1",
                                           "--port",
                                           std::to_string(port),
                                           "--metrics",
                                           "--threads",
                                           "1",
                                           "--parallel",
                                           "8",
                                           "--ctx-size",
                                           "65536"};
    std::optional<OnCore> core(0);
    ChildProcess process(command, folder.path());
    core.reset();
    core.emplace(1);
    for (int tries = 0;
         tries < 600 && http(port, "/health").status != 200 && !process.wait_at_most(0s); ++tries)
        std::this_thread::sleep_for(50ms);
    LoadTest test;
    test.endpoint.url = "http://127.0.0.1:" + std::to_string(port);
    test.endpoint.model = "tiny";
    test.endpoint.counters.assign(llama.counters.begin(), llama.counters.end());
    // Random weights answer with bytes that are half a character, which the server holds back: a
    // chunk is a token without these.
    Json bias = Json::array();
    for (int token = 128; token < 256; ++token) bias.push_back({token, false});
    test.endpoint.extra_body = Json{{"cache_prompt", false}, {"logit_bias", bias}}.dump();
    test.workload.name = "random";
    test.workload.dataset = {
        .kind = Dataset::Kind::random, .input_tokens = 200, .output_tokens = 48};
    test.workload.requests = 64;
    test.workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 8};
    test.workload.ignore_eos = true;
    test.salt = 1;
    const LoadTestResult result = run_load_test(test);
    const BenchmarkResult& figures = result.statistics.result;
    CHECK(figures.successful_requests == 64);
    CHECK(figures.output_tokens == 64 * 48);
    CHECK(figures.server.output_tokens == figures.output_tokens);
    CHECK(figures.server.input_tokens == figures.input_tokens);
    std::string found, late;
    // On a machine that is busy with other things the server may slow down (steady) and the client
    // be late, and then many tokens come in one read (order: a median gap of 0); the counts still
    // have to fit.
    const auto& findings = result.validity.findings;
    const bool was_late =
        any_of(findings, [](const Finding& finding) { return finding.id == "client"; });
    for (const Finding& finding : findings)
        (finding.id == "steady" || finding.id == "client" || (was_late && finding.id == "order")
             ? late
             : found) += "; " + finding.id + ": " + finding.left + " against " + finding.right;
    INFO(found);
    CHECK(found.empty());
    WARN("llama-server: " << *figures.output_tokens_per_second << " tokens/s, "
                          << *figures.server.output_tokens << " tokens by both counts; audit: "
                          << name_in(verdicts, result.validity.verdict) << late);
    process.signal(SIGTERM);
    CHECK(process.wait_at_most(60s) == 0);
}

TEST_CASE("llama-server: what the engine file forbids ends it at the start") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    const std::string model = folder.write("tiny.gguf", TinyModel{}.gguf()).string();
    const Composition composition({{engine(program)}});
    const SearchSpace space(composition.parameters(), composition.constraints());
    const std::int64_t few = 4, many = 8;
    const std::vector<Assignment> forbidden{{{"flash_attention", "off"}, {"cache_type_v", "q8_0"}},
                                            {{"parallel", many}, {"batch_size", few}}};
    Findings findings(build_of(program, folder.path()));
    for (const Assignment& settings : forbidden) {
        const Configuration configuration = space.changed(space.default_configuration(), settings);
        const Command command =
            composition.render(configuration, {model, "127.0.0.1", free_port()});
        CHECK_FALSE(space.feasible(configuration));
        ChildProcess process(command.argv, folder.path());
        if (process.wait_at_most(60s).value_or(0) == 0)
            findings.add("goes on with " + command.text());
    }
    findings.judge();
}
