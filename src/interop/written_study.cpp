// SPDX-License-Identifier: Apache-2.0
#include "written_study.hpp"

#include "base/files.hpp"
#include "base/lower_case.hpp"
#include "base/whole_number.hpp"
#include "engine/version.hpp"
#include "excluded_results.hpp"
#include "repeats.hpp"
#include "server_settings.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/error.hpp"
#include "study_file/audit_context.hpp"
#include "study_file/engine_sets.hpp"
#include "study_file/yaml_text.hpp"
#include "workload_groups.hpp"
#include "written_space.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace servetune {
namespace {

std::string name_behind_slash(const std::string& path) {
    const std::string trimmed_path = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
    return trimmed_path.substr(trimmed_path.rfind('/') + 1);
}

/// What is left of a checkpoint's name behind the model's: `FP8` of `Qwen3-14B-FP8`; nothing where
/// it is another model.
std::optional<std::string> suffix_of(const std::string& checkpoint, const std::string& model) {
    const std::string name = lower_case(name_behind_slash(checkpoint)),
                      base = lower_case(name_behind_slash(model));
    if (name == base) return "";
    if (!name.starts_with(base) || name.size() <= base.size() + 1 ||
        (name[base.size()] != '-' && name[base.size()] != '_' && name[base.size()] != '.'))
        return std::nullopt;
    const std::string rest = name.substr(base.size() + 1);
    for (const std::string_view word :
         {"fp8", "fp4", "int4", "int8", "awq", "gptq", "gguf", "bf16", "w4a16", "w8a8", "w8a16",
          "mxfp4", "quantized", "bnb", "4bit", "8bit"})
        if (rest.find(word) != std::string::npos) return rest;
    return std::nullopt;
}

/// The version that a text prints behind an engine's name: `vLLM: v0.11.0`.
std::string version_in(const std::vector<std::string>& texts, const Engine& engine) {
    for (const std::string& text : texts) {
        const std::string low = lower_case(text), name = lower_case(engine.name);
        for (auto at = low.find(name); at != std::string::npos; at = low.find(name, at + 1)) {
            std::size_t begin = at + name.size();
            while (begin < low.size() && (low[begin] == ' ' || low[begin] == ':' ||
                                          low[begin] == '*' || low[begin] == 'v'))
                ++begin;
            std::size_t end = begin;
            while (end < low.size() &&
                   (std::isalnum(static_cast<unsigned char>(low[end])) != 0 || low[end] == '.'))
                ++end;
            while (end > begin && low[end - 1] == '.') --end;
            const std::string version = low.substr(begin, end - begin);
            if (begin > at + name.size() && std::count(version.begin(), version.end(), '.') >= 2 &&
                std::isdigit(static_cast<unsigned char>(version[0])) != 0)
                return version;
        }
    }
    return "";
}

class StudyWriter {
public:
    StudyWriter(const ResultSource& source, const StudyRequest& request, std::string name,
                const Catalogue& catalogue)
        : source_(source),
          request_(request),
          name_(std::move(name)),
          catalogue_(catalogue),
          engines_(catalogue.engines()),
          commands_(engines_, catalogue.root()) {}

    WrittenStudy written() {
        read_commands();
        find_model();
        complete_rows();
        find_workloads();
        WrittenStudy result{yaml(), {}, {}, {}};
        result.remarks = remarks_;
        return result;
    }

    /// The results with one label each, their workload's, and with commands of their own.
    [[nodiscard]] const std::vector<PublishedResult>& labelled() const { return results_; }
    [[nodiscard]] const std::vector<Unplaced>& left_out() const { return left_out_; }

    /// The results of the workload that is searched.
    [[nodiscard]] const WorkloadGroup& searched() const { return groups_.front(); }

    /// The study again, with each of the measured configurations of the first engine as the
    /// default.
    [[nodiscard]] std::vector<std::string> with_measured_defaults() const {
        std::vector<std::string> texts;
        for (const SeenRow& row : rows_) {
            const std::vector<std::size_t>& blocks = groups_.front().blocks;
            if (row.engine != rows_.front().engine ||
                std::find(blocks.begin(), blocks.end(), row.index) == blocks.end())
                continue;
            std::vector<std::string> said_before;
            texts.push_back(before_space_ + "space:\n" +
                            space_of_rows(rows_, checkpoints_, said_before, &row) + after_space());
        }
        return texts;
    }

private:
    /// What was given by hand for a result.
    [[nodiscard]] std::vector<const GivenFact*> facts_for(std::size_t index) const {
        std::vector<const GivenFact*> facts;
        for (const GivenFact& fact : request_.facts)
            if (fact.file.empty() || fact.file == source_.files[index] ||
                fact.file == name_behind_slash(source_.files[index]))
                facts.push_back(&fact);
        return facts;
    }
    [[nodiscard]] std::string fact(std::size_t index, const std::string& name) const {
        std::string value;
        for (const GivenFact* given : facts_for(index))
            if (given->name == name) value = given->value;
        return value;
    }
    static bool is_fact(const std::string& name) {
        constexpr std::array<std::string_view, 4> names{"model", "hardware", "engine", "version"};
        return std::find(names.begin(), names.end(), name) != names.end();
    }
    [[nodiscard]] const Engine* engine_called(const std::string& name) const {
        for (const Engine& engine : engines_)
            if (lower_case(engine.name) == lower_case(name)) return &engine;
        return nullptr;
    }
    [[nodiscard]] std::string version_of(const Engine& engine) const {
        std::string version;
        for (const SeenRow& row : rows_) {
            if (row.engine != &engine) continue;
            const std::string own = fact(row.index, engine.name + ".version");
            const std::string given = !own.empty() ? own : fact(row.index, "version");
            if (!version.empty() && !given.empty() && given != version)
                throw SpaceError("--set version: a study has one version of " + engine.name +
                                 ", and its results are of " + version + " and " + given +
                                 "; write a study of each");
            if (!given.empty()) version = given;
        }
        return !version.empty() ? version : version_in(source_.texts, engine);
    }

    void read_commands() {
        results_ = source_.results;
        for (std::size_t i = 0; i < results_.size(); ++i) {
            PublishedResult& result = results_[i];
            const std::string given = fact(i, "engine");
            std::map<std::string, std::string> by_hand;
            for (const GivenFact* one : facts_for(i))
                if (!is_fact(one->name) && !one->name.ends_with(".version"))
                    by_hand[one->name] = one->value;
            const bool from_settings = result.arguments_unknown && result.not_recognised.empty();
            const Engine* engine = engine_called(!given.empty()           ? given
                                                 : !result.engine.empty() ? result.engine
                                                 : from_settings          ? result.tool
                                                                          : "");
            if (!given.empty() && engine == nullptr)
                throw SpaceError("--set engine=" + given + ": no such engine");
            if (from_settings && engine != nullptr &&
                (says_settings(*engine, result, source_.results) || !by_hand.empty() ||
                 !given.empty())) {
                result.arguments_unknown = false;
                result.engine = lower_case(engine->name);
                const auto changing = changing_settings(*engine, result, source_.results);
                std::string why = why_settings_not_known(*engine, result, changing);
                try {
                    if (why.empty()) add_settings(result.arguments, *engine, changing);
                } catch (const SpaceError& error) {
                    if (result.failure.empty()) throw;
                    why = error.what();
                }
                if (!why.empty()) {
                    left_out_.push_back({result, why});
                    continue;
                }
            }
            if (!by_hand.empty() && engine != nullptr && result.not_recognised.empty())
                add_settings(result.arguments, *engine, by_hand);
            if (!result.not_recognised.empty() || result.arguments_unknown) {
                left_out_.push_back(
                    {result, !result.not_recognised.empty()
                                 ? "command not recognised: " + result.not_recognised
                                 : "the file does not say how the engine was started (--set "
                                   "engine=..., --set NAME=VALUE)"});
                continue;
            }
            const std::vector<std::string> words = shell_words(result.arguments);
            const CommandSettings read = commands_.read({words});
            if (read.start == CommandSettings::Start::launcher)
                engine = engine_called(read.engine->name);
            if (engine == nullptr) engine = only_engine_with(words);
            if (engine == nullptr) {
                left_out_.push_back({result, "which engine it is is not said (--set engine=...)"});
                continue;
            }
            SeenRow row = seen_row(i, *engine, commands_.read({words}, engine->name));
            if (row.model.empty()) row.model = fact(i, "model");
            if (row.model.empty()) row.model = result.model;
            result.engine = lower_case(engine->name);
            if (!row.unread.empty()) {
                left_out_.push_back({result, "not understood: " + row.unread});
                continue;
            }
            rows_.push_back(std::move(row));
        }
        if (rows_.empty())
            throw SpaceError("no result says how its engine was started" +
                             (left_out_.empty() ? std::string() : ": " + left_out_.front().reason));
    }

    /// Flags alone are of the only engine that has them all.
    [[nodiscard]] const Engine* only_engine_with(const std::vector<std::string>& words) const {
        std::vector<const Engine*> fitting;
        for (const Engine& engine : engines_) {
            const SeenRow row = seen_row(0, engine, commands_.read({words}, engine.name));
            if (row.unknown.empty() && row.unread.empty() && !words.empty())
                fitting.push_back(&engine);
        }
        return fitting.size() == 1 ? fitting.front() : nullptr;
    }

    /// The model of the first command, its other checkpoints as values of the quantization.
    void find_model() {
        for (const SeenRow& row : rows_)
            if (model_.empty() ||
                (!row.model.empty() && suffix_of(model_, row.model).value_or("") != ""))
                model_ = row.model;
        if (model_.empty()) model_ = model_of_texts();
        if (model_.empty()) throw SpaceError("no command names the model: --set model=NAME");
        std::vector<SeenRow> kept;
        for (SeenRow& row : rows_) {
            const std::string served = row.model.empty() ? model_ : row.model;
            const auto suffix = suffix_of(served, model_);
            if (!suffix) {
                left_out_.push_back({results_[row.index], "another model: " + served});
                continue;
            }
            row.variant = *suffix;
            if (!suffix->empty()) checkpoints_.emplace(*suffix, served);
            kept.push_back(std::move(row));
        }
        rows_ = std::move(kept);
    }
    [[nodiscard]] std::string model_of_texts() const {
        for (const GivenFact& given : request_.facts)
            if (given.name == "model") return given.value;
        for (const std::string& text : source_.texts)
            if (const auto model = model_in(text, catalogue_.all_models())) return *model;
        return "";
    }

    /// Adds what the engine set by itself, where its rules say so: else they would exclude what was
    /// measured.
    void complete_rows() {
        std::map<std::string, std::vector<std::size_t>> blocks;
        for (SeenRow& row : rows_) {
            const auto set = set_by_engine(*row.engine, row.values, version_of(*row.engine));
            if (!set) continue;
            add_settings(results_[row.index].arguments, *row.engine,
                         {{set->name, text_of(set->value)}});
            row.values[set->name] = set->value;
            blocks[row.engine->name + " runs with " + set->name + " = " + text_of(set->value) +
                   ", which the command does not say: " + set->because]
                .push_back(results_[row.index].index);
        }
        for (const auto& [what, which] : blocks)
            remarks_.push_back(numbered("block", which) + ": " + what);
    }

    void find_workloads() {
        std::vector<PublishedResult> placed;
        std::vector<std::size_t> of;  // index into results_
        for (const SeenRow& row : rows_) {
            placed.push_back(results_[row.index]);
            of.push_back(row.index);
        }
        groups_ = workload_groups(placed);
        for (WorkloadGroup& group : groups_)
            for (std::size_t& block : group.blocks) block = of[block];
        if (groups_.empty()) throw SpaceError("no result has figures");
        const auto wanted = [&](const WorkloadGroup& group) {
            return group.name == request_.workload ||
                   std::find(group.labels.begin(), group.labels.end(), request_.workload) !=
                       group.labels.end();
        };
        auto main = std::find_if(groups_.begin(), groups_.end(), wanted);
        if (!request_.workload.empty() && main == groups_.end())
            throw SpaceError("--workload " + request_.workload +
                             ": no such workload; there are:" + workloads_text());
        if (request_.workload.empty() && groups_.size() > 1)
            throw SpaceError(
                "the results are of several workloads; say with --workload which is searched:" +
                workloads_text());
        if (request_.workload.empty()) main = groups_.begin();
        std::rotate(groups_.begin(), main, main + 1);
    }
    [[nodiscard]] std::string workloads_text() const {
        std::string text;
        for (const WorkloadGroup& group : groups_)
            text += "\n  " + group.name + ": " + std::to_string(group.blocks.size()) +
                    (group.blocks.size() == 1 ? " result" : " results") + " (" +
                    Work(results_[group.blocks.front()]).text() + ")" +
                    (group.labels.empty() ? "" : ", printed as '" + group.labels.front() + "'");
        return text;
    }

    // ---------------------------------------------------------------------------------------------
    // YAML

    [[nodiscard]] std::string workload_yaml(WorkloadGroup& group) {
        const PublishedResult& first = results_[group.blocks.front()];
        const Work work(first);
        const auto whole = [&](double value) {
            const auto rounded = whole_number(std::round(value));
            if (!rounded)
                throw SpaceError("workload " + group.name +
                                 ": no such number of requests or tokens: " + text_of(value));
            return std::to_string(std::max<std::int64_t>(1, *rounded));
        };
        double requests = 0;
        bool agree = true;
        for (const std::size_t i : group.blocks) {
            const BenchmarkResult& figures = results_[i].result;
            const double sent = results_[i].planned_requests.value_or(
                figures.requested_requests.value_or(figures.successful_requests.value_or(0)));
            agree = agree && (requests == 0 || requests == sent);
            requests = std::max(requests, sent);
        }
        if (!agree)
            remarks_.push_back(
                "workload " + group.name +
                ": its results have different numbers of requests, so none is written");
        std::string known_as = lower_case(group.name + " " + first.dataset);
        const bool conversations = known_as.find("sharegpt") != std::string::npos;
        const bool equal =
            work.output_tokens && *work.output_tokens == std::floor(*work.output_tokens);
        std::string text = "{workload: " + group.name;
        if (conversations) text += ", use: sharegpt";
        else
            text +=
                ", dataset: {kind: random, input_tokens: " + whole(work.input_tokens.value_or(1)) +
                ", output_tokens: " + whole(work.output_tokens.value_or(1)) + "}";
        if (!conversations && !equal && work.output_tokens)
            remarks_.push_back(
                "workload " + group.name +
                ": its answers differ in length, and the results do not say how; the study has "
                "the mean (range_ratio is for you to add)");
        if ((agree || conversations) && requests > 0) text += ", requests: " + whole(requests);
        if (work.in_flight && *work.in_flight >= 1)
            text += ", arrival: {concurrency: " + whole(*work.in_flight) + "}";
        else if (work.rate && *work.rate > 0)
            text += ", arrival: {rate: " + text_of(Value(*work.rate)) + "}";
        text += ", ignore_eos: false, printed_as: [" + group.name;
        for (const std::string& label : group.labels)
            if (label != group.name) text += ", " + yaml_text(label);
        for (const std::size_t i : group.blocks) {
            results_[i].labels.insert(results_[i].labels.begin(), group.name);
            results_[i].sections = source_.results[i].sections;
        }
        return text + "]}";
    }

    /// What is searched: the rate that most of the searched workload's results have, the most
    /// telling first.
    [[nodiscard]] std::string rate_that_is_known() const {
        const std::vector<std::size_t>& blocks = groups_.front().blocks;
        std::string best;
        std::ptrdiff_t most = 0;
        for (const auto& [name, rate] : leading_rates) {
            const auto count =
                std::count_if(blocks.begin(), blocks.end(), [&, field = rate](std::size_t i) {
                    return (results_[i].result.*field).has_value();
                });
            if (count > most) best = name;
            most = std::max(most, count);
        }
        if (best.empty())
            throw SpaceError("workload " + groups_.front().name +
                             ": its results print no rate to search by (total tokens, output "
                             "tokens or requests per second)");
        return best;
    }

    [[nodiscard]] std::string yaml() {
        std::vector<const Engine*> used;
        std::vector<std::string> versions;
        for (const SeenRow& row : rows_)
            if (std::find(used.begin(), used.end(), row.engine) == used.end())
                used.push_back(row.engine);
        std::string text =
            "# SPDX-License-Identifier: Apache-2.0\n# Written by `autotune import --write-study` "
            "from results that others measured.\n";
        text += "study: " + yaml_text(name_) + "\nmodel: " + yaml_text(model_) + "\n";
        std::string hardware;
        for (const GivenFact& given : request_.facts)
            if (given.name == "hardware") hardware = given.value;
        const std::vector<HardwareSpec> known = catalogue_.all_hardware();
        for (const std::string& source_text : source_.texts)
            if (const auto found =
                    hardware.empty() ? hardware_in(source_text, known) : std::nullopt)
                hardware = found->name;
        if (!hardware.empty()) text += "hardware: " + yaml_text(hardware) + "\n";
        else
            remarks_.emplace_back(
                "the hardware is not known, so physics is not checked (--set hardware=NAME)");
        text += used.size() == 1 ? "engine: " + used.front()->name + "\n" : "engine: [";
        for (std::size_t i = 0; i < used.size() && used.size() > 1; ++i)
            text += (i > 0 ? ", " : "") + used[i]->name + (i + 1 == used.size() ? "]\n" : "");
        for (const Engine* engine : used)
            if (const std::string version = version_of(*engine); !version.empty())
                versions.push_back(engine->name + ": " + yaml_text(version));
        if (!versions.empty()) {
            text += "engine_versions: {";
            for (std::size_t i = 0; i < versions.size(); ++i)
                text += (i > 0 ? ", " : "") + versions[i];
            text += "}\n";
        }
        text += "workloads:\n  - " + workload_yaml(groups_.front()) + "\n";
        if (groups_.size() > 1) text += "report_workloads:\n";
        for (std::size_t i = 1; i < groups_.size(); ++i)
            text += "  - " + workload_yaml(groups_[i]) + "\n";
        const bool ratio =
            groups_.front().blocks.end() !=
            std::find_if(
                groups_.front().blocks.begin(), groups_.front().blocks.end(), [&](std::size_t i) {
                    return results_[i].planned_requests || results_[i].result.requested_requests;
                });
        text += "objective: {maximize: " + rate_that_is_known() +
                (ratio ? ", limits: [\"success_ratio >= 0.99\"]" : "") + "}\n";
        before_space_ = text;
        const std::string space = space_of_rows(rows_, checkpoints_, remarks_);
        text += space.empty() ? "space: {}\n" : "space:\n" + space;
        return text + after_space();
    }

    [[nodiscard]] std::string after_space() const {
        std::string text =
            "others: default\nstrategy: exhaustive\ndecision: significant\naudit: enforce\n";
        text += "evaluator: {replay: {table: " + yaml_text(name_ + ".csv") +
                ", unmeasured: exclude}}\n";
        return text;
    }

    const ResultSource& source_;
    const StudyRequest& request_;
    std::string name_;
    const Catalogue& catalogue_;
    std::vector<Engine> engines_;
    CommandReader commands_;
    std::vector<PublishedResult> results_;
    std::vector<SeenRow> rows_;
    std::vector<Unplaced> left_out_;
    std::string model_;
    std::map<std::string, std::string> checkpoints_;  ///< variant -> as it is served
    std::vector<WorkloadGroup> groups_;
    std::vector<std::string> remarks_;
    std::string before_space_;
};

/// Makes the first measured configuration with which the study can be set up its default.
bool starts_from_measured(const StudyWriter& writer, WrittenStudy& written, NewFile& study,
                          const Catalogue& catalogue) {
    for (const std::string& text : writer.with_measured_defaults()) {
        study.write(text);
        try {
            (void)set_up(load_study(study.path(), catalogue));
        } catch (const Error&) {
            continue;
        }
        written.yaml = text;
        written.remarks.emplace_back(
            "the engine's own default was not measured, so the first result that can be is the "
            "default");
        return true;
    }
    return false;
}

}  // namespace

GivenFact GivenFact::parse(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw SpaceError("--set: NAME=VALUE or FILE:NAME=VALUE wanted, got '" + text + "'");
    const auto colon = text.rfind(':', equals);
    GivenFact fact{colon == std::string::npos ? "" : text.substr(0, colon),
                   text.substr(colon == std::string::npos ? 0 : colon + 1),
                   text.substr(equals + 1)};
    fact.name.resize(fact.name.find('='));
    if (fact.name.empty())
        throw SpaceError("--set: NAME=VALUE or FILE:NAME=VALUE wanted, got '" + text + "'");
    return fact;
}

WrittenStudy write_study(const ResultSource& source, const StudyRequest& request,
                         const std::filesystem::path& file, const Catalogue& catalogue) {
    StudyWriter writer(source, request, file.stem().string(), catalogue);
    WrittenStudy written = writer.written();
    written.table = file.parent_path() / (file.stem().string() + ".csv");
    std::vector<PublishedResult> placed;
    const auto left = [&](const PublishedResult& result) {
        return std::any_of(writer.left_out().begin(), writer.left_out().end(),
                           [&](const Unplaced& one) { return one.result.index == result.index; });
    };
    for (const PublishedResult& result : writer.labelled())
        if (!left(result)) placed.push_back(result);
    NewFile study(file);  // it replaces nothing, and goes again where what is there does not replay
    NewFile table(written.table);
    study.write(written.yaml);
    written.imported = import_for_study(placed, load_study(file, catalogue));
    if (written.imported.rows == 0)
        throw SpaceError("no result is a row of the study" +
                         (written.imported.unplaced.empty()
                              ? std::string()
                              : ": " + written.imported.unplaced.front().reason));
    const std::vector<Unplaced>& unplaced = written.imported.unplaced;
    std::string why;
    const bool none = std::all_of(
        writer.searched().blocks.begin(), writer.searched().blocks.end(), [&](std::size_t i) {
            const auto found = std::find_if(
                unplaced.begin(), unplaced.end(),
                [&](const Unplaced& one) { return one.result.index == source.results[i].index; });
            if (found != unplaced.end()) why = found->reason;
            return found != unplaced.end();
        });
    if (none)
        throw SpaceError("no result of workload " + writer.searched().name +
                         " is a row of the study: " + why);
    table.write(written.imported.csv);
    try {
        (void)set_up(load_study(file, catalogue));
    } catch (const SpaceError&) {  // the engine's own default was not measured
        if (!starts_from_measured(writer, written, study, catalogue)) throw;
    }
    const std::vector<std::string> excluded =
        excluded_by_rules(placed, written.imported, set_up(load_study(file, catalogue)));
    written.remarks.insert(written.remarks.end(), excluded.begin(), excluded.end());
    study.keep();
    table.keep();
    written.imported.unplaced.insert(written.imported.unplaced.begin(), writer.left_out().begin(),
                                     writer.left_out().end());
    return written;
}

}  // namespace servetune
