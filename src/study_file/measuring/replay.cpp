// SPDX-License-Identifier: Apache-2.0
// `evaluator: {replay: ...}`: a table of measured configurations answers.
#include "base/kept_texts.hpp"
#include "base/waiting.hpp"
#include "kind.hpp"
#include "base/nearest.hpp"
#include "servetune/outcome.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/table.hpp"
#include "study_file/audit_context.hpp"
#include "study_file/key_reader.hpp"
#include "study_file/keys.hpp"
#include "study_file/study_readers.hpp"

#include <chrono>
#include <set>

namespace servetune {
namespace {

/// Takes its time before it answers, so that a replayed run can be watched, stopped and killed.
class Delayed : public Evaluator {
public:
    Delayed(std::unique_ptr<Evaluator> inner, double seconds)
        : inner_(std::move(inner)), delay_(seconds) {}

    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        if (wait_or_stop(delay_, context.stop))
            return Failure{FailureKind::cancelled, "stopped by the user"};
        return inner_->evaluate(configuration, context);
    }
    [[nodiscard]] bool replicates_inform() const override { return inner_->replicates_inform(); }

private:
    std::unique_ptr<Evaluator> inner_;
    std::chrono::duration<double> delay_;
};

void check_objective(const StudyFile& file, const MeasuredTable& table) {
    std::set<std::string> metrics;
    for (const MeasuredTable::Row& row : table.rows)
        if (const auto* measurement = std::get_if<Measurement>(&row.outcome))
            for (const auto& [name, metric] : measurement->metrics) metrics.insert(name);
    if (metrics.empty()) return;  // all rows failed: the report says why
    const std::vector<std::string> known(metrics.begin(), metrics.end());
    const bool has_workloads = !table.rows.front().workload.empty();
    const auto check = [&](const char* key, const std::string& metric) {
        const std::string of_any = has_workloads ? std::string(MetricKey::of(metric).name) : metric;
        if (!metrics.contains(of_any))
            throw ParseError(file.source.file.string() + ": '" + key + "': " + table.source +
                             " has no metric '" + metric +
                             "'; it has: " + listed(nearest_first(metric, known)));
    };
    for (const Goal& goal : file.objective.goals) check("objective", goal.metric);
    for (const Limit& limit : file.objective.limits)
        check("objective.limits", limit.metric);  // no row could keep it
}

MeasuringChoice read_replay(const Yaml& node) {
    ReplayChoice result;
    read_table(node, keys::replay, result);
    return result;
}

void build_replay(StudySetup& setup, StudyFile& file, const std::filesystem::path& /*folder*/,
                  const RunHooks& /*hooks*/) {
    const auto& replay = std::get<ReplayChoice>(file.measuring);
    MeasuredTable table = read_table(replay.table);
    check_objective(file, table);
    if (file.audit != "off") audit_rows(table, file);
    std::vector<Constraint> constraints = file.composition->constraints();
    const bool has_workloads = !table.rows.front().workload.empty();
    if (replay.exclude_unmeasured) {
        const SearchSpace whole(file.composition->parameters());
        std::vector<std::string> names;
        if (has_workloads)
            for (const Workload& workload : file.workloads) names.push_back(workload.name);
        constraints.emplace_back(ReplayEvaluator::measured_only(table, whole, names));
    }
    setup.problem = problem_of(file, std::move(constraints));
    ReplayEvaluator::Options options{{}, replay.noise_cv};
    if (has_workloads) options.workloads = file.weighted_workloads();
    setup.evaluator =
        std::make_unique<ReplayEvaluator>(table, setup.problem->space, std::move(options));
    if (replay.delay_seconds > 0)
        setup.evaluator =
            std::make_unique<Delayed>(std::move(setup.evaluator), replay.delay_seconds);
}

void define_replay(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    const auto& replay = std::get<ReplayChoice>(setup.file.measuring);
    definition["evaluator.replay"] = fingerprint_of(read_text(replay.table)).text();
}

std::string note_of_replay(const StudyFile& file) {
    return "Replayed from the table " +
           std::get<ReplayChoice>(file.measuring).table.filename().string() +
           ": no engine was started here.";
}

}  // namespace

constinit const MeasuringKind replay_kind{
    .name = keys::evaluator.replay.name,
    .served_by = ServedBy::an_earlier_start,
    .read = read_replay,
    .build = build_replay,
    .define = define_replay,
    .note = note_of_replay,
};

}  // namespace servetune
