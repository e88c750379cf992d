// SPDX-License-Identifier: Apache-2.0
#include "written_study.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/engine_value.hpp"
#include "import.hpp"
#include "plain_table.hpp"
#include "servetune/error.hpp"
#include "study_file/readers.hpp"
#include "study_file/yaml_text.hpp"
#include "workloads.hpp"

#include <nlohmann/json.hpp>

#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace servetune {
namespace {

using Tree = nlohmann::ordered_json;

/// One result with its command read.
struct SeenRow {
    std::size_t index = 0;  ///< of the results
    const Engine* engine = nullptr;
    std::string model{};                    ///< as written; empty: none
    std::map<std::string, Value> values{};  ///< parameter -> value
    std::map<std::string, Setting>
        unknown{};          ///< by a name made of a flag or variable that the engine file lacks
    std::string unread{};   ///< the first word that is neither
    std::string variant{};  ///< of the checkpoint; empty: the model itself

    [[nodiscard]] std::string quantization() const {
        const auto given = values.find("quantization");
        return !variant.empty() ? variant : given == values.end() ? "none" : text_of(given->second);
    }
};

std::string name_in_path(const std::string& path) {
    const std::string trimmed = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
    return trimmed.substr(trimmed.rfind('/') + 1);
}

/// What is left of a checkpoint's name behind the model's: `FP8` of `Qwen3-14B-FP8`; nothing where
/// it is another model.
std::optional<std::string> suffix_of(const std::string& checkpoint, const std::string& model) {
    const std::string name = lower_case(name_in_path(checkpoint)),
                      base = lower_case(name_in_path(model));
    if (name == base) return "";
    if (!name.starts_with(base) || name.size() <= base.size() + 1 ||
        std::string_view("-_.").find(name[base.size()]) == std::string_view::npos)
        return std::nullopt;
    const std::string rest = name.substr(base.size() + 1);
    for (const std::string_view word :
         {"fp8", "fp4", "int4", "int8", "awq", "gptq", "gguf", "bf16", "w4a16", "w8a8", "w8a16",
          "mxfp4", "quantized", "bnb", "4bit", "8bit"})
        if (rest.find(word) != std::string::npos) return rest;
    return std::nullopt;
}

/// What a command of `engine` says. Of parameters that share a flag the active one is set.
SeenRow seen_row(std::size_t index, const Engine& engine, const CommandSettings& command) {
    SeenRow row{.index = index, .engine = &engine, .model = command.model};
    const auto is_active = [&](const EngineParameter* declared) {
        const auto& conditions = declared->parameter.active_when;
        return all_of(conditions, [&](const Condition& condition) {
            const auto parent = row.values.find(condition.parent);
            return parent != row.values.end() && contains(condition.values, parent->second);
        });
    };
    for (const bool shared :
         {false, true})  // which of those that share a flag is active, the others say
        for (const Setting& setting : command.settings) {
            const auto& declared = setting.parameters;
            if (declared.empty() || shared != (declared.size() > 1)) continue;
            const auto active = find_if(declared, is_active);
            const EngineParameter& set = active == declared.end() ? *declared.front() : **active;
            const Value taken = normalized_value(set, value_of(setting.value));
            if (is_unset(taken)) row.values.erase(set.parameter.name);  // another word for no flag
            else row.values[set.parameter.name] = taken;
        }
    for (const Setting& setting : command.settings) {
        const bool several = setting.kind == Setting::Kind::flag &&
                             setting.words.size() > 2;  // a parameter has one value
        std::string name;
        for (const char c : setting.name)
            if (!name.empty() || c != '-')
                name += std::isalnum(static_cast<unsigned char>(c)) != 0
                            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                            : '_';
        if (setting.kind == Setting::Kind::unread || several)
            row.unread = row.unread.empty() ? setting.text() : row.unread;
        else if (setting.kind == Setting::Kind::flag || setting.kind == Setting::Kind::variable)
            row.unknown[name] = setting;
    }
    return row;
}

class StudyWriter {
public:
    StudyWriter(const ResultSource& source, const StudyRequest& request, const Catalogue& catalogue)
        : source_(source),
          request_(request),
          engines_(catalogue.engines()),
          commands_(engines_, catalogue.root()),
          results_(source.results) {
        for (std::size_t i = 0; i < results_.size(); ++i)
            if (std::string why = read_command(i); !why.empty())
                left_out_.push_back({results_[i], std::move(why)});
        if (rows_.empty())
            throw SpaceError("no result says how its engine was started" +
                             (left_out_.empty() ? std::string() : ": " + left_out_.front().reason));
        find_model();
        find_workloads();
        describe_workloads();
    }

    [[nodiscard]] const std::vector<Unplaced>& left_out() const { return left_out_; }
    [[nodiscard]] const WorkloadGroup& searched() const { return groups_.front(); }
    [[nodiscard]] std::vector<std::string>& remarks() { return remarks_; }

    /// The results that are left, each with its workload as the first label and a command.
    [[nodiscard]] std::vector<PublishedResult> placed() const {
        std::vector<PublishedResult> placed;
        for (const SeenRow& row : rows_) placed.push_back(results_[row.index]);
        std::sort(placed.begin(), placed.end(),
                  [](const auto& a, const auto& b) { return a.index < b.index; });
        return placed;
    }

    /// The rows that may be the default: of the first engine and the searched workload, those with
    /// the fewest settings first.
    [[nodiscard]] std::vector<const SeenRow*> starts() const {
        std::vector<const SeenRow*> found;
        const std::vector<std::size_t>& blocks = searched().blocks;
        const Engine* engine = results_engine(blocks.front());
        for (const SeenRow* row : rows_of(engine))
            if (contains(blocks, row->index)) found.push_back(row);
        const auto settings = [](const SeenRow* row) {
            return row->values.size() + row->unknown.size() + (row->variant.empty() ? 0 : 1);
        };
        std::stable_sort(found.begin(), found.end(), [&](const SeenRow* a, const SeenRow* b) {
            return settings(a) < settings(b);
        });
        return found;
    }

    /// The study with a measured row as its default. `table`: beside it.
    [[nodiscard]] Tree tree(const SeenRow& start, const std::string& name) const {
        std::vector<const Engine*> used{start.engine};
        for (const SeenRow& row : rows_)
            if (!contains(used, row.engine)) used.push_back(row.engine);
        Tree study{{"study", name}, {"model", model_}};
        if (const std::string hardware = fact_of_all("hardware"); !hardware.empty())
            study["hardware"] = hardware;
        Tree versions = Tree::object(), names = Tree::array();
        for (const Engine* engine : used) {
            names.push_back(engine->name);
            if (const std::string version = version_of(*engine); !version.empty())
                versions[engine->name] = version;
        }
        study["engine"] = used.size() == 1 ? names.front() : names;
        if (!versions.empty()) study["engine_versions"] = versions;
        study["workloads"] = Tree::array({workloads_.front()});
        if (workloads_.size() > 1)
            study["report_workloads"] = std::vector<Tree>(workloads_.begin() + 1, workloads_.end());
        const std::vector<std::size_t>& blocks = searched().blocks;
        study["objective"]["maximize"] = rate_that_is_known();
        if (any_of(blocks, [&](std::size_t i) {
                return results_[i].result.requested_requests.has_value();
            }))
            study["objective"]["limits"] = Tree::array({"success_ratio >= 0.99"});
        study["space"] = space(start, used);
        study["others"] = "default";
        study["strategy"] = "exhaustive";
        study["decision"] = "significant";
        study["audit"] = "enforce";
        study["evaluator"]["replay"] = {{"table", name + ".csv"}, {"unmeasured", "exclude"}};
        return study;
    }

    /// What is assumed of a study that was written.
    void remark_on_tree() {
        if (fact_of_all("hardware").empty())
            remarks_.emplace_back(
                "the hardware is not known, so physics is not checked (--set hardware=NAME)");
        std::set<std::string> added;
        for (const SeenRow& row : rows_)
            for (const auto& [name, flag] : row.unknown)
                if (added.insert(row.engine->name + name).second)
                    remarks_.push_back(row.engine->name + ": " + flag.name +
                                       " is not in the engine file; the study adds it");
    }

private:
    // ---------------------------------------------------------------------------------------------
    // facts by hand

    [[nodiscard]] std::map<std::string, std::string> facts_for(std::size_t index) const {
        std::map<std::string, std::string> facts;
        for (const GivenFact& fact : request_.facts)
            if (fact.file.empty() || fact.file == source_.files[index] ||
                fact.file == name_in_path(source_.files[index]))
                facts[fact.name] = fact.value;
        return facts;
    }
    [[nodiscard]] std::string fact(std::size_t index, const std::string& name) const {
        const auto facts = facts_for(index);
        const auto found = facts.find(name);
        return found == facts.end() ? "" : found->second;
    }
    [[nodiscard]] std::string fact_of_all(const std::string& name) const {
        for (const GivenFact& given : request_.facts)
            if (given.name == name) return given.value;
        return "";
    }
    [[nodiscard]] std::string version_of(const Engine& engine) const {
        std::string version;
        for (const SeenRow* row : rows_of(&engine)) {
            std::string given = fact(row->index, engine.name + ".version");
            if (given.empty()) given = fact(row->index, "version");
            if (!version.empty() && !given.empty() && given != version)
                throw SpaceError("--set version: a study has one version of " + engine.name +
                                 ", and its results are of " + version + " and " + given +
                                 "; write a study of each");
            if (!given.empty()) version = given;
        }
        return version;
    }

    // ---------------------------------------------------------------------------------------------
    // rows

    [[nodiscard]] const Engine* engine_called(const std::string& name) const {
        for (const Engine& engine : engines_)
            if (lower_case(engine.name) == lower_case(name)) return &engine;
        return nullptr;
    }
    [[nodiscard]] std::vector<const SeenRow*> rows_of(const Engine* engine) const {
        std::vector<const SeenRow*> rows;
        for (const SeenRow& row : rows_)
            if (row.engine == engine) rows.push_back(&row);
        return rows;
    }
    [[nodiscard]] const Engine* results_engine(std::size_t result) const {
        return find_if(rows_, [&](const SeenRow& row) { return row.index == result; })->engine;
    }

    /// Adds the row of a result; else says why there is none.
    [[nodiscard]] std::string read_command(std::size_t i) {
        PublishedResult& result = results_[i];
        auto by_hand = facts_for(i);
        const std::string given = fact(i, "engine");
        std::erase_if(by_hand, [](const auto& fact) {
            return fact.first == "model" || fact.first == "hardware" || fact.first == "engine" ||
                   fact.first == "version" || fact.first.ends_with(".version");
        });
        const bool from_settings = result.arguments_unknown && result.not_recognised.empty();
        const Engine* engine = engine_called(!given.empty()           ? given
                                             : !result.engine.empty() ? result.engine
                                             : from_settings          ? result.tool
                                                                      : "");
        if (!given.empty() && engine == nullptr)
            throw SpaceError("--set engine=" + given + ": no such engine");
        if (from_settings && engine != nullptr && (!by_hand.empty() || !given.empty())) {
            result.arguments_unknown = false;
            result.engine = lower_case(engine->name);
        }
        if (std::string why = why_no_command(result); !why.empty())
            return why + (from_settings ? " (--set engine=..., --set NAME=VALUE)" : "");
        if (engine != nullptr) add_settings(result.arguments, *engine, by_hand);
        const std::vector<std::string> words = shell_words(result.arguments);
        const CommandSettings read = commands_.read({words});
        if (read.start == CommandSettings::Start::launcher)
            engine = engine_called(read.engine->name);
        if (engine == nullptr) return "which engine it is is not said (--set engine=...)";
        SeenRow row = seen_row(i, *engine, commands_.read({words}, engine->name));
        if (row.model.empty()) row.model = fact(i, "model");
        if (row.model.empty()) row.model = result.model;
        result.engine = lower_case(engine->name);
        if (!row.unread.empty()) return "not understood: " + row.unread;
        rows_.push_back(std::move(row));
        return "";
    }

    /// The model of the first command, its other checkpoints as values of the quantization.
    void find_model() {
        for (const SeenRow& row : rows_)
            if (model_.empty() ||
                (!row.model.empty() && suffix_of(model_, row.model).value_or("") != ""))
                model_ = row.model;
        if (model_.empty()) throw SpaceError("no command names the model: --set model=NAME");
        std::erase_if(rows_, [&](SeenRow& row) {
            const std::string served = row.model.empty() ? model_ : row.model;
            const auto suffix = suffix_of(served, model_);
            if (!suffix) left_out_.push_back({results_[row.index], "another model: " + served});
            else if (!suffix->empty()) checkpoints_.emplace(*suffix, served);
            row.variant = suffix.value_or("");
            return !suffix;
        });
    }

    // ---------------------------------------------------------------------------------------------
    // workloads

    void find_workloads() {
        std::vector<PublishedResult> placed;
        for (const SeenRow& row : rows_) placed.push_back(results_[row.index]);
        groups_ = workload_groups(placed);
        for (WorkloadGroup& group : groups_)
            for (std::size_t& block : group.blocks) block = rows_[block].index;
        const auto refuse = [&](const std::string& why) {
            std::string text = why;
            for (const WorkloadGroup& group : groups_)
                text += "\n  " + group.name + ": " + std::to_string(group.blocks.size()) +
                        (group.blocks.size() == 1 ? " result" : " results") + " (" +
                        Work(results_[group.blocks.front()]).text() + ")" +
                        (group.label.empty() ? "" : ", printed as '" + group.label + "'");
            throw SpaceError(text);
        };
        auto main = groups_.begin();
        if (request_.workload.empty()) {
            if (groups_.size() > 1)
                refuse(
                    "the results are of several workloads; say with --workload which is searched:");
        } else
            main = find_if(groups_, [&](const WorkloadGroup& group) {
                return group.name == request_.workload || group.label == request_.workload;
            });
        if (main == groups_.end())
            refuse("--workload " + request_.workload + ": no such workload; there are:");
        std::rotate(groups_.begin(), main, main + 1);
    }

    void describe_workloads() {
        for (const WorkloadGroup& group : groups_) {
            const PublishedResult& first = results_[group.blocks.front()];
            const Work work(first);
            const auto whole = [&](double value) {
                const auto rounded = whole_number(std::round(value));
                if (!rounded)
                    throw SpaceError("workload " + group.name +
                                     ": no such number of requests or tokens: " + text_of(value));
                return std::max<std::int64_t>(1, *rounded);
            };
            std::set<double> requests;
            for (const std::size_t i : group.blocks) {
                const BenchmarkResult& figures = results_[i].result;
                requests.insert(
                    figures.requested_requests.value_or(figures.successful_requests.value_or(0)));
                results_[i].labels.insert(results_[i].labels.begin(), group.name);
            }
            Tree workload;
            workload["workload"] = group.name;
            const bool conversations =
                lower_case(group.name + " " + first.dataset).find("sharegpt") != std::string::npos;
            if (conversations) workload["use"] = "sharegpt";
            else
                workload["dataset"] = {{"kind", "random"},
                                       {"input_tokens", whole(work.input_tokens.value_or(1))},
                                       {"output_tokens", whole(work.output_tokens.value_or(1))}};
            if ((requests.size() == 1 || conversations) && *requests.rbegin() > 0)
                workload["requests"] = whole(*requests.rbegin());
            if (work.in_flight && *work.in_flight >= 1)
                workload["arrival"]["concurrency"] = whole(*work.in_flight);
            else if (work.rate && *work.rate > 0) workload["arrival"]["rate"] = *work.rate;
            workload["ignore_eos"] = false;
            workload["printed_as"] = Tree::array({group.name});
            if (!group.label.empty() && group.label != group.name)
                workload["printed_as"].push_back(group.label);
            workloads_.push_back(std::move(workload));
        }
    }

    /// What is searched: the rate that most of the searched workload's results have.
    [[nodiscard]] std::string rate_that_is_known() const {
        std::string best;
        std::size_t most = 0;
        for (const auto& [name, rate] : leading_rates) {
            std::size_t count = 0;
            for (const std::size_t i : searched().blocks)
                count += (results_[i].result.*rate).has_value() ? 1 : 0;
            if (count > most) best = name;
            most = std::max(most, count);
        }
        if (best.empty())
            throw SpaceError("workload " + searched().name +
                             ": its results print no rate to search by (total tokens, output "
                             "tokens or requests per second)");
        return best;
    }

    // ---------------------------------------------------------------------------------------------
    // space

    static void add_level(std::vector<Value>& levels, const Value& value) {
        if (!contains(levels, value)) levels.push_back(value);
    }

    [[nodiscard]] Tree space(const SeenRow& start, const std::vector<const Engine*>& used) const {
        Tree space = Tree::object();
        // One quantization for all engines: by flag, or another checkpoint.
        std::vector<Value> quantizations{std::string("none")};
        for (const SeenRow& row : rows_) add_level(quantizations, row.quantization());
        if (quantizations.size() > 1) {
            space["quantization"] = choice_tree(quantizations, Value(start.quantization()));
            for (const auto& [variant, served] : checkpoints_)
                space["quantization"]["checkpoints"][variant] = served;
        }
        for (const Engine* engine : used) {
            const std::vector<const SeenRow*> rows = rows_of(engine);
            const SeenRow& own = start.engine == engine ? start : *rows.front();
            const std::string prefix = used.size() > 1 ? engine->name + "." : "";
            // Parents before what depends on them.
            for (const EngineParameter& declared : engine->parameters)
                if (declared.parameter.concept_name != "quantization")
                    if (Tree tree = parameter_tree(declared.parameter, rows, own); !tree.is_null())
                        space[prefix + declared.parameter.name] = std::move(tree);
            for (const SeenRow* row : rows)
                for (const auto& [name, flag] : row->unknown)
                    if (!space.contains(prefix + name))
                        space[prefix + name] = flag_tree(name, flag, rows, own);
        }
        return space;
    }

    static Tree parameter_tree(const Parameter& parameter, const std::vector<const SeenRow*>& rows,
                               const SeenRow& start) {
        const std::string& name = parameter.name;
        std::vector<Value> levels;
        bool missing = false;
        for (const SeenRow* row : rows)
            if (const auto found = row->values.find(name); found != row->values.end())
                add_level(levels, found->second);
            else missing = true;
        if (levels.empty()) return nullptr;
        // What is only active under others' values must be written whenever it is.
        const bool conditional = !parameter.active_when.empty() && !parameter.offers_unset;
        const bool text = std::holds_alternative<TextDomain>(parameter.domain);
        if (levels.size() == 1 && (!missing || text || conditional))
            return value_tree(levels.front());
        if (missing && !conditional) add_level(levels, parameter.default_value);
        const auto found = start.values.find(name);
        return choice_tree(levels, found != start.values.end() ? std::optional(found->second)
                                   : conditional               ? std::nullopt
                                                 : std::optional(parameter.default_value));
    }

    /// A flag or variable that the engine file does not have.
    static Tree flag_tree(const std::string& name, const Setting& flag,
                          const std::vector<const SeenRow*>& rows, const SeenRow& start) {
        std::vector<Value> levels;
        for (const SeenRow* row : rows) {
            const auto found = row->unknown.find(name);
            add_level(levels,
                      found == row->unknown.end() ? Value() : value_of(found->second.value));
        }
        Tree tree;
        tree[flag.kind == Setting::Kind::variable ? "env" : "flag"] = flag.name;
        const auto own = start.unknown.find(name);
        if (flag.alone) {
            tree["bool"] = Tree::object();
            tree["default"] = own != start.unknown.end();
            return tree;
        }
        tree.update(choice_tree(
            levels, own == start.unknown.end() ? Value() : value_of(own->second.value)));
        return tree;
    }

    const ResultSource& source_;
    const StudyRequest& request_;
    std::vector<Engine> engines_;
    CommandReader commands_;
    std::vector<PublishedResult> results_;
    std::vector<SeenRow> rows_;
    std::vector<Unplaced> left_out_;
    std::string model_;
    std::map<std::string, std::string> checkpoints_;  ///< variant -> as it is served
    std::vector<WorkloadGroup> groups_;               ///< the searched one first
    std::vector<Tree> workloads_;
    std::vector<std::string> remarks_;
};

/// The rules that a result breaks, which is then measured and not searched.
std::vector<std::string> rules_broken(const PublishedResult& result, const StudyFile& study) {
    const SearchSpace space(study.composition->parameters(), study.composition->constraints());
    const CommandReader commands(study.composition->engines(), study.source.search_spaces);
    const ReadCommand read = read_command(result, *study.composition, commands, study.model);
    return space.violations(space.completed(read.parsed.values));
}

}  // namespace

GivenFact GivenFact::parse(const std::string& text) {
    const auto equals = std::min(text.find('='), text.size());
    const auto colon = equals == 0 ? std::string::npos : text.rfind(':', equals - 1);
    const std::size_t name = colon == std::string::npos ? 0 : colon + 1;
    if (equals == text.size() || name >= equals)
        throw SpaceError("--set: NAME=VALUE or FILE:NAME=VALUE wanted, got '" + text + "'");
    return {colon == std::string::npos ? "" : text.substr(0, colon),
            text.substr(name, equals - name), text.substr(equals + 1)};
}

WrittenStudy write_study(const ResultSource& source, const StudyRequest& request,
                         const std::filesystem::path& file, const Catalogue& catalogue) {
    StudyWriter writer(source, request, catalogue);
    writer.remark_on_tree();
    const std::vector<PublishedResult> placed = writer.placed();
    NewFile study(file);  // it replaces nothing, and goes again where what is there does not replay
    WrittenStudy written;
    written.table = file.parent_path() / (file.stem().string() + ".csv");
    NewFile table(written.table);
    const auto write = [&](const SeenRow& start) {
        written.yaml =
            "# SPDX-License-Identifier: Apache-2.0\n# Written by `autotune import --write-study` "
            "from results that others measured.\n" +
            yaml_document(writer.tree(start, file.stem().string()));
        study.write(written.yaml);
        return load_study(file, catalogue);
    };
    const std::vector<const SeenRow*> starts = writer.starts();
    StudyFile loaded = write(*starts.front());
    written.imported = import_for_study(placed, loaded);
    std::map<std::size_t, std::string> why_not;  // result -> why it may not be the default
    for (const Unplaced& one : written.imported.unplaced) why_not[one.result.index] = one.reason;
    for (const PublishedResult& result : placed)
        if (const std::vector<std::string> rules = rules_broken(result, loaded);
            !rules.empty() && why_not.emplace(result.index, rules.front()).second)
            writer.remarks().push_back(
                "block " + std::to_string(result.index) +
                " is in the table, and the study does not search it: " + rules.front());
    const auto index_of = [&](const SeenRow* row) { return source.results[row->index].index; };
    const auto first =
        find_if(starts, [&](const SeenRow* row) { return !why_not.contains(index_of(row)); });
    if (first == starts.end())
        throw SpaceError("no result of workload " + writer.searched().name +
                         " is a row of the study: " + why_not.at(index_of(starts.front())));
    if (first != starts.begin()) loaded = write(**first);
    writer.remarks().push_back("the default is block " + std::to_string(index_of(*first)) +
                               ", the one with the fewest settings");
    table.write(written.imported.csv);
    (void)set_up(std::move(loaded));  // what is left behind can be run
    study.keep();
    table.keep();
    written.remarks = writer.remarks();
    written.imported.unplaced.insert(written.imported.unplaced.begin(), writer.left_out().begin(),
                                     writer.left_out().end());
    return written;
}

}  // namespace servetune
