// SPDX-License-Identifier: Apache-2.0
// Any bytes as the lines of a program that asks and tells: each line has one answer or is refused.
#include "ask_tell_conversation.hpp"
#include "fuzz/target.hpp"
#include "servetune/journal.hpp"
#include "support/temporary_folder.hpp"

#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::fuzz;

namespace {

/// Every kind of parameter, a rule and a limit.
constexpr const char* study_text = R"(study: s
space:
  backend: {choice: [naive, "a b", "1"], default: naive}
  seqs: {int: {low: 1, high: 64, scale: log2}, default: 8}
  share: {real: {low: 0.5, high: 1}, default: 0.75}
  cache: {bool: {}, default: false}
constraints: [{forbid: {cache: true, seqs: 2}, because: "b"}]
objective: {maximize: requests_per_second, limits: ["latency_p95_ms <= 100"]}
strategy: random
budget: {trials: 20}
)";

StudySetup small_study() {
    const test::TemporaryFolder folder;
    folder.write("study.yaml", study_text);
    return set_up(load_study(folder.path() / "study.yaml",
                             Catalogue(SERVETUNE_SOURCE "/search_spaces"), {},
                             MeasuredBy::outside));
}

/// Trials, and how many of them are told.
std::pair<std::size_t, std::ptrdiff_t> counts_of(const MemoryJournal& journal) {
    const std::vector<Trial> trials = journal.trials();
    return {trials.size(), count_if(trials, [](const Trial& trial) { return trial.told(); })};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const StudySetup setup = small_study();
    setup.suggestions->clear();
    MemoryJournal journal;
    autotune::AskTellConversation conversation(setup, setup.file.budget, journal);
    std::istringstream lines{std::string(text_of_input(data, size))};
    for (std::string line; std::getline(lines, line);) {
        const auto before = counts_of(journal);
        nlohmann::ordered_json answer;
        const bool taken = accepted([&] { answer = conversation.answer(line); });
        must_hold(taken ? answer.is_object() : counts_of(journal) == before,
                  "a line has an object for an answer, or changes nothing");
    }
    (void)accepted([&] { (void)conversation.answer(R"({"recommend": true})"); });
    return 0;
}
