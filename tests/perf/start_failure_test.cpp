// SPDX-License-Identifier: Apache-2.0
// Engines that die on paper: each way with the lines that the engine would print, and these read
// back by the engine file's patterns.
#include "support/test.hpp"

#include "base/text.hpp"
#include "deploy/engine_log.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/perf/start_failure.hpp"
#include "servetune/expression.hpp"
#include "study_file/yaml.hpp"
#include "support/shipped.hpp"
#include "support/small_target.hpp"
#include "support/temporary_folder.hpp"

#include <cctype>
#include <map>
#include <regex>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<std::string> engines{"vllm", "sglang", "tensorrt-llm", "llama.cpp"};

/// The small model on a chip of 80 GB, with an engine's log lines and what its fraction means.
/// Weights 1 GB, a token of cache 0.1 MB.
ServingTarget target_of(const std::string& engine) {
    const EngineTraits shipped = shipped_catalogue.traits(engine);
    ServingTarget target = small_target();
    target.hardware.name = "a-made-up-chip";
    target.hardware.memory_bytes = 80e9;
    target.model.context_tokens = 10'000;
    EngineTraits& traits = target.traits;
    traits.engine = engine;
    traits.fraction_of = shipped.fraction_of;
    traits.checks_context = shipped.checks_context;
    traits.log = shipped.log;
    traits.context_bytes = 1e9;
    traits.activation_bytes_per_token_and_width = 100;
    traits.graph_bytes = engine == "llama.cpp" ? 0 : 1e9;
    traits.start_seconds = 20;
    traits.load_bytes_per_second = 1e8;
    return target;
}

ServingSettings settings_of() {
    ServingSettings settings;
    settings.quantization = "bf16";
    return settings;
}

StartResult started(const ServingTarget& target, const ServingSettings& settings) {
    return start(CostModel(target, settings));
}

bool has_places_left(const std::string& line) {
    return std::regex_search(line, std::regex("\\{[a-z_]+\\}"));
}

/// Exits, says why to people, and its log is read as this kind of failure.
void check_exits(const std::string& engine, const StartResult& result, FailureKind kind,
                 const std::string& cause) {
    INFO(engine << ": " << result.cause);
    REQUIRE_FALSE(result.serves);
    CHECK(result.seconds >= 20);
    CHECK(has(result.cause, cause));
    REQUIRE_FALSE(result.log.empty());
    for (const std::string& line : result.log) CHECK_FALSE(has_places_left(line));
    const auto decisive = decisive_line(shipped_catalogue.engine(engine), result.log);
    REQUIRE(decisive);
    CHECK(name_in(failure_kinds, decisive->kind) == name_in(failure_kinds, kind));
}

}  // namespace

TEST_CASE(
    "start failure: what every engine says when it dies is read as what it is, for all events of "
    "all engines") {
    const std::map<std::string, FailureKind> expected{
        {"weights", FailureKind::out_of_memory},
        {"no_cache", FailureKind::out_of_memory},
        {"context", FailureKind::out_of_memory},
        {"context_too_long", FailureKind::rejected_flags},
        {"graphs", FailureKind::out_of_memory},
        {"activations", FailureKind::out_of_memory},
        {"unsupported_attention", FailureKind::unsupported},
        {"rule", FailureKind::rejected_flags},
        {"quantization_mismatch", FailureKind::rejected_flags},
        {"died", FailureKind::crashed_under_load},
        {"load_out_of_memory", FailureKind::crashed_under_load}};
    for (const std::string& engine : engines) {
        const EngineTraits traits = shipped_catalogue.traits(engine);
        for (const char* event : {"started", "weights", "no_cache", "activations",
                                  "unsupported_attention", "rule", "died", "load_out_of_memory"})
            CHECK(traits.log.contains(event));
        for (const auto& [event, lines] : traits.log) {
            INFO(engine << ": " << event);
            const auto decisive = decisive_line(shipped_catalogue.engine(engine), lines);
            if (event == "started") {
                CHECK_FALSE(decisive);
                continue;
            }
            REQUIRE(expected.contains(event));
            REQUIRE(decisive);
            // Its line under load is that of a start: when it was said decides (Deployment::died).
            const bool any_time = engine == "llama.cpp" && event == "load_out_of_memory";
            CHECK(
                name_in(failure_kinds, decisive->kind) ==
                name_in(failure_kinds, any_time ? FailureKind::out_of_memory : expected.at(event)));
        }
    }
}

TEST_CASE("start failure: one that has room serves, and its log says how much") {
    for (const std::string& engine : engines) {
        ServingSettings settings = settings_of();
        if (engine == "llama.cpp") settings.cache_tokens = 16'000;
        const StartResult result = started(target_of(engine), settings);
        INFO(engine << ": " << result.cause);
        CHECK(result.serves);
        CHECK(result.seconds == Approx(30));  // 1 GB of weights at 100 MB/s after 20 s
        CHECK(result.cause.empty());
        REQUIRE_FALSE(result.log.empty());
        std::string all;
        for (const std::string& line : result.log) all += line + "\n";
        CHECK_FALSE(has_places_left(all));
        CHECK(has(all, "0.93 G"));  // 1 GB of weights
    }
}

TEST_CASE("start failure: weights that do not fit the device") {
    for (const std::string& engine : engines) {
        ServingTarget target = target_of(engine);
        target.model.weights["bf16"].bytes = 1e11;
        check_exits(engine, started(target, settings_of()), FailureKind::out_of_memory,
                    "weights and libraries need 94.06 GiB, the device has 74.51");
    }
}

TEST_CASE("start failure: what linear layers keep of each sequence does not fit") {
    ServingTarget target = target_of("vllm");
    target.model.state_bytes_per_sequence = 1e9;
    ServingSettings settings = settings_of();
    settings.max_sequences = 10;
    const StartResult fits = started(target, settings);
    CHECK(fits.serves);
    const MemoryPlan plan = CostModel(target, settings).memory();
    CHECK(plan.state_bytes == 1e10);
    target.model.state_bytes_per_sequence = 0;
    const MemoryPlan without = CostModel(target, settings).memory();
    CHECK(without.cache_bytes - plan.cache_bytes == Approx(1e10).epsilon(1e-3));
    CHECK(without.free_bytes == Approx(plan.free_bytes).margin(1e8));
    target.model.state_bytes_per_sequence = 1e9;
    settings.max_sequences = 100;
    CHECK(has(started(target, settings).cause, "states of 100 sequences need 93.13"));
    settings.tensor_parallel = 2;  // each device has half of the heads
    target.hardware.link_bytes_per_second = 9e11;
    target.traits.link_efficiency = 1;
    CHECK(CostModel(target, settings).memory().state_bytes == 5e10);
}

TEST_CASE("start failure: no memory left for the cache") {
    for (const std::string engine : {"vllm", "sglang", "tensorrt-llm"}) {
        ServingTarget target = target_of(engine);
        target.model.weights["bf16"].bytes = 70e9;
        ServingSettings settings = settings_of();
        settings.memory_fraction = 0.5;
        if (target.traits.fraction_of == EngineTraits::FractionOf::free)
            target.hardware.memory_bytes = 71.7e9;
        check_exits(engine, started(target, settings), FailureKind::out_of_memory,
                    "no memory is left for the cache: ");
    }
}

TEST_CASE("start failure: one request of the longest context does not fit the cache") {
    ServingSettings settings = settings_of();
    settings.cache_bytes = 5e8;  // 5000 tokens in blocks of 16
    const StartResult result = started(target_of("vllm"), settings);
    check_exits("vllm", result, FailureKind::out_of_memory,
                "one request of 10000 tokens does not fit the cache of 4992");
    const auto decisive = decisive_line(shipped_catalogue.engine("vllm"), result.log);
    CHECK(has(decisive->line,
              "max seq len (10000), (0.93 GiB KV cache is needed, which is larger "
              "than the available KV cache memory "
              "(0.46 GiB). The estimated maximum model length is 4992"));
    CHECK(started(target_of("sglang"), settings).serves);  // it does not ask
    settings.max_context_tokens = 4992;
    CHECK(started(target_of("vllm"), settings).serves);
}

TEST_CASE("start failure: graphs and activations that do not fit beside the cache") {
    for (const std::string& engine : engines) {
        ServingTarget target = target_of(engine);
        ServingSettings settings = settings_of();
        settings.cache_bytes = 77.2e9;  // 1 + 1 + 77.2: 0.8 GB are left, for graphs of 1 GB
        if (engine == "llama.cpp") settings.cache_bytes = 79e9;
        const bool graphs = target.traits.log.contains("graphs");
        check_exits(engine, started(target, settings), FailureKind::out_of_memory,
                    "are missing for graphs and activations");
        if (!graphs) continue;
        settings.graph_max_tokens = 0;
        target.traits.activation_bytes_per_token_and_width = 0;
        CHECK(started(target, settings).serves);
        if (target.traits.fraction_of == EngineTraits::FractionOf::weights_cache) continue;
        target.traits.activation_bytes_per_token_and_width =
            200;  // 8192 tokens x 1000 wide: 1.6 GB
        const StartResult tight = started(target, settings);
        check_exits(engine, tight, FailureKind::out_of_memory,
                    "are missing for graphs and activations");
    }
    // SGLang sees activations only under load: it starts.
    ServingTarget target = target_of("sglang");
    target.traits.activation_bytes_per_token_and_width = 2000;
    ServingSettings settings = settings_of();
    settings.memory_fraction = 0.97;
    CHECK(started(target, settings).serves);
}

TEST_CASE("start failure: an attention back end without kernels for the cache's type") {
    for (const std::string& engine : engines) {
        ServingTarget target = target_of(engine);
        target.traits.attention["plain"].cache_types = {"bf16"};
        ServingSettings settings = settings_of();
        settings.cache_type = "fp8_e5m2";
        check_exits(engine, started(target, settings), FailureKind::unsupported,
                    "plain has no kernels for a cache of fp8_e5m2");
        target = target_of(engine);
        settings.cache_tokens = 16'000;
        CHECK(started(target, settings).serves);
    }
}

TEST_CASE(
    "start failure: lines are filled in, unknown names stay, what is filled in is not filled "
    "again") {
    CHECK(filled("{a} of {b}, {c}; {a}", {{"a", "1"}, {"b", "{a}"}}) == "1 of {a}, {c}; 1");
    CHECK(filled("{b}{b}", {{"a", "1"}, {"b", "{b}"}}) == "{b}{b}");  // ends
    CHECK(filled("", {{"a", "1"}}).empty());
    CHECK(filled("{'EngineCore': 1}", {{"a", "1"}}) == "{'EngineCore': 1}");
}

TEST_CASE("start failure: the first line that says anything decides") {
    Engine engine;
    engine.failures = {{"out_of_memory", {"no room", "OOM"}},
                       {"crashed_under_load", {"died", "no room at all"}},
                       {"nonsense", {"odd"}}};
    const auto read = [&](const std::vector<std::string>& log) {
        return decisive_line(engine, log);
    };
    CHECK_FALSE(read({}));
    CHECK_FALSE(read({"all is well", ""}));
    CHECK(read({"x", "it died", "OOM"})->kind == FailureKind::crashed_under_load);
    CHECK(read({"x", "it died", "OOM"})->line == "it died");
    CHECK(read({"no room at all"})->kind ==
          FailureKind::out_of_memory);  // of one line, the first pattern of the file
    CHECK(read({"odd"})->kind == FailureKind::other);
}

TEST_CASE("start failure: each log is read as what it is, and each pattern has one") {
    const Yaml cases = Yaml::load(SERVETUNE_SOURCE "/tests/data/cases/start_logs.yaml");
    const TemporaryFolder folder;
    std::set<std::pair<std::string, std::string>> deciding;  // first word of a pattern, its kind
    for (const Yaml& one : cases.items()) {
        const auto said = [&](const char* key) {
            const Yaml* node = one.entry(key);
            return node == nullptr ? "" : node->text();
        };
        const Engine engine = shipped_catalogue.engine(said("engine"));
        Command command;
        const Yaml* sets = one.entry(std::string_view("sets"));
        for (const Yaml& word : sets == nullptr ? std::vector<Yaml>() : sets->items()) {
            const std::string text = word.text();
            const std::size_t equals = text.find('=');
            if (std::isupper(static_cast<unsigned char>(text.front())) == 0)
                command.argv.push_back(text);
            else command.environment[text.substr(0, equals)] = text.substr(equals + 1);
        }
        if (!said("options").empty()) command.files["options.yaml"] = said("options");
        Process process({.argv = {"cat", folder.write("log", said("log")).string()}});
        REQUIRE(process.wait(std::chrono::seconds(10)));
        EngineLog log(engine, process, names_set(command));
        log.read();
        std::string kind = "none", line = log.ignored_flag().value_or("");
        if (!line.empty()) kind = "ignored_flags";
        else if (const auto cause = log.cause()) {
            kind = name_in(failure_kinds, cause->kind == FailureKind::crashed_under_load
                                              ? FailureKind::other
                                              : cause->kind);
            line = cause->line;
        } else if (line = log.first_error(); said("kind") != "none" && !line.empty())
            kind = "other";
        INFO(one.place() << ": " << line);
        CHECK(kind == said("kind"));
        CHECK((kind == "none" || has(line, said("line"))));
        for (const FailurePattern& pattern : engine.failures)
            for (const std::string& words : pattern.match)
                if (has(line, words)) deciding.emplace(pattern.match.front(), pattern.kind);
    }
    for (const Engine& engine : shipped_catalogue.engines())
        for (const FailurePattern& pattern : engine.failures) {
            INFO(engine.name << ": " << pattern.match.front());
            CHECK_FALSE(pattern.source.empty());
            CHECK(deciding.contains({pattern.match.front(), pattern.kind}));
        }
}
