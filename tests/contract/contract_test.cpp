// SPDX-License-Identifier: Apache-2.0
#include "contract/evaluator_contract.hpp"
#include "contract/journal_contract.hpp"
#include "contract/strategy_contract.hpp"

#include "servetune/bayesian.hpp"
#include "servetune/quasi_random.hpp"
#include "servetune/replay.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/staged.hpp"
#include "servetune/study_file.hpp"
#include "study/table.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

SearchSpace space() {
    return SearchSpace({Parameter::choice("backend", {"fa3", "triton", "flashinfer"}),
                        Parameter::integer("seqs", 64, 512, Scale::log2),
                        Parameter::choice("method", {"none", "ngram"}),
                        Parameter::integer("guesses", 1, 3).when("method", {"ngram"})},
                       {Forbid{{{"backend", {"triton"}}, {"method", {"ngram"}}}}});
}

}  // namespace

TEST_CASE("contract: strategies") {
    for (const auto rule : {Decision::Rule::published, Decision::Rule::significant})
        for (const bool replicates_inform : {false, true}) {
            Problem problem(space(), {}, {rule});
            problem.replicates_inform = replicates_inform;
            check_strategy([] { return std::make_unique<Random>(); }, problem);
            check_strategy([] { return std::make_unique<Exhaustive>(); }, problem);
            check_strategy([] { return std::make_unique<QuasiRandom>(); }, problem);
            check_strategy([] { return std::make_unique<LocalSearch>(); }, problem);
            check_strategy([] { return std::make_unique<Bayesian>(); }, problem);
            check_strategy(
                [] {
                    return std::make_unique<Staged>(Staged::Options{{{"backend", {"backend"}},
                                                                     {"both", {"seqs", "method"}},
                                                                     {"guesses", {"guesses"}}}});
                },
                problem);
            check_strategy(
                [] {
                    return std::make_unique<Staged>(
                        Staged::Options{{{"listed",
                                          {},
                                          {{{"seqs", std::int64_t{512}}}, {{"method", "ngram"}}},
                                          false},
                                         {"seqs", {"seqs"}, {}, false}}});
                },
                problem);
        }
}

TEST_CASE("contract: journals") {
    MemoryJournal memory;
    check_journal(memory);
    const TemporaryFolder folder;
    SqliteJournal sqlite = SqliteJournal::open(folder.path(), {"contract", {{"a", "b"}}, "0.0"});
    check_journal(sqlite);
}

TEST_CASE("contract: the replay evaluator, with and without noise") {
    const SearchSpace searched = space();
    const MeasuredTable table = parse_table(
        "backend,seqs,method,guesses,status,total_tokens_per_second,message\n"
        "fa3,64,none,,ok,100,\nfa3,128,ngram,2,ok,120,\ntriton,64,none,,out_of_memory,,no room\n",
        "t.csv");
    for (const double noise : {0.0, 0.03}) {
        ReplayEvaluator replay(table, searched, {{}, noise});
        check_evaluator(replay, searched);
    }
}

TEST_CASE("contract: the simulate evaluator, with and without noise") {
    const std::filesystem::path root = std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces";
    const TemporaryFolder folder;
    for (const char* noise : {"{}", "{noise: 3%, step_noise: 2%}"}) {
        // All parameters of all engines: whatever a configuration is, there is an answer.
        const auto file = folder.write(
            "study.yaml",
            "study: contract\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: [vllm, sglang, "
            "tensorrt-llm, llama.cpp]\nworkloads:\n  - {workload: w, use: random, input_tokens: "
            "64, "
            "output_tokens: 8, requests: 10}\nobjective: {maximize: total_tokens_per_second}\n"
            "evaluator: {simulate: " +
                std::string(noise) + "}\n");
        const StudyFile study = load_study(file, Catalogue(root));
        const auto evaluator = simulated(study);
        check_evaluator(*evaluator, SearchSpace(study.composition->parameters(),
                                                study.composition->constraints()));
    }
    // And a space of which many serve.
    const StudyFile study = load_study(root / "studies/simulated-h100.yaml", Catalogue(root));
    const auto evaluator = simulated(study);
    check_evaluator(*evaluator,
                    SearchSpace(study.composition->parameters(), study.composition->constraints()));
}
