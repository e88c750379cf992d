// SPDX-License-Identifier: Apache-2.0
// `evaluator`, and those that start no engine here: a server that runs, a program of the user's, a
// table, and whoever asks.
#include "evaluator_type.hpp"

#include "audit_context.hpp"
#include "base/nearest.hpp"
#include "base/url.hpp"
#include "base/waiting.hpp"
#include "engine/per_device.hpp"
#include "keys.hpp"
#include "load/capacity.hpp"
#include "load/http.hpp"
#include "readers.hpp"
#include "search/feasible_changes.hpp"
#include "secrets.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/deploy/quality_gate.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/outcome.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/table.hpp"
#include "study_snapshot.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace servetune {

namespace {

std::vector<std::string> names_of_evaluators() { return names_in(rows_of(keys::evaluator)); }

}  // namespace

Yaml spelled_out_evaluator(const Yaml& node) {
    std::string word;
    if (node.is_scalar()) word = node.text();
    else if (node.is_mapping() && node.entries().size() == 1 &&
             node.entries().front().second.kind() == Yaml::Kind::null)
        word = node.entries().front().first;
    else return node;
    const auto& plain = keys::plain_evaluators;
    for (const Key& key : rows_of(keys::evaluator)) {
        if (key.name != word) continue;
        if (!contains(plain, word))
            node.fail("'" + word + "' needs to be told more: `evaluator: {" + word + ": " +
                      key.type->text() + "}`");
        return node.empty_mapping().under(key);
    }
    node.fail("'" + word +
              "' is no evaluator; known: " + listed(nearest_first(word, names_of_evaluators())));
}

EvaluatorConfig read_measuring(const Yaml& written, bool outside) {
    const Yaml evaluator = spelled_out(is::keyed<keys::evaluator>, written);
    evaluator.check_keys(keys::evaluator);
    if (outside) return MeasuredOutside{};
    if (evaluator.entries().size() != 1) {
        const std::vector<std::string> known = names_of_evaluators();
        const std::vector<std::string_view> names(known.begin(), known.end());
        evaluator.fail("one evaluator wanted: " +
                       KeyType{.form = KeyType::Form::word, .words = names}.wanted_text());
    }
    const auto& [name, node] = evaluator.entries().front();
    for (const EvaluatorType* type : evaluator_types())
        if (type->traits.name == name) return type->read(node);
    throw std::logic_error("no evaluator is called " + name);
}

EnvironmentOptions environment_of_machine(const StudyFile& file) {
    EnvironmentOptions options;
    if (file.machine.found && !file.machine.found->all.empty())
        options.driver = file.machine.found->all.front().driver;
    for (const Engine& engine : file.composition->engines())
        for (const auto* list : {&engine.environment_prefixes, &engine.flag_variables})
            options.prefixes.insert(options.prefixes.end(), list->begin(), list->end());
    return options;
}

std::unique_ptr<Problem> problem_of(const StudyFile& file) {
    return problem_of(file, file.composition->constraints());
}

std::unique_ptr<Problem> problem_of(const StudyFile& file, std::vector<Constraint> constraints) {
    const SearchSpace space(file.composition->parameters(), std::move(constraints));
    try {
        return std::make_unique<Problem>(space, file.objective, file.decision);
    } catch (const SpaceError& error) {
        std::string place = file.source.at(), advice;
        try {
            if (!space.feasible(space.default_configuration()))
                for (const auto& [name, value] : feasible_changes(space)) {
                    if (advice.empty()) place = file.source.at(name);
                    advice += (advice.empty() ? "; write `default: " : ", `default: ") +
                              text_of(value) + "` for '" + name + "'";
                }
        } catch (const SpaceError&) {  // there is none
        }
        throw SpaceError(place + error.what() + advice);
    }
}

bool StudyFile::measures() const { return evaluator_of(*this).traits.measures; }

bool StudyFile::starts_processes() const { return evaluator_of(*this).traits.starts_processes; }

TrialProcesses StudyFile::processes() const { return evaluator_of(*this).processes(*this); }

std::string StudyFile::measured_by() const {
    const std::string other = why_other_chip(*this);
    return evaluator_of(*this).note(*this) + (other.empty() ? "" : " But " + other + '.');
}

std::string key_from(const std::string& name, const StudyFile& file) {
    if (name.empty() || !file.kept.empty()) return "";  // a study that is only read asks no server
    const char* key = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (key == nullptr)
        throw UsageError(file.source.at() + "the environment has no " + name +
                         ", which `api_key_env` names");
    CollectSecrets::found(key, "${" + name + "}");
    check_header_text(file.source.at() + "the key in " + name + ", which `api_key_env` names", key);
    return key;
}

void add_hooks_and_facts(const StudyFile& file, const RunHooks& hooks, MeasureOptions& options) {
    options.say = hooks.say;
    options.phase = hooks.phase;
    options.keep = hooks.keep;
    add_facts(file, options);
}

void add_facts(const StudyFile& file, MeasureOptions& options) {
    const Catalogue catalogue = file.catalogue();
    options.models = catalogue.all_models();
    options.limits = file.objective.limits;
    // These compare with another configuration than the best so far.
    if (file.strategy.name == "local_search" || file.strategy.name == "staged") options.give_up = 0;
    if (!file.machine.chip().empty())
        options.hardware = hardware_in(file.machine.chip(), catalogue.all_hardware());
}

namespace {

class OutsideType final : public EvaluatorType {
public:
    OutsideType() : EvaluatorType({"outside"}) {}
    [[nodiscard]] EvaluatorConfig read(const Yaml& /*node*/) const override {
        return MeasuredOutside{};
    }
    void build(StudySetup& setup, StudyFile& file, const std::filesystem::path& /*folder*/,
               const RunHooks& /*hooks*/) const override {
        setup.problem = problem_of(file);
    }
    void define(const StudySetup& /*setup*/,
                std::map<std::string, std::string>& definition) const override {
        definition["evaluator"] = "outside";
    }
    [[nodiscard]] std::string note(const StudyFile& /*file*/) const override {
        return "Every number was told by the program that asked: nothing of how it was measured is "
               "known here.";
    }
};

/// A load test of a server that somebody else runs.
class AttachType final : public EvaluatorType {
public:
    AttachType()
        : EvaluatorType({.name = keys::evaluator.attach.name,
                         .measures = true,
                         .served_by = ServedBy::a_running_server}) {}
    /// The key itself stays in the environment until the study is set up: nothing that prints a
    /// study can print it.
    [[nodiscard]] EvaluatorConfig read(const Yaml& node) const override {
        AttachChoice result;
        read_table(node, keys::attach, result);
        Redactor password;
        add_user_info(password, result.options.url);
        CollectSecrets::found(password);
        return result;
    }
    void build(StudySetup& setup, StudyFile& file, const std::filesystem::path& /*folder*/,
               const RunHooks& hooks) const override {
        setup.problem = problem_of(file);
        const auto& attach = std::get<AttachChoice>(file.measuring);
        AttachEvaluator::Options options = attach.options;
        options.devices = double(file.machine.devices.value_or(1));
        add_hooks_and_facts(file, hooks, options.measure);
        options.api_key = key_from(attach.api_key_environment, file);
        setup.evaluator = std::make_unique<AttachEvaluator>(
            file.composition->engines().front(), file.model,
            StudyWorkloads{file.workloads, file.report_workloads}, std::move(options));
    }
    void define(const StudySetup& setup,
                std::map<std::string, std::string>& definition) const override {
        definition["evaluator.attach"] = shown_url(setup.file);
    }
    [[nodiscard]] std::string note(const StudyFile& file) const override {
        return shown_url(file) +
               " was measured as it was found; whoever runs it says with which flags.";
    }
    /// The server's variables are its owner's. The load comes from here.
    [[nodiscard]] std::optional<EnvironmentOptions> environment(
        const StudyFile& file) const override {
        EnvironmentOptions options = environment_of_machine(file);
        options.inherits = false;
        return options;
    }
    [[nodiscard]] std::string machine(const StudyFile& file) const override {
        return "the server at " + shown_url(file) + " " + file.machine.hardware;
    }
    [[nodiscard]] std::string server_text(const StudyFile& file) const override {
        return "# the server at " + shown_url(file) + " as it is";
    }

private:
    static std::string shown_url(const StudyFile& file) {
        return without_user_info(std::get<AttachChoice>(file.measuring).options.url);
    }
};

/// A program of the user's measures.
class CommandType final : public EvaluatorType {
public:
    CommandType()
        : EvaluatorType(
              {.name = keys::evaluator.command.name, .measures = true, .starts_processes = true}) {}
    [[nodiscard]] EvaluatorConfig read(const Yaml& node) const override {
        CommandChoice result;
        CommandEvaluator::Options& options = result.options;
        read_table(node, keys::command, result);
        const Yaml& words = node.at(keys::command.run);
        for (std::size_t i = 0; i < result.words.size(); ++i) try {
                CommandEvaluator::check_word(result.words[i]);
            } catch (const UsageError& error) {
                words.items()[i].fail(error.what());
            }
        options.argv = result.words;
        options.working_folder = std::filesystem::absolute(words.file()).parent_path();
        std::string& program = options.argv.front();
        program = text_with_home(words.items().front());
        if (program.empty()) words.items().front().fail_wanted("a program");
        if (contains(program, '/'))
            program = (options.working_folder / program).lexically_normal().string();
        return result;
    }
    void build(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder,
               const RunHooks& hooks) const override {
        setup.problem = problem_of(file);
        CommandEvaluator::Options& options = std::get<CommandChoice>(file.measuring).options;
        options.folder = folder.empty() ? std::filesystem::path(file.name) : folder;
        options.mark = std::filesystem::absolute(options.folder).string();
        options.watchdog = hooks.watchdog;
        options.model = file.model;
        options.workloads = names_in(file.workloads);
        options.render = [&composition = *file.composition,
                          model = file.model](const Configuration& configuration) {
            return composition.render(configuration, {model, {}, 0});
        };
        setup.evaluator = std::make_unique<CommandEvaluator>(options);
    }
    void define(const StudySetup& setup,
                std::map<std::string, std::string>& definition) const override {
        const auto& choice = std::get<CommandChoice>(setup.file.measuring);
        definition["evaluator.command"] = Command{choice.words}.text();
        add_environment("evaluator.command.environment.", choice.options.environment,
                        setup.file.secrets, definition);
    }
    [[nodiscard]] std::string note(const StudyFile& file) const override {
        return "Every trial was measured by " + options_of(file).argv.front() +
               "; its log is trials/ID/command.log.";
    }
    [[nodiscard]] TrialProcesses processes(const StudyFile& file) const override {
        return {options_of(file).mark, options_of(file).stop_within_seconds};
    }
    [[nodiscard]] std::optional<EnvironmentOptions> environment(
        const StudyFile& file) const override {
        EnvironmentOptions options = environment_of_machine(file);
        options.set = options_of(file).environment;
        return options;
    }

private:
    static const CommandEvaluator::Options& options_of(const StudyFile& file) {
        return std::get<CommandChoice>(file.measuring).options;
    }
};

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
    const std::vector<std::string> known = metrics_of(table);
    if (known.empty()) return;  // all rows failed: the report says why
    const bool has_workloads = !table.rows.front().workload.empty();
    const auto check = [&](const char* key, const std::string& metric) {
        const std::string of_any = has_workloads ? std::string(MetricKey::of(metric).name) : metric;
        if (!contains(known, of_any))
            throw ParseError(file.source.at() + "'" + key + "': " + table.source +
                             " has no metric '" + metric +
                             "'; it has: " + listed(nearest_first(metric, known)));
    };
    for (const Goal& goal : file.objective.goals) check("objective", goal.metric);
    for (const Limit& limit : file.objective.limits)
        check("objective.limits", limit.metric);  // no row could keep it
}

/// A table of measured configurations answers.
class ReplayType final : public EvaluatorType {
public:
    ReplayType()
        : EvaluatorType(
              {.name = keys::evaluator.replay.name, .served_by = ServedBy::an_earlier_start}) {}
    [[nodiscard]] EvaluatorConfig read(const Yaml& node) const override {
        ReplayChoice result;
        read_table(node, keys::replay, result);
        return result;
    }
    void build(StudySetup& setup, StudyFile& file, const std::filesystem::path& /*folder*/,
               const RunHooks& /*hooks*/) const override {
        const auto& replay = std::get<ReplayChoice>(file.measuring);
        MeasuredTable table =
            parse_table(placed(file.source, "'evaluator'",
                               [&] { return read_text(replay.table, file.source.snapshot); }),
                        replay.table.string());
        check_objective(file, table);
        if (file.audit != "off") audit_rows(table, file);
        std::vector<Constraint> constraints = file.composition->constraints();
        const bool has_workloads = !table.rows.front().workload.empty();
        if (replay.exclude_unmeasured) {
            const SearchSpace whole(file.composition->parameters());
            constraints.emplace_back(ReplayEvaluator::measured_only(
                table, whole,
                has_workloads ? names_in(file.workloads) : std::vector<std::string>()));
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
    void define(const StudySetup& setup,
                std::map<std::string, std::string>& definition) const override {
        const auto& replay = std::get<ReplayChoice>(setup.file.measuring);
        definition["evaluator.replay"] =
            fingerprint_of(read_text(replay.table, setup.file.source.snapshot)).text();
    }
    [[nodiscard]] std::string note(const StudyFile& file) const override {
        return "Replayed from the table " +
               std::get<ReplayChoice>(file.measuring).table.filename().string() +
               ": no engine was started here.";
    }
};

}  // namespace

const std::array<const EvaluatorType*, std::variant_size_v<EvaluatorConfig>>& evaluator_types() {
    static const OutsideType outside;
    static const ReplayType replay;
    static const AttachType attach;
    static const CommandType command;
    static const std::array<const EvaluatorType*, std::variant_size_v<EvaluatorConfig>> all{
        &outside, &replay, &simulate_type(), &attach, &deploy_type(), &command};
    return all;
}

const EvaluatorType& evaluator_of(const StudyFile& file) {
    return *evaluator_types().at(file.measuring.index());
}

}  // namespace servetune
