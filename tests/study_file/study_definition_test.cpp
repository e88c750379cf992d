// SPDX-License-Identifier: Apache-2.0
// What makes a study another one: every key of the format, changed, against a table of what it must
// do.
#include "base/files.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"
#include "study_file/keys.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr const char* defined_engine = R"(engine: toy
versions: "1.0"
launch: [toy, "{model}"]
weight_cache: {launch: [toy-cache, "{model}"], parameters: [mode], engine: [--cached], ready: held, used: taken, ready_within: 1min}
roles: {prefill: {arguments: [--first]}, decode: {}, router: [router, ["{prefill_url}"], ["{decode_url}"]]}
parameters:
  seqs: {flag: --seqs, int: {low: 1, high: 64, scale: log2}, default: 8}
  mode: {flag: --mode, choice: [engine, fast, slow], earlier: {until: "0.9", flag: --way}}
)";

/// A study as pieces that a row of the table replaces or adds to.
using Pieces = std::map<std::string, std::string>;
const Pieces plain{
    {"study", "s"},
    {"model", "org/m"},
    {"engine", "toy"},
    {"workloads",
     "[{workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}, requests: 10}]"},
    {"objective", "{maximize: total_tokens_per_second}"},
    {"space", "{seqs: {choice: [8, 16]}, mode: {choice: [engine, fast]}}"},
    {"others", "default"},
    {"strategy", "exhaustive"},
    {"evaluator", "{command: [./measure, \"{config}\"]}"}};

class Studies {
public:
    Studies() {
        folder_.write("toy.yaml", defined_engine);
        folder_.write("toy2.yaml", replaced(defined_engine, "flag: --mode", "flag: --way"));
        folder_.write("t.csv",
                      "seqs,mode,status,total_tokens_per_second\n8,engine,ok,100\n16,engine,ok,"
                      "110\n8,fast,ok,100\n16,fast,ok,110\n");
        folder_.write("u.csv",
                      "seqs,mode,status,total_tokens_per_second\n8,engine,ok,100\n16,engine,ok,"
                      "111\n8,fast,ok,100\n16,fast,ok,110\n");
        folder_.write("base.yaml", "min_gain: 3%\n");
        folder_.write("w1.yaml",
                      "workload: w\nrequests: 10\ndataset: {kind: random, input_tokens: 8, "
                      "output_tokens: 8}\n");
        folder_.write("w2.yaml",
                      "workload: w\nrequests: 12\ndataset: {kind: random, input_tokens: 8, "
                      "output_tokens: 8}\n");
        folder_.write("some.yaml",
                      "preset: some\ndoc: d\nspace: {toy: {seqs: {choice: [8, 64]}}}\n");
        folder_.write(
            "traits.yaml",
            read_file(std::filesystem::path(search_spaces) / "traits/vllm.yaml") + "\n# ours\n");
        folder_.write("pod1.yaml", "spec: {containers: [{name: engine, image: a}]}\n");
        folder_.write(
            "pod2.yaml",
            "spec: {nodeSelector: {gpu: h100}, containers: [{name: engine, image: a}]}\n");
        folder_.write("pod3.yaml", "spec: {containers: [{name: engine}]}\n");
        folder_.write("p1.txt", "one\n");
        folder_.write("p2.txt", "two\n");
    }
    std::map<std::string, std::string> definition(const Pieces& pieces) const {
        std::string text;
        for (const auto& [key, value] : pieces)
            if (!value.empty()) text += key + ": " + value + "\n";
        INFO(text);
        return set_up(load_study(folder_.write("study.yaml", text), Catalogue(search_spaces)),
                      folder_.path() / "out")
            .definition();
    }
    const TemporaryFolder& folder() const { return folder_; }

private:
    TemporaryFolder folder_;
};

struct Row {
    std::string key;  ///< group.key of keys.hpp
    Pieces before;    ///< on top of `plain`; an empty text leaves the key out
    Pieces after;
    bool same = false;
};

Pieces with(Pieces some, const Pieces& more) {
    for (const auto& [key, value] : more) some[key] = value;
    return some;
}
Pieces workload(const std::string& rest) {
    return {{"workloads", "[{workload: w, " + rest + "}]"}};
}
Pieces dataset(const std::string& rest) {
    return workload("requests: 10, dataset: {" + rest + "}");
}
Pieces arrival(const std::string& rest) {
    return workload(
        "requests: 10, dataset: {kind: random, input_tokens: 8, output_tokens: 8}, arrival: " +
        rest);
}
Pieces evaluator(const std::string& kind, const std::string& body) {
    return {{"evaluator", "{" + kind + ": {" + body + "}}"}};
}
Pieces contained(const std::string& rest) {
    return evaluator("deploy", "container: {" + rest + "}");
}
Pieces on_ssh(const std::string& rest) { return evaluator("deploy", "ssh: {" + rest + "}"); }
Pieces on_ray(const std::string& rest) {
    return evaluator("deploy", "ray: {address: \"http://head:8265\"" + rest + "}");
}
Pieces in_slurm(const std::string& rest) { return evaluator("deploy", "slurm: {" + rest + "}"); }
Pieces in_kubernetes(const std::string& rest) {
    return evaluator("deploy", "kubernetes: {template: " + rest + "}");
}
Pieces attach(const std::string& rest) {
    return with(evaluator("attach", rest), {{"space", "{load.concurrency: [1, 2]}"}});
}
Pieces simulate(const std::string& rest) {
    return with(evaluator("simulate", rest), {{"engine", "vllm"},
                                              {"hardware", "h100-sxm"},
                                              {"model", "Qwen/Qwen3-8B"},
                                              {"space", "{max_num_seqs: {choice: [16, 64]}}"}});
}
Pieces strategy(const std::string& name, const std::string& body) {
    return {{"strategy", "{" + name + ": {" + body + "}}"}};
}

const std::string lengths = "input_tokens: 8, output_tokens: 8";
const Pieces guarded_workloads{
    {"workloads", "[{workload: w, requests: 10, dataset: {kind: random, " + lengths +
                      "}}, {workload: v, requests: 10, dataset: {kind: random, " + lengths +
                      "}}]"}};
const std::string server = "url: \"http://127.0.0.1:1\"";
const std::string program = "run: [./measure, \"{config}\"]";

const std::vector<Row>& rows() {
    static const std::vector<Row> all{
        {"study.study", {}, {{"study", "t"}}},
        {"study.use", {}, {{"use", "base.yaml"}}},
        {"study.model", {}, {{"model", "org/other"}}},
        {"study.hardware", {}, {{"hardware", "h100-sxm"}}},
        {"study.engine", {}, {{"engine", "toy2"}}},
        {"study.engine_versions", {}, {{"engine_versions", "{toy: \"0.5\"}"}}},
        {"study.workloads", {}, workload("requests: 11, dataset: {kind: random, " + lengths + "}")},
        {"study.report_workloads",
         {},
         {{"report_workloads",
           "[{workload: r, requests: 1, dataset: {kind: random, " + lengths + "}}]"}}},
        {"study.objective", {}, {{"objective", "{maximize: request_throughput}"}}},
        {"study.never_worse_than", guarded_workloads,
         with(guarded_workloads, {{"never_worse_than", "2%"}})},
        {"study.space",
         {},
         {{"space", "{seqs: {choice: [8, 32]}, mode: {choice: [engine, fast]}}"}}},
        {"study.preset",
         {{"others", ""}, {"space", ""}},
         {{"others", ""}, {"space", ""}, {"preset", "some.yaml"}}},
        {"study.others",
         {{"space", "{seqs: {choice: [8, 16]}}"}},
         {{"space", "{seqs: {choice: [8, 16]}}"}, {"others", "search"}}},
        {"study.roles",
         {{"evaluator", "deploy"}, {"hardware", "{count: 4}"}},
         {{"evaluator", "deploy"},
          {"hardware", "{count: 4}"},
          {"roles", "{decode: {seqs: [8, 16]}}"}}},
        {"study.constraints", {}, {{"constraints", "[{require: \"seqs < 16\", because: no}]"}}},
        {"study.arguments", {}, {{"arguments", "[--verbose]"}}},
        {"study.strategy", {}, {{"strategy", "random"}}},
        {"study.knowledge",
         {{"strategy", "bayesian"}},
         {{"strategy", "bayesian"}, {"knowledge", "[{table: t.csv}]"}}},
        {"study.decision", {}, {{"decision", "published"}}},
        {"study.min_gain", {}, {{"min_gain", "2%"}}},
        {"study.noise_cv", {}, {{"noise_cv", "2%"}}},
        {"study.default_again", {}, {{"default_again", "10"}}},
        {"study.audit", {}, {{"audit", "report"}}},
        {"study.budget", {}, {{"budget", "{trials: 99, wall_clock: 1h}"}}, true},
        {"study.evaluator", {}, {{"evaluator", "{replay: t.csv}"}}},
        {"study.seed", {}, {{"seed", "1"}}},
        {"study.on_done", {}, {{"on_done", "[notify-send, servetune, \"{verdict}\"]"}}, true},
        {"study.notes", {}, {{"notes", "[read this]"}}, true},
        {"study.published", {}, {{"published", "{a: 5 %}"}}, true},
        {"machine.device",
         {{"hardware", "{count: 4}"}},
         {{"hardware", "{count: 4, device: h100-sxm}"}}},
        {"machine.price_per_hour",
         {{"hardware", "{count: 4}"}},
         {{"hardware", "{count: 4, price_per_hour: 12}"}}},
        {"machine.count", {{"hardware", "{count: 4}"}}, {{"hardware", "{count: 2}"}}},
        {"budget.trials", {}, {{"budget", "{trials: 99}"}}, true},
        {"budget.wall_clock", {}, {{"budget", "{wall_clock: 1h}"}}, true},
        {"budget.until", {}, {{"budget", "{until: \"07:00\"}"}}, true},
        {"budget.serves",
         {{"strategy", "bayesian"}},
         {{"strategy", "bayesian"}, {"budget", "{serves: 7d}"}},
         true},
        {"study.quality", evaluator("deploy", ""),
         with(evaluator("deploy", ""), {{"quality", "{}"}})},
        {"quality.prompts", with(evaluator("deploy", ""), {{"quality", "{prompts: p1.txt}"}}),
         with(evaluator("deploy", ""), {{"quality", "{prompts: p2.txt}"}})},
        {"quality.command", with(evaluator("deploy", ""), {{"quality", "{}"}}),
         with(evaluator("deploy", ""), {{"quality", "{command: [./judge]}"}})},
        {"quality.metric", with(evaluator("deploy", ""), {{"quality", "{command: [./judge]}"}}),
         with(evaluator("deploy", ""), {{"quality", "{command: [./judge], metric: f1}"}})},
        {"quality.within", with(evaluator("deploy", ""), {{"quality", "{command: [./judge]}"}}),
         with(evaluator("deploy", ""), {{"quality", "{command: [./judge], within: 1h}"}})},
        {"workload.workload",
         {},
         {{"workloads",
           "[{workload: v, requests: 10, dataset: {kind: random, " + lengths + "}}]"}}},
        {"workload.use", workload("use: w1.yaml"), workload("use: w2.yaml")},
        {"workload.dataset", {}, dataset("kind: random, input_tokens: 9, output_tokens: 8")},
        {"workload.requests",
         {},
         workload("requests: 11, dataset: {kind: random, " + lengths + "}")},
        {"workload.arrival", arrival("{rate: inf}"), arrival("{rate: 2}")},
        {"workload.seed",
         {},
         workload("requests: 10, seed: 7, dataset: {kind: random, " + lengths + "}")},
        {"workload.ignore_eos",
         {},
         workload("requests: 10, ignore_eos: true, dataset: {kind: random, " + lengths + "}")},
        {"workload.weight",
         {},
         workload("requests: 10, weight: 2, dataset: {kind: random, " + lengths + "}")},
        {"workload.printed_as",
         {},
         workload("requests: 10, printed_as: W, dataset: {kind: random, " + lengths + "}"),
         true},
        {"workload.input_tokens", workload("use: w1.yaml"),
         workload("use: w1.yaml, input_tokens: 9")},
        {"workload.output_tokens", workload("use: w1.yaml"),
         workload("use: w1.yaml, output_tokens: 9")},
        {"dataset.kind", {}, dataset("kind: shared_prefix, prefix_tokens: 8, " + lengths)},
        {"dataset.path", dataset("kind: prompts, path: p1.txt, output_tokens: 8"),
         dataset("kind: prompts, path: p2.txt, output_tokens: 8")},
        {"dataset.input_tokens", {}, dataset("kind: random, input_tokens: 9, output_tokens: 8")},
        {"dataset.output_tokens", {}, dataset("kind: random, input_tokens: 8, output_tokens: 9")},
        {"dataset.range_ratio", {}, dataset("kind: random, range_ratio: 0.5, " + lengths)},
        {"dataset.prefix_tokens", dataset("kind: shared_prefix, prefix_tokens: 8, " + lengths),
         dataset("kind: shared_prefix, prefix_tokens: 9, " + lengths)},
        {"dataset.prefix_groups", dataset("kind: shared_prefix, prefix_tokens: 8, " + lengths),
         dataset("kind: shared_prefix, prefix_tokens: 8, prefix_groups: 2, " + lengths)},
        {"dataset.turns", dataset("kind: multi_turn, turns: 2, " + lengths),
         dataset("kind: multi_turn, turns: 3, " + lengths)},
        {"arrival.rate", arrival("{rate: 2}"), arrival("{rate: timestamps}")},
        {"arrival.speed", arrival("{rate: timestamps}"), arrival("{rate: timestamps, speed: 2}")},
        {"arrival.burstiness", arrival("{rate: 2}"), arrival("{rate: 2, burstiness: 0.5}")},
        {"arrival.concurrency", arrival("{concurrency: 2}"), arrival("{concurrency: 3}")},
        {"arrival.ramp", arrival("{rate: 2}"), arrival("{ramp: {from: 2, to: 3}}")},
        {"arrival.largest_rate", arrival("{rate: 2}"), arrival("{largest_rate: {}}")},
        {"arrival.largest_concurrency", arrival("{largest_rate: {}}"),
         arrival("{largest_concurrency: {}}")},
        {"largest_rate.from", arrival("{largest_rate: {from: 1}}"),
         arrival("{largest_rate: {from: 2}}")},
        {"largest_rate.to", arrival("{largest_rate: {to: 8}}"), arrival("{largest_rate: {to: 9}}")},
        {"ramp.from", arrival("{ramp: {from: 2, to: 3}}"), arrival("{ramp: {from: 1, to: 3}}")},
        {"ramp.to", arrival("{ramp: {from: 2, to: 3}}"), arrival("{ramp: {from: 2, to: 4}}")},
        {"objective.maximize",
         {},
         {{"objective", "{maximize: [total_tokens_per_second, request_throughput]}"}}},
        {"objective.minimize", {}, {{"objective", "{minimize: latency_mean_seconds}"}}},
        {"objective.limits",
         {},
         {{"objective",
           "{maximize: total_tokens_per_second, limits: [latency_mean_seconds <= 1]}"}}},
        {"objective.over", guarded_workloads,
         with(guarded_workloads,
              {{"objective", "{maximize: total_tokens_per_second, over: worst}"}})},
        {"strategy.staged", {}, strategy("staged", "stages: [seqs]")},
        {"strategy.bayesian", {}, strategy("bayesian", "")},
        {"bayesian.per", strategy("bayesian", ""), strategy("bayesian", "per: second")},
        {"knowledge.study", {}, {}, true},  // knowledge_test.cpp: it needs a journal
        {"knowledge.table",
         {{"strategy", "bayesian"}, {"knowledge", "[{table: t.csv}]"}},
         {{"strategy", "bayesian"}, {"knowledge", "[{table: u.csv}]"}}},
        {"staged.compare_with", strategy("staged", "stages: [seqs]"),
         strategy("staged", "compare_with: baseline, stages: [seqs]")},
        {"staged.replicates", strategy("staged", "stages: [seqs]"),
         strategy("staged", "replicates: 5, stages: [seqs]")},
        {"staged.stages", strategy("staged", "stages: [{a: [{seqs: 8}]}]"),
         strategy("staged", "stages: [{a: [{seqs: 16}]}]")},
        {"evaluator.replay", {}, {{"evaluator", "{replay: t.csv}"}}},
        {"evaluator.simulate", with(simulate(""), {{"evaluator", "{command: [./measure]}"}}),
         simulate("")},
        {"evaluator.attach", attach(server), attach("url: \"http://127.0.0.1:2\"")},
        {"evaluator.deploy", {}, evaluator("deploy", "")},
        {"evaluator.command", {}, {{"evaluator", "{command: [./other, \"{config}\"]}"}}},
        {"command.run", evaluator("command", program), evaluator("command", "run: [./other]")},
        {"command.trial_within", evaluator("command", program),
         evaluator("command", "trial_within: 1h, " + program)},
        {"command.stop_within", evaluator("command", program),
         evaluator("command", "stop_within: 1s, " + program), true},
        {"command.environment", evaluator("command", program),
         evaluator("command", "environment: {A: \"1\"}, " + program)},
        {"attach.url", attach(server), attach("url: \"http://127.0.0.1:2\"")},
        {"attach.served_model", attach(server), attach("served_model: m, " + server)},
        {"attach.api_key_env", attach(server), attach("api_key_env: HOME, " + server), true},
        {"attach.trial_within", attach(server), attach("trial_within: 1h, " + server)},
        {"attach.stall_timeout", attach(server), attach("stall_timeout: 10s, " + server)},
        {"attach.give_up", attach(server), attach("give_up: 50%, " + server)},
        {"attach.warm_up", attach(server), attach("warm_up: 3, " + server)},
        {"deploy.container", contained("image: a"), contained("image: b")},
        {"deploy.ssh", on_ssh("host: a"), on_ssh("host: user@a")},
        {"deploy.ray", on_ray(""), on_ray(", resources: {CPU: 4}")},
        {"deploy.slurm", in_slurm("listen: 0.0.0.0"),
         in_slurm("listen: 0.0.0.0, options: [--partition=gpu]")},
        {"deploy.kubernetes", in_kubernetes("pod1.yaml"), in_kubernetes("pod2.yaml")},
        {"deploy.launcher", evaluator("deploy", "launcher: {program: /bin/true, a: 1}"),
         evaluator("deploy", "launcher: {program: /bin/true, a: 2}")},
        {"container.image", contained("image: a"), contained("image: [a, b]")},
        {"container.program", contained("image: a"),
         contained("image: a, program: [podman, --remote]")},
        {"container.options", contained("image: a"),
         contained("image: a, options: [--cap-add=SYS_NICE]")},
        {"deploy.environment", evaluator("deploy", ""),
         evaluator("deploy", "environment: {A: \"1\"}")},
        {"deploy.api_key_env", evaluator("deploy", ""), evaluator("deploy", "api_key_env: HOME"),
         true},
        {"deploy.gpus", evaluator("deploy", ""), evaluator("deploy", "gpus: \"1\"")},
        {"deploy.cores", evaluator("deploy", ""), evaluator("deploy", "cores: [0]")},
        {"deploy.workers", evaluator("deploy", "cores: [0, 1]"),
         evaluator("deploy", "cores: [0, 1], workers: 2")},
        {"deploy.replicas", evaluator("deploy", ""), evaluator("deploy", "replicas: fill")},
        {"deploy.weight_cache", evaluator("deploy", ""), evaluator("deploy", "weight_cache: on")},
        {"deploy.ready_within", evaluator("deploy", ""), evaluator("deploy", "ready_within: 1s")},
        {"deploy.trial_within", evaluator("deploy", ""), evaluator("deploy", "trial_within: 1h")},
        {"deploy.stop_within", evaluator("deploy", ""), evaluator("deploy", "stop_within: 1s"),
         true},
        {"deploy.stall_timeout", evaluator("deploy", ""), evaluator("deploy", "stall_timeout: 9s")},
        {"deploy.give_up", evaluator("deploy", ""), evaluator("deploy", "give_up: 50%")},
        {"deploy.warm_up", evaluator("deploy", ""), evaluator("deploy", "warm_up: 3")},
        {"deploy.watch", evaluator("deploy", ""), evaluator("deploy", "watch: off")},
        {"simulate.noise", simulate(""), simulate("noise: 1%")},
        {"simulate.step_noise", simulate(""), simulate("step_noise: 1%")},
        {"simulate.traits", simulate(""), simulate("traits: {vllm: traits.yaml}")},
        {"replay.table",
         {{"evaluator", "{replay: t.csv}"}},
         {{"evaluator", "{replay: {table: u.csv}}"}}},
        {"replay.unmeasured", evaluator("replay", "table: t.csv"),
         evaluator("replay", "table: t.csv, unmeasured: exclude")},
        {"replay.noise", evaluator("replay", "table: t.csv"),
         evaluator("replay", "table: t.csv, noise: 1%")},
        {"replay.delay", evaluator("replay", "table: t.csv"),
         evaluator("replay", "table: t.csv, delay: 1ms"), true},
    };
    return all;
}

}  // namespace

TEST_CASE(
    "definition: every key of a study and its workloads either makes it another study or is known "
    "not to") {
    std::map<std::string, std::span<const Key>> groups;
    for (const KeyType& table :
         {is::keyed<keys::study>,     is::keyed<keys::machine>,     is::keyed<keys::workload>,
          is::keyed<keys::dataset>,   is::keyed<keys::arrival>,     is::keyed<keys::ramp>,
          is::keyed<keys::objective>, is::keyed<keys::strategy>,    is::keyed<keys::bayesian>,
          is::keyed<keys::knowledge>, is::keyed<keys::staged>,      is::keyed<keys::budget>,
          is::keyed<keys::evaluator>, is::keyed<keys::command>,     is::keyed<keys::attach>,
          is::keyed<keys::deploy>,    is::keyed<keys::simulate>,    is::keyed<keys::replay>,
          is::keyed<keys::quality>,   is::keyed<keys::load_search>, is::keyed<keys::container>})
        groups[std::string(table.table)] = table.keys();
    std::set<std::string> known;
    for (const auto& [group, all] : groups)
        for (const Key& key : all) known.insert(group + "." + std::string(key.name));
    std::set<std::string> tried;
    const Studies studies;
    for (const Row& row : rows()) {
        INFO(row.key);
        CHECK(tried.insert(row.key).second);
        const bool same = studies.definition(with(plain, row.before)) ==
                          studies.definition(with(plain, row.after));
        CHECK(same == row.same);
    }
    CHECK(tried == known);  // a key that is added to the format needs a row
}

TEST_CASE("definition: what stands in the files that a study names is part of it") {
    const Studies studies;
    const auto changes = [&](const Pieces& pieces, const std::string& file,
                             const std::string& content) {
        const auto before = studies.definition(with(plain, pieces));
        studies.folder().write(file, content);
        return before != studies.definition(with(plain, pieces));
    };
    CHECK(changes({}, "toy.yaml", replaced(defined_engine, "flag: --mode", "flag: --way")));
    CHECK_FALSE(
        changes({}, "toy.yaml",
                replaced(defined_engine, "flag: --mode", "doc: \"As before.\", flag: --way")));
    CHECK(changes({}, "toy.yaml",
                  replaced(defined_engine, "flag: --mode", "grows_memory: true, flag: --way")));
    CHECK(changes(dataset("kind: prompts, path: p1.txt, output_tokens: 8"), "p1.txt", "another\n"));
    CHECK(changes({{"evaluator", "{replay: t.csv}"}}, "t.csv",
                  "seqs,mode,status,total_tokens_per_second\n8,engine,ok,100\n16,engine,ok,110\n8,"
                  "fast,ok,100\n16,fast,ok,113\n"));
    CHECK(changes({{"use", "base.yaml"}}, "base.yaml", "seed: 5\n"));
}

TEST_CASE(
    "definition: a journal of an earlier version, which did not record all of it, is gone on "
    "with") {
    const Studies studies;
    const TemporaryFolder folder;
    const auto now = studies.definition(with(plain, evaluator("deploy", "trial_within: 1h")));
    auto earlier = now;
    std::erase_if(earlier, [](const auto& entry) { return entry.first.starts_with("file."); });
    REQUIRE(earlier.size() < now.size());
    { (void)SqliteJournal::open(folder.path(), {"s", earlier, "0.1.0"}); }
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), {"s", now, "0.2.0"});
        journal.asked({0, Configuration()});
    }
    const auto changed = studies.definition(with(plain, evaluator("deploy", "trial_within: 2h")));
    CHECK(message_of<UsageError>([&] {
              (void)SqliteJournal::open(folder.path(), {"s", changed, "0.2.0"});
          }).find("\n  file.evaluator.deploy.trial_within: was '1h', is '2h'\n") !=
          std::string::npos);
    const TemporaryFolder other;
    { (void)SqliteJournal::open(other.path(), {"s", earlier, "0.1.0"}); }
    auto another = now;
    another["seed"] = "9";
    CHECK_THROWS_AS(SqliteJournal::open(other.path(), {"s", another, "0.2.0"}), UsageError);
}
