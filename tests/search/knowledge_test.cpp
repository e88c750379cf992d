// SPDX-License-Identifier: Apache-2.0
// What is known before anything is measured: the cost model, earlier studies, tables; what it gains
// and what it costs when it is wrong.
#include "study_file/knowledge.hpp"
#include "predict/cost_belief.hpp"
#include "search/earlier_results.hpp"
#include "search/rejected_priors.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/error.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/table.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

using namespace servetune;
using namespace servetune::test;

namespace {

std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> result(values.size());
    for (std::size_t i = 0; i < order.size(); ++i) result[order[i]] = double(i);
    return result;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = double(a.size());
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
    const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
    double both = 0, of_a = 0, of_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        both += (a[i] - mean_a) * (b[i] - mean_b);
        of_a += (a[i] - mean_a) * (a[i] - mean_a);
        of_b += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return both / std::sqrt(of_a * of_b);
}

/// A study of the toy space that was run: FOLDER/study.db with these trials.
std::filesystem::path journal_of(const TemporaryFolder& folder, const std::vector<Trial>& trials,
                                 const std::string& aim = "maximize " + metric) {
    const std::filesystem::path place = folder.path() / "earlier";
    SqliteJournal journal = SqliteJournal::open(place, {"earlier", {{"objective", aim}}, "1"});
    for (const Trial& trial : trials) {
        Trial asked = trial;
        asked.outcome = {};
        journal.asked(asked);
        journal.started(trial.id, 1);
        if (trial.told()) journal.told(trial.id, trial.outcome, 2);
    }
    return place;
}

/// A study of vLLM on an H100 that is replayed from a table, with this knowledge.
std::string vllm_study(const std::string& knowledge, const std::string& model = "Qwen/Qwen3-8B") {
    return "study: own\nmodel: " + model +
           "\nhardware: h100-sxm\nengine: vllm\nworkloads: [{workload: w, use: random, "
           "input_tokens: 512, output_tokens: 64, requests: "
           "100}]\n"
           "objective: {maximize: total_tokens_per_second}\nothers: default\n"
           "space: {max_num_seqs: {choice: [16, 64, 256, 1024]}, max_num_batched_tokens: {choice: "
           "[2048, 8192]}}\n"
           "evaluator: {replay: t.csv}\nstrategy: bayesian\nknowledge: " +
           knowledge + "\n";
}
const std::string vllm_table =
    "max_num_seqs,max_num_batched_tokens,status,total_tokens_per_second\n16,2048,ok,1000\n64,2048,"
    "ok,2000\n256,2048,ok,3000\n"
    "1024,2048,ok,2500\n16,8192,ok,1100\n64,8192,ok,2100\n256,8192,ok,3300\n1024,8192,out_of_"
    "memory,\n";

StudySetup ready(const TemporaryFolder& folder, const std::string& text) {
    folder.write("t.csv", vllm_table);
    return set_up(load_study(folder.write("study.yaml", text), Catalogue(search_spaces)),
                  folder.path() / "out");
}

std::string knowledge_refusal(const TemporaryFolder& folder, const std::string& knowledge) {
    std::string message = message_of<Error>([&] { (void)ready(folder, vllm_study(knowledge)); });
    const std::string place = folder.path().string();
    for (auto at = message.find(place); at != std::string::npos; at = message.find(place))
        message.replace(at, place.size(), "DIR");
    return message;
}

class Believed : public PriorMean {
public:
    using Function = std::function<double(const Configuration&)>;
    explicit Believed(Function log_value, Function margin = {},
                      std::optional<double> error = std::nullopt)
        : log_value_(std::move(log_value)), margin_(std::move(margin)), error_(error) {}
    [[nodiscard]] std::string name() const override { return "what is believed"; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
        PriorBelief result{log_value_(configuration), std::nullopt};
        if (margin_) result.margin = margin_(configuration);
        result.log_error = error_;
        if (limit) result.limits = {limit(configuration)};
        return result;
    }

    Function limit{};  ///< of one: how far inside it

private:
    Function log_value_;
    Function margin_;
    std::optional<double> error_;
};

Bayesian search_with(std::shared_ptr<const PriorMean> source, std::size_t trials) {
    Bayesian::Options options;
    options.trials = trials;
    if (source) options.beliefs = Beliefs({std::move(source)});
    return Bayesian(options);
}

/// Mean regret of `seeds` searches after so many trials.
double regret_after(std::size_t trials, const std::shared_ptr<const PriorMean>& knowledge,
                    std::uint64_t seeds) {
    const TuningTask task;
    const Problem problem(TuningTask::space(), {metric}, {});
    double sum = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const auto history = task.searched(
            problem, search_with(knowledge, std::max<std::size_t>(trials, 20)), trials, seed);
        sum += task.regret(problem, history);
    }
    return sum / double(seeds);
}

/// The truth but for an error of this standard deviation, drawn for each configuration.
Believed::Function off_by(double error) {
    return [error](const Configuration& c) {
        Rng rng(c.fingerprint().bits);
        return std::log(TuningTask().truth(c)) + error * rng.normal();
    };
}

}  // namespace

TEST_CASE("knowledge: the quick estimate ranks configurations as the simulator does") {
    const StudyFile study =
        load_study(search_spaces / "studies" / "simulated-h100.yaml", Catalogue(search_spaces));
    const Problem problem(
        SearchSpace(study.composition->parameters(), study.composition->constraints()),
        study.objective, study.decision);
    const auto evaluator = simulated(study);
    const CostBelief belief(simulated(study), study.objective, study.weighted_workloads());
    Rng rng(4);
    std::vector<double> quick;
    std::vector<double> slow;
    std::size_t refused_wrongly = 0;
    while (slow.size() < 50) {
        const Configuration configuration = problem.feasible.sample(rng);
        const PriorBelief believed = belief.belief(configuration);
        const Outcome outcome = evaluator->predicted(configuration);
        const auto* measurement = std::get_if<Measurement>(&outcome);
        if (measurement == nullptr || measurement->metrics.at("success_ratio").value < 1) continue;
        REQUIRE(believed.log_value);
        refused_wrongly += believed.margin.value() < 0 ? 1 : 0;
        quick.push_back(*believed.log_value);
        slow.push_back(std::log(measurement->metrics.at(study.objective.leading().metric).value));
    }
    CHECK(correlation(ranks(quick), ranks(slow)) > 0.75);
    CHECK(refused_wrongly <= 5);
    std::vector<double> off;
    for (std::size_t i = 0; i < quick.size(); ++i) off.push_back(std::abs(quick[i] - slow[i]));
    CHECK(median(off) < 0.25);
}

TEST_CASE(
    "knowledge: the cost model says less than nothing of what would not start, and nothing of what "
    "it does not know") {
    const TemporaryFolder folder;
    const StudySetup setup = ready(folder, vllm_study("[cost_model]"));
    REQUIRE(setup.beliefs.size() == 1);
    const Configuration usual = setup.problem->space.default_configuration();
    const PriorBelief belief = setup.beliefs[0].belief(usual);
    REQUIRE(belief.log_value);
    CHECK(belief.margin.value() > 0);
    CHECK(std::exp(*belief.log_value) > 1000);
    CHECK(setup.definition().at("knowledge[0]").starts_with("the cost model ("));

    const StudySetup unknown = ready(folder, vllm_study("[cost_model]", "org/nobody-knows"));
    CHECK(unknown.beliefs.size() == 0);
    CHECK(
        unknown.definition().at("knowledge[0]").starts_with("the cost model knows nothing here: "));
    const StudySetup none = ready(folder, vllm_study("[]"));
    CHECK(none.definition().count("knowledge[0]") == 0);
    CHECK(none.beliefs.size() == 0);

    MemoryPlan plan;
    plan.device_bytes = 100;
    plan.cache_bytes = 30;
    plan.free_bytes = 5;
    plan.cache_bytes_per_token = 1;
    CHECK(memory_margin(plan, 10) == Approx(0.5));
    CHECK(memory_margin(plan, 28) == Approx(0.2));
    plan.missing_bytes = 12;
    CHECK(memory_margin(plan, 10) == Approx(-1.2));
    plan.missing_bytes = 90;
    CHECK(memory_margin(plan, 10) == -3);
}

TEST_CASE("knowledge: the cost model says how far inside each limit on times a configuration is") {
    StudyFile study =
        load_study(search_spaces / "studies" / "simulated-h100.yaml", Catalogue(search_spaces));
    study.objective.limits = {Limit::parse("time_per_output_token_mean_seconds <= 0.02"),
                              Limit::parse("success_ratio >= 1")};
    const SearchSpace space(study.composition->parameters(), study.composition->constraints());
    const CostBelief belief(simulated(study), study.objective, study.weighted_workloads());
    const auto margin = [&](std::int64_t sequences) {
        const auto limits = belief
                                .belief(space.changed(space.default_configuration(),
                                                      {{"vllm.max_num_seqs", sequences}}))
                                .limits;
        REQUIRE(limits.size() == 2);
        CHECK_FALSE(limits[1]);  // of that it says nothing
        return limits[0].value();
    };
    CHECK(margin(64) > margin(1024) + 0.2);
}

TEST_CASE("knowledge: a flag under `arguments` does not switch the cost model off") {
    const TemporaryFolder folder;
    const auto with = [&](const std::string& arguments) {
        return ready(folder, vllm_study("[cost_model]") + "arguments: [" + arguments + "]\n");
    };
    const StudySetup plain = with("");
    const Configuration usual = plain.problem->space.default_configuration();
    const PriorBelief belief = plain.beliefs[0].belief(usual);
    REQUIRE(belief.log_value);
    for (const char* not_about_speed :
         {"--load-format, dummy", "--seed=3", "--trust-remote-code, --revision, main",
          "--api_key, secret"}) {
        INFO(not_about_speed);
        const StudySetup setup = with(not_about_speed);
        REQUIRE(setup.beliefs.size() == 1);
        CHECK(setup.beliefs[0].belief(usual) == belief);
        CHECK(setup.file.warnings == plain.file.warnings);
    }
    // One that nobody knows: the model stays, and is believed less.
    const StudySetup unknown = with("--brand-new-kernels, fast");
    REQUIRE(unknown.beliefs.size() == 1);
    CHECK(unknown.beliefs[0].belief(usual).log_value == belief.log_value);
    CHECK(unknown.beliefs[0].belief(usual).margin.value() == Approx(belief.margin.value() / 2));
    CHECK(unknown.beliefs[0].belief(usual).log_error.value() ==
          Approx(2 * belief.log_error.value()));
    // A flag that has a part in speed counts, however it is spelled.
    for (const char* eight_bits : {"--kv-cache-dtype=fp8", "--kv_cache_dtype, fp8"}) {
        INFO(eight_bits);
        const StudySetup setup = with(eight_bits);
        CHECK(setup.beliefs[0].belief(usual).log_value.value() != belief.log_value.value());
        CHECK(setup.file.warnings == plain.file.warnings);
    }
}

TEST_CASE(
    "knowledge: the cost model is asked by default, unless it would be asked for its own answers") {
    const TemporaryFolder folder;
    const auto without_key = [&](std::string text, const std::string& measured,
                                 const std::string& by) {
        text.resize(text.find("knowledge:"));
        const auto at = text.find(measured);
        return ready(folder, text.replace(at, measured.size(), by));
    };
    const std::string replay = "evaluator: {replay: t.csv}";
    const StudySetup usual = without_key(vllm_study(""), replay, replay);
    const StudySetup asked_for = ready(folder, vllm_study("[cost_model]"));
    REQUIRE(usual.beliefs.size() == 1);
    CHECK(usual.knowledge == asked_for.knowledge);
    const Configuration some = usual.problem->space.default_configuration();
    CHECK(usual.beliefs[0].belief(some).log_value == asked_for.beliefs[0].belief(some).log_value);

    // What nobody asked for, and nobody gets, is not spoken of.
    const StudySetup unknown_model =
        without_key(vllm_study("", "org/nobody-knows"), replay, replay);
    CHECK(unknown_model.beliefs.size() == 0);
    CHECK(unknown_model.knowledge.empty());
    const StudySetup no_hardware = without_key(vllm_study(""), "hardware: h100-sxm\n", "");
    CHECK(no_hardware.knowledge.empty());
    const StudySetup simulated = without_key(vllm_study(""), replay, "evaluator: {simulate: {}}");
    CHECK(simulated.beliefs.size() == 0);
    CHECK(simulated.knowledge.empty());
}

TEST_CASE(
    "knowledge: an earlier study is matched by concept and by name, what it does not know makes no "
    "difference") {
    const TuningTask task;
    const Problem earlier(TuningTask::space(), {metric}, {});
    const std::vector<Trial> trials = task.searched(earlier, Random(), 60, 3);
    SearchSpace now({Parameter::choice("backend", {"fa3", "flashinfer", "fresh"}),
                     Parameter::integer("max_running", 16, 2048, Scale::log2).with_default(256),
                     Parameter::boolean("more")});
    std::vector<Parameter> parameters = now.parameters();
    parameters[1].concept_name = "max_concurrent_sequences";
    now = SearchSpace(parameters);
    const EarlierResults known("the study 'earlier'", trials,
                               {{"seqs", "max_concurrent_sequences"}}, {metric}, {}, now);
    CHECK(known.shared() == std::vector<std::string>{"backend", "max_concurrent_sequences"});
    const auto at = [&](const Assignment& values) {
        return known.belief(now.completed(values)).log_value.value();
    };
    CHECK(at({{"more", true}}) == at({{"more", false}}));
    CHECK(at({{"backend", "flashinfer"}}) > at({}));
    CHECK(at({{"max_running", std::int64_t{256}}}) > at({{"max_running", std::int64_t{32}}}));
    CHECK(std::isfinite(at({{"backend", "fresh"}, {"max_running", std::int64_t{2048}}})));
    CHECK_FALSE(known.belief(now.default_configuration()).margin);
    // Tokens is not ours: it stays at the earlier default of 8192, where the truth is known.
    CHECK(at({}) ==
          Approx(std::log(task.truth(earlier.space.default_configuration()))).margin(0.1));
    // Pure: the same history makes the same belief.
    const EarlierResults again("the study 'earlier'", trials,
                               {{"seqs", "max_concurrent_sequences"}}, {metric}, {}, now);
    CHECK(again.belief(now.default_configuration()).log_value ==
          known.belief(now.default_configuration()).log_value);
}

TEST_CASE("knowledge: less is better, reals, unset levels and many rows") {
    SearchSpace space(
        {Parameter::real("share", 0.5, 1), Parameter::integer("n", 1, 64).or_unset()});
    std::vector<Trial> trials;
    Rng rng(2);
    for (std::size_t i = 0; i < 700; ++i) {
        const Configuration configuration =
            i == 0 ? space.default_configuration() : FeasibleSet(space).sample(rng);
        const double share = number(configuration, "share");
        const double n = number(configuration, "n");  // unset: 0
        trials.push_back({i, configuration, "", 0, "",
                          Measurement{{{"latency_mean_seconds", {2 - share + 0.001 * n}}}}});
    }
    const EarlierResults known("a table", trials, {}, {"latency_mean_seconds", Direction::minimize},
                               {}, space);
    for (const double share : {0.5, 0.6, 0.85, 1.0})
        CHECK(known.belief(space.completed({{"share", share}})).log_value.value() ==
              Approx(std::log(2 - share)).margin(0.03));
}

TEST_CASE("knowledge: sources that cannot teach are refused, and say why") {
    const TemporaryFolder folder;
    CHECK(knowledge_refusal(folder, "[{study: nowhere}]") ==
          "there is no journal DIR/nowhere/study.db; has the study been run?");
    std::filesystem::create_directory(folder.path() / "empty");
    CHECK(knowledge_refusal(folder, "[{study: empty}]") ==
          "there is no journal DIR/empty/study.db; has the study been run?");
    CHECK(knowledge_refusal(folder, "[{table: nothing.csv}]") ==
          "cannot read DIR/nothing.csv: No such file or directory");
    folder.write("other.csv",
                 "max_num_seqs,status,output_tokens_per_second\n8,ok,100\n16,ok,110\n");
    CHECK(knowledge_refusal(folder, "[{table: other.csv}]") ==
          "the table DIR/other.csv has no metric 'total_tokens_per_second'; it has: "
          "output_tokens_per_second");
    folder.write(
        "loads.csv",
        "max_num_seqs,workload,status,total_tokens_per_second\n8,chat,ok,100\n16,chat,ok,110\n");
    CHECK(knowledge_refusal(folder, "[{table: loads.csv}]") ==
          "the table DIR/loads.csv has no configuration under all of this study's workloads; it "
          "has: chat");
    folder.write("alien.csv", "x,status,total_tokens_per_second\n8,ok,100\n16,ok,110\n");
    CHECK(knowledge_refusal(folder, "[{table: alien.csv}]") ==
          "the table DIR/alien.csv has varied no parameter that this study has too; it varied: x");
    CHECK(knowledge_refusal(folder, "[{study: a, table: b}]") ==
          "DIR/study.yaml:11:13: 'knowledge[0]': one source wanted: cost_model, recipes, {study: "
          "FOLDER} or {table: FILE}");
    CHECK(knowledge_refusal(folder, "[{stdy: a}]") ==
          "DIR/study.yaml:11:20: 'knowledge[0].stdy': unknown key; known: study, table");
    CHECK(has(knowledge_refusal(folder, "cost_model"), "'knowledge': a list wanted"));
}

TEST_CASE("knowledge: journals of another aim and without a measurement are refused") {
    const TuningTask task;
    const Problem problem(TuningTask::space(), {metric}, {});
    {
        const TemporaryFolder folder;
        (void)journal_of(folder, {}, "minimize latency_mean_seconds");
        CHECK(knowledge_refusal(folder, "[{study: earlier}]") ==
              "the study 'earlier' in DIR/earlier was to minimize latency_mean_seconds, this one "
              "is to maximize total_tokens_per_second: "
              "it can teach "
              "nothing about that");
    }
    {
        const TemporaryFolder folder;
        (void)journal_of(folder, {Trial{0, problem.space.default_configuration()}});
        CHECK(knowledge_refusal(folder, "[{study: earlier/study.db}]") ==
              "the study 'earlier' in DIR/earlier/study.db has measured nothing yet");
    }
    const TemporaryFolder folder;
    (void)journal_of(folder, task.searched(problem, Random(), 5, 1));
    CHECK(knowledge_refusal(folder, "[{study: earlier}]") ==
          "the study 'earlier' in DIR/earlier has varied no parameter that this study has too; it "
          "varied: backend, guesses, method, seqs, "
          "tokens");
}

TEST_CASE(
    "knowledge: nothing is believed twice, a journal has any name, and of several goals the "
    "leading one teaches") {
    const TemporaryFolder folder;
    std::vector<Trial> trials;
    for (const std::int64_t seqs : {16, 64, 256}) {
        trials.push_back({trials.size(), Configuration::of({{"max_num_seqs", seqs}})});
        trials.back().outcome = Measurement{{{metric, {1000.0 + double(seqs)}}}};
    }
    (void)journal_of(folder, trials,
                     "maximize total_tokens_per_second, minimize time_to_first_token_p99_seconds");
    std::filesystem::copy_file(folder.path() / "earlier/study.db", folder.path() / "kept.db");
    const StudySetup setup = ready(folder, vllm_study("[{study: kept.db}]"));
    REQUIRE(setup.beliefs.size() == 1);
    const auto at = [&](std::int64_t seqs) {
        return setup.beliefs[0]
            .belief(setup.problem->space.completed({{"max_num_seqs", seqs}}))
            .log_value.value();
    };
    CHECK(at(16) < at(256));
    const std::string twice = knowledge_refusal(folder, "[{study: earlier}, {study: kept.db}]");
    CHECK(twice.find("knowledge: the study 'earlier', 3 trials (") == 0);
    CHECK(has(twice, "is there twice; it would be believed twice"));
    std::filesystem::rename(folder.path() / "earlier", folder.path() / "out");
    CHECK(knowledge_refusal(folder, "[{study: out}]") ==
          "knowledge: DIR/out is this study's own journal; what it measured it knows anyway");
}

TEST_CASE("knowledge: a table and a journal teach a study, and are part of what it is") {
    const TemporaryFolder folder;
    folder.write("earlier.csv",
                 "max_num_seqs,workload,status,total_tokens_per_second\n16,w,ok,1000\n64,w,ok,"
                 "2000\n256,w,ok,3000\n1024,w,ok,2500\n");
    const StudySetup setup = ready(folder, vllm_study("[{table: earlier.csv}]"));
    REQUIRE(setup.beliefs.size() == 1);
    const auto at = [&](std::int64_t seqs) {
        return setup.beliefs[0]
            .belief(setup.problem->space.completed({{"max_num_seqs", seqs}}))
            .log_value.value();
    };
    CHECK(at(16) < at(64));
    CHECK(at(64) < at(256));
    CHECK(setup.definition().at("knowledge[0]").starts_with("a table of 4 configurations ("));
    folder.write("earlier.csv",
                 "max_num_seqs,workload,status,total_tokens_per_second\n16,w,ok,1000\n64,w,ok,"
                 "1\n256,w,ok,30\n1024,w,ok,25\n");
    const StudySetup changed = ready(folder, vllm_study("[{table: earlier.csv}]"));
    CHECK(changed.definition().at("knowledge[0]") != setup.definition().at("knowledge[0]"));
    // Concepts come from the engine files: SGLang calls it something else.
    const auto concepts =
        concepts_of({Trial{0, Configuration::of({{"sglang.max_running_requests", std::int64_t{8}},
                                                 {"max_num_seqs", std::int64_t{8}},
                                                 {"x", true}})}},
                    Catalogue(search_spaces));
    CHECK(concepts.at("sglang.max_running_requests") == concepts.at("max_num_seqs"));
    CHECK(concepts.count("x") == 0);
}

TEST_CASE("knowledge: what was best elsewhere is tried second, in this study's values") {
    const Parameter seqs = Parameter::choice(
        "seqs", {std::int64_t{16}, std::int64_t{64}, std::int64_t{256}, std::int64_t{1024}}, true);
    const SearchSpace there(
        {Parameter::choice("backend", {"fa2", "fa3", "triton"}), seqs, Parameter::boolean("spec")});
    const auto measured = [&](const std::vector<std::pair<Assignment, double>>& rows) {
        std::vector<Trial> trials;
        for (const auto& [values, figure] : rows)
            trials.push_back({trials.size(), there.completed(values), "", 0, "",
                              Measurement{{{metric, {figure}}}}});
        return trials;
    };
    const std::vector<Trial> trials =
        measured({{{}, 100},
                  {{{"backend", "fa3"}, {"seqs", std::int64_t{1024}}}, 180},
                  {{{"backend", "triton"}, {"seqs", std::int64_t{256}}, {"spec", true}}, 200},
                  {{{"spec", true}}, 90}});
    const auto first_of = [&](const SearchSpace& here, std::vector<Trial> of) {
        const Problem problem(here, {metric}, {});
        const auto source = std::make_shared<EarlierResults>(
            "the table t.csv", of, std::map<std::string, std::string>{}, problem.objective,
            problem.decision, problem.space);
        const Bayesian search = search_with(source, 20);
        std::vector<Trial> history{
            {0, here.default_configuration(), "", 0, "", Measurement{{{metric, {50}}}}}};
        Rng rng(1);
        return std::get<Proposal>(search.ask(problem, history, rng));
    };
    // Exactly there.
    Proposal proposal = first_of(there, trials);
    CHECK(proposal.configuration == trials[2].configuration);
    CHECK(proposal.why == "the best of the table t.csv");
    // The nearest number; a back end that this study cannot have is left out, and said.
    const SearchSpace here({Parameter::choice("backend", {"fa2", "fa3"}),
                            Parameter::choice("seqs", {std::int64_t{16}, std::int64_t{200}}, true),
                            Parameter::boolean("spec")});
    proposal = first_of(here, trials);
    CHECK(proposal.configuration == here.completed({{"seqs", std::int64_t{200}}, {"spec", true}}));
    CHECK(proposal.why ==
          "the best of the table t.csv, but for backend = triton, which this study cannot have");
    // One that breaks a rule here is passed over for the next.
    const SearchSpace ruled(
        {Parameter::choice("backend", {"fa2", "fa3", "triton"}), seqs, Parameter::boolean("spec")},
        {Forbid{{{"backend", {"triton"}}}, ""}});
    CHECK(first_of(ruled, trials).configuration == trials[1].configuration);
    // Where the default was best, nothing is spent on it.
    std::vector<Trial> usual = trials;
    usual[0].outcome = Measurement{{{metric, {300}}}};
    CHECK(first_of(there, usual).why == "the default with its least-tried settings changed");
}

TEST_CASE(
    "knowledge: a model has one trial, the best that keeps the limits, if it tells any apart") {
    Objective objective{metric};
    objective.limits.push_back(Limit::parse("time_per_output_token_p99_seconds <= 0.02"));
    const Problem problem(TuningTask::space(), objective, {});
    const Trial default_{
        0,  problem.space.default_configuration(),
        "", 0,
        "", Measurement{{{metric, {5000}}, {"time_per_output_token_p99_seconds", {0.019}}}}};
    const auto second = [&](const std::shared_ptr<const PriorMean>& source) {
        Rng rng(1);
        return std::get<Proposal>(search_with(source, 20).ask(problem, std::vector{default_}, rng));
    };
    // The more sequences the better, and the slower each.
    const auto by_sequences = [](const Configuration& c) { return std::log(number(c, "seqs")); };
    Proposal proposal = second(std::make_shared<Believed>(by_sequences));
    CHECK(proposal.why == "best by what is believed");
    CHECK(number(proposal.configuration, "seqs") == 1024);
    const auto limited = std::make_shared<Believed>(by_sequences, nullptr, 0.05);
    limited->limit = [](const Configuration& c) { return std::log(600 / number(c, "seqs")); };
    proposal = second(limited);
    CHECK(proposal.why == "best by what is believed");
    CHECK(number(proposal.configuration, "seqs") == 512);
    // One that says the same of all is not asked.
    CHECK(second(std::make_shared<Believed>([](const Configuration&) { return 8.0; })).why ==
          "the default with its least-tried settings changed");
}

TEST_CASE(
    "knowledge: measurements of another job that do not hold here are given up, and true ones are "
    "not") {
    const TuningTask task;
    const Problem problem(TuningTask::space(), {metric}, {});
    const auto earlier = [&](const std::function<double(const Configuration&)>& figure) {
        std::vector<Trial> trials = task.searched(problem, Random(), 60, 3);
        for (Trial& trial : trials)
            if (trial.measurement() != nullptr)
                trial.outcome = Measurement{{{metric, {figure(trial.configuration)}}}};
        return std::make_shared<EarlierResults>("the table t.csv", trials,
                                                std::map<std::string, std::string>{},
                                                problem.objective, problem.decision, problem.space);
    };
    const auto refuted_after = [&](const std::shared_ptr<EarlierResults>& source) {
        const auto history = task.searched(problem, search_with(source, 20), 12, 1);
        return rejected_priors(Beliefs({source}), problem, problem.standings(history));
    };
    // The other way round, and three times as strong.
    const auto wrong = refuted_after(
        earlier([&](const Configuration& c) { return 1e12 / std::pow(task.truth(c), 3); }));
    REQUIRE(wrong.size() == 1);
    CHECK(wrong.front().source == 0);
    CHECK(wrong.front().trials >= 2);
    CHECK(wrong.front().promised > 0.2);
    CHECK(wrong.front().measured < 0.5 * wrong.front().promised);
    CHECK(
        refuted_after(earlier([&](const Configuration& c) { return 3 * task.truth(c); })).empty());
    // Nothing is judged by a single configuration.
    const auto source =
        earlier([&](const Configuration& c) { return 1e12 / std::pow(task.truth(c), 3); });
    std::vector<Trial> two = task.searched(problem, search_with(source, 20), 2, 1);
    CHECK(rejected_priors(Beliefs({source}), problem, problem.standings(two)).empty());
}

TEST_CASE("knowledge: an earlier study of a like job saves trials") {
    const TuningTask before(0.5);
    const TuningTask task;
    const Problem problem(TuningTask::space(), {metric}, {});
    std::vector<double> knowing;
    std::vector<double> blank;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto source = std::make_shared<EarlierResults>(
            "the study 'earlier'", before.searched(problem, Random(), 40, 100 + seed),
            std::map<std::string, std::string>{}, problem.objective, problem.decision,
            problem.space);
        const auto until = [&](const std::shared_ptr<const PriorMean>& knowledge) {
            const auto history = task.searched(problem, search_with(knowledge, 20), 20, seed);
            for (std::size_t n = 1; n <= history.size(); ++n)
                if (task.regret(problem, {history.begin(), history.begin() + std::ptrdiff_t(n)}) <
                    0.05)
                    return double(n);
            return 21.0;
        };
        knowing.push_back(until(source));
        blank.push_back(until(nullptr));
    }
    INFO("trials to within 5 %: " << median(knowing) << " against " << median(blank));
    CHECK(median(knowing) < median(blank));
}

TEST_CASE("knowledge: wrong knowledge does not make the found optimum clearly worse") {
    const auto flipped = [](const Configuration& c) { return -std::log(TuningTask().truth(c)); };
    const auto constant = [](const Configuration&) { return 8.0; };
    const auto garbage = [](const Configuration& c) {
        return 8 + double(c.fingerprint().bits % 1000) / 500;
    };
    const double blank = regret_after(25, nullptr, 30);
    INFO("without: " << blank);
    for (const auto& wrong : {Believed::Function(flipped), {constant}, {garbage}})
        CHECK(regret_after(25, std::make_shared<Believed>(wrong), 30) < blank + 0.04);
    const auto turned_margin = [](const Configuration& c) {
        return TuningTask::fails(c) ? 3.0 : -3.0;
    };
    CHECK(regret_after(25, std::make_shared<Believed>(flipped, turned_margin), 30) < blank + 0.04);
    // Nor what claims to be right; what says nothing costs nothing.
    const double at_ten = regret_after(10, nullptr, 30);
    const auto claimed = [](const Believed::Function& wrong) {
        return regret_after(10, std::make_shared<Believed>(wrong, nullptr, 0.05), 30);
    };
    INFO("after ten trials without: " << at_ten);
    CHECK(claimed(flipped) < at_ten + 0.04);
    CHECK(claimed(constant) == Approx(at_ten));
}

TEST_CASE("knowledge: a model that was checked takes the place of all of the start but one trial") {
    const auto sure = std::make_shared<Believed>(off_by(0.15), nullptr, 0.15);
    const auto unchecked = std::make_shared<Believed>(off_by(0.15));
    const auto unsure = std::make_shared<Believed>(off_by(0.15), nullptr, 2);
    const TuningTask task;
    const Problem problem(TuningTask::space(), {metric}, {});
    const auto fourth_by_design = [&](const std::shared_ptr<const PriorMean>& knowledge) {
        const Bayesian search = search_with(knowledge, 20);
        Rng rng(1);
        const auto history = task.searched(problem, search, 3, 1);
        return std::get<Proposal>(search.ask(problem, history, rng)).why ==
               "the default with its least-tried settings changed";
    };
    CHECK_FALSE(fourth_by_design(sure));
    CHECK(fourth_by_design(unchecked));
    CHECK(fourth_by_design(unsure));
    CHECK(regret_after(5, sure, 20) < regret_after(5, nullptr, 20) - 0.03);
}
