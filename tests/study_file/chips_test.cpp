// SPDX-License-Identifier: Apache-2.0
// Every shipped chip with every engine and preset: the study is valid, its commands can be written,
// and it ends. The same for every engine version whose flags are stored.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "engine/flag_facts.hpp"
#include "predict/prediction.hpp"
#include "servetune/error.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/simulate_evaluator.hpp"
#include "servetune/study.hpp"
#include "servetune/study_checks.hpp"
#include "study_file/yaml.hpp"

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

std::vector<std::string> names_in_folder(const char* folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(search_spaces / folder))
        if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
    sort(names);
    return names;
}

/// A model of the shape of Qwen3-4B whose weights leave little more than a third of one device.
std::string tight_model(const HardwareSpec& chip) {
    std::string text = read_file(search_spaces / "models/qwen3-4b.yaml");
    const auto replace = [&](const std::string& from, const std::string& to) {
        const auto at = text.find(from);
        REQUIRE(at != std::string::npos);
        text.replace(at, from.size(), to);
    };
    const std::string bytes = std::to_string(std::int64_t(0.62 * chip.memory_bytes));
    replace("model: Qwen/Qwen3-4B", "model: org/tight");
    replace("also: [Qwen3-4B]", "also: [tight]");
    replace("bf16: {bytes: 8044936192, per_token: 8044936192",
            "bf16: {bytes: " + bytes + ", per_token: " + bytes);
    return text;
}

/// Chips of one architecture together: their spaces are mostly the same.
std::vector<HardwareSpec> chips_by_architecture() {
    std::vector<HardwareSpec> chips = shipped_catalogue.all_hardware();
    stable_sort(chips, [](const HardwareSpec& a, const HardwareSpec& b) {
        return a.architecture < b.architecture;
    });
    return chips;
}

/// Seconds of the processor, whatever else runs.
double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

std::string chip_study(const std::string& chip, const std::string& engine,
                       const std::string& preset, const std::string& model,
                       const std::string& version = "") {
    return "study: s\nmodel: " + model + "\nhardware: {device: " + chip +
           ", count: 4}\nengine: " + engine + "\npreset: " + preset + "\n" +
           (version.empty() ? "" : "engine_versions: {" + engine + ": \"" + version + "\"}\n") +
           "workloads: [{use: random, input_tokens: 64, output_tokens: 16, requests: 16, arrival: "
           "{concurrency: 4}}]\n"
           "objective: {maximize: total_tokens_per_second}\ndecision: published\nbudget: 8 "
           "trials\nstrategy: random\nevaluator: simulate\n";
}

/// What is found on the way over many studies; spaces that are the same are counted and rendered
/// once.
class Tour {
public:
    void visit(const std::string& text, const std::string& engine, bool runs) {
        INFO(text);
        ++studies_;
        std::unique_ptr<StudyFile> study;
        try {
            study = std::make_unique<StudyFile>(
                load_study(folder_.write("s.yaml", text), shipped_catalogue));
        } catch (const Error& error) {
            const std::string said = error.what();
            CHECK(has(said, "s.yaml:"));  // file and line
            const bool other_chip = has(said, engine + " does not run on cdna");
            const bool no_part =
                has(said, "the preset has nothing for " + engine + "; those that have: ");
            CHECK((other_chip || no_part));
            if (!other_chip && !no_part) UNSCOPED_INFO(said);
            ++refused_;
            return;
        }
        const Problem& problem = problem_of(*study);
        if (!runs) return;
        const auto evaluator = simulated(*study);
        if (const std::string why = why_nothing_starts(*evaluator, problem); !why.empty()) {
            // By the cost model: TensorRT-LLM, whose cache leaves too little for its activations on
            // 24 GB, and vLLM with the half of the memory that its preset for processors gives it.
            CHECK(has(why, "where the least memory is missing"));
            const double memory = shipped_catalogue.hardware(study->machine.hardware).memory_bytes;
            const bool no_room = (engine == "tensorrt-llm" && memory < 26e9) ||
                                 (engine == "vllm" && has(text, "preset: cpu"));
            CHECK(no_room);
            ++without_room_;
            return;
        }
        MemoryJournal journal;
        const Random random;
        Study run(problem, random, journal);
        CHECK(run.run(*evaluator, Budget{8}).reason != StopReason::error);
        const std::size_t most =
            problem.feasible.size() < 8 ? std::size_t(problem.feasible.size()) : 8;
        CHECK(journal.trials().size() >= most);
        ++ended_;
    }
    [[nodiscard]] std::string text() const {
        return std::to_string(studies_) + " studies, " + std::to_string(refused_) +
               " refused as they should be, " + std::to_string(without_room_) +
               " without room for the model, " + std::to_string(spaces_) +
               " different spaces with 50 commands each, " + std::to_string(ended_) +
               " simulated studies ended";
    }
    /// So that not all spaces are kept at once: no later study has one of these.
    void forget() { problems_.clear(); }
    void write(const std::string& file, const std::string& text) { folder_.write(file, text); }
    [[nodiscard]] const std::vector<Command>& commands() const { return commands_; }
    [[nodiscard]] std::size_t refused() const { return refused_; }

private:
    const Problem& problem_of(const StudyFile& study) {
        const Composition& composition = *study.composition;
        std::string key;
        for (const Parameter& parameter : composition.parameters())
            key += "|" + parameter.name + " " + parameter.domain_text() + " " +
                   text_of(parameter.value_when_unset.value_or(Unset{}));
        for (const Constraint& constraint : composition.constraints())
            key += "|" + text_of(constraint);
        std::unique_ptr<Problem>& kept = problems_[key];
        commands_.clear();
        if (kept != nullptr) return *kept;
        ++spaces_;
        kept = std::make_unique<Problem>(
            SearchSpace(composition.parameters(), composition.constraints()), study.objective,
            study.decision);
        Rng rng(7);
        for (int i = 0; i < 50; ++i)
            commands_.push_back(composition.render(kept->feasible.sample(rng), {"org/m"}));
        CHECK(commands_.front().argv.size() > 1);
        return *kept;
    }

    TemporaryFolder folder_{};
    std::map<std::string, std::unique_ptr<Problem>> problems_{};
    std::vector<Command> commands_{};  ///< of the space seen last, where it was a new one
    std::size_t studies_ = 0, refused_ = 0, ended_ = 0, spaces_ = 0, without_room_ = 0;
};

/// `all`: three models each and a simulated study; else one model, the next one for each study.
void over_all_chips(bool all, const std::vector<std::string>& presets) {
    const double began = processor_seconds();
    Tour tour;
    std::size_t turn = 0;
    std::set<std::string> seen;
    for (const std::string& engine : names_in_folder("engines"))
        for (const std::string& preset : presets) {
            std::string architecture;
            for (const HardwareSpec& chip : chips_by_architecture()) {
                if (std::exchange(architecture, chip.architecture) != chip.architecture)
                    tour.forget();
                seen.insert(chip.name);
                const std::vector<std::string> served{"Qwen/Qwen3-4B", "openai/gpt-oss-20b",
                                                      "./tight.yaml"};
                tour.write("tight.yaml", tight_model(chip));
                for (std::size_t i = 0; i < served.size(); ++i)
                    if (all || i == turn % served.size())
                        tour.visit(chip_study(chip.name, engine, preset, served[i]), engine, all);
                ++turn;
            }
        }
    std::printf("%zu chips x engines x presets%s: %s, in %.1f s of the processor\n", seen.size(),
                all ? " x three models" : "", tour.text().c_str(), processor_seconds() - began);
    CHECK(seen.size() == 26);
}

}  // namespace

TEST_CASE(
    "chips: with every engine the presets are valid on each of them, and their commands can be "
    "written",
    "[chips]") {
    std::vector<std::string> presets = names_in_folder("presets");
    std::erase(presets,
               "full");  // counting the whole of SGLang takes seconds: with the rest, below
    over_all_chips(false, presets);
}

TEST_CASE(
    "chips: with every engine, preset and three models a simulated study ends on each of them",
    "[.long][chips]") {
    over_all_chips(true, names_in_folder("presets"));
}

TEST_CASE("chips: every stored version of an engine takes what its presets make",
          "[.long][chips]") {
    const double began = processor_seconds();
    Tour tour;
    std::set<std::string> architectures_seen;
    std::vector<HardwareSpec> chips;
    for (const HardwareSpec& chip : chips_by_architecture())
        if (architectures_seen.insert(chip.architecture).second) chips.push_back(chip);
    for (const std::string& engine : names_in_folder("engines")) {
        const Engine known = shipped_catalogue.engine(engine);
        for (const FlagFacts& facts : known_versions(search_spaces, engine))
            for (const HardwareSpec& chip : chips) {
                tour.forget();
                for (const std::string& preset : names_in_folder("presets")) {
                    // All of an engine: on one chip of each maker.
                    if (preset == "full" && chip.architecture != "hopper" &&
                        chip.architecture != "cdna3")
                        continue;
                    const std::size_t refused = tour.refused();
                    tour.visit(
                        chip_study(chip.name, engine, preset, "Qwen/Qwen3-4B", facts.version),
                        engine, false);
                    if (tour.refused() != refused) continue;
                    for (const Command& command : tour.commands())
                        for (const std::string& problem : facts.problems(command, known)) {
                            INFO(engine << " " << facts.version << " on " << chip.name << ", "
                                        << preset << ": " << command.text());
                            CHECK(problem == "");
                        }
                }
            }
    }
    std::printf("stored versions x architectures x presets: %s, in %.1f s of the processor\n",
                tour.text().c_str(), processor_seconds() - began);
}

TEST_CASE(
    "chips: a parameter of which the chip takes no value leaves the space, and what names it goes "
    "on",
    "[chips]") {
    const TemporaryFolder folder;
    const auto engine_file = folder.write(
        "made.yaml",
        "engine: made\nlaunch: [made, \"{model}\"]\nparameters:\n"
        "  fuse: {flag: --fuse, choice: [engine, a, b], architectures: {a: hopper, b: hopper}, "
        "doc: d, source: s}\n"
        "  fuse_steps: {flag: --fuse-steps, int: {low: 1, high: 4}, default: engine, when: {fuse: "
        "[a]}, doc: d, source: s}\n"
        "  fuse_depth: {flag: --fuse-depth, int: {low: 1, high: 4}, default: 2, when: {fuse_steps: "
        "[1]}, doc: d, source: s}\n"
        "  plain: {flag: --plain, int: {low: 1, high: 4}, default: 1, when: {fuse: [engine]}, doc: "
        "d, source: s}\n"
        "  path: {flag: --path, choice: [fast, slow], default: fast, architectures: {fast: "
        "hopper}, doc: d, source: s}\n"
        "  size: {flag: --size, int: {low: 1, high: 4}, default: 1, doc: d, source: s}\n"
        "render:\n  - {flag: --json, json: {steps: \"{fuse_steps}\", size: \"{size}\"}, when: "
        "{fuse: [a]}}\n"
        "constraints:\n"
        "  - {forbid: {fuse: [a], size: 2}}\n  - {forbid: {fuse: [engine], size: 3}}\n"
        "  - {require: \"fuse_depth <= size\"}\n  - {require: \"path != 'fast' or size >= 1\"}\n");
    const auto study_of = [&](const std::string& chip, const std::string& lines) {
        return load_study(
            folder.write(
                "s.yaml",
                "study: s\nmodel: org/m\nhardware: " + chip + "\nengine: " + engine_file.string() +
                    "\n" + lines +
                    "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
                    "evaluator: {deploy: {}}\n"),
            shipped_catalogue);
    };
    const auto refusal = [&](const std::string& chip, const std::string& lines) {
        return message_of<Error>([&] { (void)study_of(chip, lines); });
    };
    const StudyFile hopper = study_of("h100-sxm", "others: search\n");
    CHECK(hopper.composition->parameters().size() == 6);
    const StudyFile ada = study_of("l40s", "others: search\n");
    std::vector<std::string> names;
    for (const Parameter& parameter : ada.composition->parameters())
        names.push_back(parameter.name);
    CHECK(names == std::vector<std::string>{
                       "plain", "path", "size"});  // plain is always there now, the steps never are
    REQUIRE(ada.composition->notes().size() == 1);
    CHECK(ada.composition->notes()[0] ==
          "'fuse' is left out: made takes none of its values on ada");
    const Problem problem(
        SearchSpace(ada.composition->parameters(), ada.composition->constraints()), ada.objective,
        ada.decision);
    CHECK(problem.feasible.size() ==
          4 * 2 * 3);  // of size not 3: the rule about `fuse: engine` holds
    // The engine's own default is not for this chip: no flag is what it then chooses.
    CHECK(problem.space.at("path").domain_text() == "slow, or engine");
    CHECK(ada.composition->render(problem.space.default_configuration(), {"org/m"}).text() ==
          "made org/m");
    CHECK(ada.composition->render(problem.space.completed({{"path", "slow"}}), {"org/m"}).text() ==
          "made org/m --path=slow");
    // Who names a value is told where, and who fixes `engine` has what he wants.
    CHECK(has(refusal("l40s", "space: {fuse: [engine, a]}\n"), "s.yaml:"));
    CHECK(has(refusal("l40s", "space: {fuse: [engine, a]}\n"),
              "'space.fuse': made takes none of its values on ada; it takes some on hopper"));
    CHECK(refusal("l40s", "space: {fuse: engine, size: [1, 2]}\n").empty());
    CHECK(study_of("l40s", "space: {fuse: engine, size: [1, 2]}\n").composition->notes().empty());
    // A preset's values that none of the chip takes: the engine's default stays.
    folder.write("mine.yaml",
                 "preset: mine\ndoc: d\nspace:\n  made:\n    fuse: {choice: [engine, a]}\n    "
                 "path: {choice: [fast]}\n"
                 "    size: {choice: [1, 2]}\n");
    const StudyFile with_preset = study_of("l40s", "preset: mine\n");
    CHECK(with_preset.composition->notes().size() == 2);
    CHECK(has(with_preset.composition->notes()[1],
              "'path' is not searched: made takes none of the preset's values here"));
    CHECK(Problem(SearchSpace(with_preset.composition->parameters(),
                              with_preset.composition->constraints()),
                  ada.objective, ada.decision)
              .feasible.size() == 2);
}

TEST_CASE("chips: a preset without a part for the engine names those that have one", "[chips]") {
    const TemporaryFolder folder;
    const auto said = message_of<Error>([&] {
        (void)load_study(
            folder.write("s.yaml", chip_study("l4", "llama.cpp", "latency", "Qwen/Qwen3-4B")),
            shipped_catalogue);
    });
    CHECK(has(said,
              "s.yaml:5:9: 'preset': the preset has nothing for llama.cpp; those that have: cpu, "
              "full, quick"));
}
