// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"

#include "commands.hpp"
#include "output.hpp"
#include "templates.hpp"

#include "base/text.hpp"
#include "handover/artefact.hpp"
#include "servetune/study_file.hpp"
#include "study_file/schema.hpp"
#include "study_file/yaml.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>

namespace autotune {
namespace {

/// The members that options set, by the options' names.
using Targets = std::map<std::string, OptionTarget>;

/// `--api-key` for the member `api_key`.
std::string option_of(std::string member) {
    std::replace(member.begin(), member.end(), '_', '-');
    return "--" + member;
}

/// The option that is called like its member of `a`.
#define OPTION(member) \
    { option_of(#member), &a.member }

Targets joined_targets(Targets first, Targets more) {
    more.merge(first);
    return more;
}

/// Those of all commands on a study, and more.
Targets of_study(StudyArguments& a, Targets more) {
    return joined_targets({{"STUDY", &a.study}, OPTION(directory), OPTION(strategy), OPTION(json)},
                          std::move(more));
}

Targets targets_of(RunArguments& a) {
    return of_study(a, {OPTION(trials),
                        {"--for", &a.seconds},
                        OPTION(learn_from),
                        OPTION(suggest),
                        OPTION(accept_changes),
                        OPTION(quiet),
                        OPTION(json_lines),
                        OPTION(dry_run),
                        OPTION(view)});
}

Targets targets_of(InitArguments& a) {
    return {OPTION(preset),   OPTION(recipes), OPTION(engine),  OPTION(model),
            OPTION(hardware), OPTION(gpus),    OPTION(traffic), OPTION(concurrency),
            OPTION(goal),     OPTION(budget),  OPTION(attach),  OPTION(as),
            OPTION(image),    OPTION(output),  OPTION(yes),     OPTION(force)};
}

Targets targets_of(ValidateArguments& a) {
    return of_study(a, {{"!--no-installed", &a.ask_installed}});
}

Targets targets_of(StatusArguments& a) { return of_study(a, {OPTION(rescue)}); }

Targets targets_of(ViewArguments& a) { return of_study(a, {OPTION(port)}); }

Targets targets_of(ReportArguments& a) { return of_study(a, {OPTION(html)}); }

Targets targets_of(ExplainArguments& a) {
    return of_study(a, {OPTION(why_not), OPTION(trial), OPTION(learn_from)});
}

Targets targets_of(AskTellArguments& a) {
    return of_study(a, {{"SPACE", &a.study}, OPTION(accept_changes)});
}

Targets targets_of(CompareArguments& a) {
    return {{"A", &a.study},   {"B", &a.other}, {"--set", &a.settings}, OPTION(results),
            OPTION(against),   OPTION(metric),  OPTION(pairs),          OPTION(margin),
            OPTION(directory), OPTION(gate),    OPTION(json),           OPTION(quiet)};
}

Targets targets_of(RecommendArguments& a) {
    return of_study(a, {OPTION(as), OPTION(output), OPTION(host), OPTION(port), OPTION(image),
                        OPTION(gpus), OPTION(into), OPTION(check), OPTION(at)});
}

Targets targets_of(ServeArguments& a) {
    return of_study(a, {OPTION(host), OPTION(port), OPTION(restarts)});
}

Targets targets_of(WatchArguments& a) {
    return of_study(a, {OPTION(url),
                        {"--interval", &a.interval_seconds},
                        {"--for", &a.for_seconds},
                        OPTION(once),
                        OPTION(json_lines),
                        {"--api-key-env", &a.api_key_environment}});
}

Targets targets_of(ExportArguments& a) {
    return of_study(a, {{"--as,--format", &a.format}, OPTION(output)});
}

Targets targets_of(RenderArguments& a) {
    return of_study(a, {{"--set", &a.settings}, OPTION(random), OPTION(seed)});
}

Targets targets_of(McpArguments& a) { return {OPTION(directory)}; }

Targets targets_of(LoadTestArguments& a) {
    return {OPTION(url),
            {"--replica", &a.replicas},
            OPTION(model),
            OPTION(workload),
            OPTION(requests),
            OPTION(burstiness),
            OPTION(seed),
            OPTION(salt),
            OPTION(ignore_eos),
            OPTION(completions),
            {"!--no-stream", &a.stream},
            {"--api-key-env", &a.api_key_environment},
            {"--header", &a.headers},
            OPTION(extra_body),
            OPTION(certificates),
            OPTION(loops),
            {"--request-timeout", &a.request_timeout_seconds},
            {"--stall-timeout", &a.stall_timeout_seconds},
            OPTION(hardware),
            OPTION(facts_of),
            OPTION(devices),
            OPTION(quiet),
            OPTION(json),
            OPTION(save)};
}

Targets targets_of(BenchArguments& a) {
    return joined_targets(targets_of(static_cast<LoadTestArguments&>(a)),
                          {OPTION(rate),
                           OPTION(concurrency),
                           {"--duration", &a.duration_seconds},
                           OPTION(warmup),
                           {"--ttft-limit", &a.ttft_limit_seconds},
                           {"--tpot-limit", &a.tpot_limit_seconds},
                           {"--latency-limit", &a.latency_limit_seconds},
                           OPTION(records)});
}

Targets targets_of(CapacityArguments& a) {
    return joined_targets(
        targets_of(static_cast<LoadTestArguments&>(a)),
        {{"--limit", &a.limits}, OPTION(concurrency), OPTION(from), OPTION(to), OPTION(sweep)});
}

Targets targets_of(AuditArguments& a) {
    return {{"FILE", &a.files}, OPTION(hardware), OPTION(model), OPTION(study), OPTION(json)};
}

Targets targets_of(ImportArguments& a) {
    return {{"DOCUMENT", &a.documents},
            OPTION(study),
            OPTION(command),
            OPTION(output),
            OPTION(write_study),
            OPTION(objective),
            {"--parameter", &a.parameters},
            OPTION(write_workload),
            {"--window", &a.window_seconds},
            OPTION(json)};
}

Targets targets_of(SuggestArguments& a) {
    return {{"MODEL", &a.model}, OPTION(hardware), OPTION(engine), OPTION(json)};
}

Targets targets_of(SimulateArguments& a) {
    return of_study(a, {OPTION(hardware), OPTION(configurations), OPTION(top)});
}

Targets targets_of(WordArguments& a) {
    return {{"NAME", &a.word},  {"COMMAND", &a.word}, {"KIND", &a.word},
            {"SHELL", &a.word}, OPTION(json),         OPTION(markdown)};
}

#undef OPTION

/// What `templates/commands.in` says, without the members that the options set.
struct CommandTexts {
    std::vector<CommandRow> commands{};
    std::vector<std::pair<int, std::string>> exit_codes{};
    std::map<std::string, std::string> instead{};  ///< by the option or command that is gone
};

constexpr std::array<std::pair<OptionBounds::Kind, std::string_view>, 4> bound_words{
    {{OptionBounds::Kind::positive, "positive"},
     {OptionBounds::Kind::positive_or_inf, "positive_or_inf"},
     {OptionBounds::Kind::share, "share"},
     {OptionBounds::Kind::time, "time"}}};

/// `words`: the option's names, then what holds of it.
OptionRow option_row(const std::vector<std::string>& words, std::string help) {
    OptionRow row{.names = words.front(), .help = std::move(help)};
    for (const std::string& word : std::span(words).subspan(1)) {
        const auto equals = std::min(word.find('='), word.size());
        const std::string name = word.substr(0, equals);
        const std::string value = word.substr(std::min(equals + 1, word.size()));
        if (name == "must") row.required = true;
        else if (name == "commas") row.list = true;
        else if (name == "many") row.many = true;
        else if (name == "input") row.input = true;
        else if (name == "named") row.value = value;
        else if (name == "of") row.words = parts_of(value, ',');
        else if (name == "alone") row.if_alone = value;
        else if (name == "with") row.needs = parts_of(value, ',');
        else if (name == "without") row.excludes = parts_of(value, ',');
        else if (name == "seed")
            row.bounds = {OptionBounds::Kind::integer, 0,
                          std::numeric_limits<std::uint64_t>::max()};
        else if (name == "at_least") row.bounds = {OptionBounds::Kind::integer, std::stoull(value)};
        else if (name == "between")
            row.bounds = {OptionBounds::Kind::integer, std::stoull(value),
                          std::stoull(value.substr(value.find(',') + 1))};
        else row.bounds.kind = named_in(bound_words, name).value();
    }
    return row;
}

CommandTexts read_command_texts() {
    CommandTexts result;
    std::map<std::string, std::vector<OptionRow>> shared;
    std::vector<OptionRow>* rows = nullptr;
    std::string group;
    for (const std::string& line : parts_of(servetune::commands_in.text, '\n')) {
        if (line.empty() || line.starts_with('#')) continue;
        const auto bar = std::min(line.find(" | "), line.size());
        const std::string begin(trimmed(line.substr(0, bar)));
        const std::string text = line.substr(std::min(bar + 3, line.size()));
        const std::vector<std::string> words = words_of(begin);
        const std::string& first = words.front();
        if (line.starts_with(' ') && first.starts_with('+')) {
            const std::vector<OptionRow>& more = shared.at(first);
            rows->insert(rows->end(), more.begin(), more.end());
        } else if (line.starts_with(' ')) rows->push_back(option_row(words, text));
        else if (line.starts_with('[')) group = line.substr(1, line.size() - 2);
        else if (line.starts_with('+')) rows = &shared[line];
        else if (first == "exit") result.exit_codes.emplace_back(std::stoi(words[1]), text);
        else if (first == "gone") result.instead[words[1]] = text;
        else rows = &result.commands.emplace_back(CommandRow{begin, group, text, {}, {}}).options;
    }
    return result;
}

const CommandTexts& command_texts() {
    static const CommandTexts all = read_command_texts();
    return all;
}

class Binder {
public:
    explicit Binder(std::vector<CommandRow>& all) : all_(all) {}

    /// Makes the command's arguments, which its options set, and gives them to `run`.
    template <class Arguments>
    void bind(const char* name, int (*run)(const Arguments&)) {
        const auto arguments = std::make_shared<Arguments>();
        CommandRow& command =
            *find_if(all_, [&](const CommandRow& one) { return one.name == name; });
        command.run = [=] { return run(*arguments); };
        if (command.options.empty()) return;
        const Targets targets = targets_of(*arguments);
        for (OptionRow& row : command.options) {
            row.target = targets.at(row.names);
            if (row.names == "--strategy") row.words = strategy_names();
            if (row.names == "--as" && row.words.empty()) row.words = artefact_kinds();
            if (row.names == "COMMAND") row.words = names_in(all_);
        }
    }

private:
    std::vector<CommandRow>& all_;
};

int printed(const std::string& text) {
    put_text(stdout, text);
    return done;
}

}  // namespace

std::string instead_of(const std::string& gone) {
    const auto* found = entry_in(command_texts().instead, gone);
    return found == nullptr ? "" : *found;
}

const std::vector<std::pair<int, std::string>>& exit_codes() { return command_texts().exit_codes; }

std::vector<CommandRow> commands() {
    std::vector<CommandRow> all = command_texts().commands;
    Binder binder(all);
    binder.bind<WordArguments>("demo", [](const WordArguments&) { return demo(); });
    binder.bind<WordArguments>("doctor", [](const WordArguments& a) { return doctor(a.json); });
    binder.bind("init", init);
    binder.bind("validate", validate);
    binder.bind("run", run);
    binder.bind("status", status);
    binder.bind("view", view);
    binder.bind("report", report);
    binder.bind("explain", explain);
    binder.bind("ask-tell", ask_tell);
    binder.bind("compare", compare);
    binder.bind("recommend", recommend_as);
    binder.bind("serve", serve);
    binder.bind("watch", watch);
    binder.bind("export", export_trials);
    binder.bind("render", render);
    binder.bind("mcp", mcp);
    binder.bind("bench", bench);
    binder.bind("capacity", capacity);
    binder.bind("audit", audit);
    binder.bind("import", import_document);
    binder.bind("suggest", suggest);
    binder.bind("simulate", simulate);
    binder.bind("engines", engines);
    binder.bind<WordArguments>("schema",
                               [](const WordArguments& a) { return printed(schema_text(a.word)); });
    binder.bind<WordArguments>("list", [](const WordArguments& a) {
        return printed(fmt::format("{}\n", fmt::join(shipped(a.word), "\n")));
    });
    binder.bind<WordArguments>(
        "help", [](const WordArguments& a) { return printed(help_text(commands(), a.word)); });
    binder.bind<WordArguments>(
        "completion", [](const WordArguments& a) { return printed(completion_script(a.word)); });
    binder.bind<WordArguments>("man", [](const WordArguments& a) {
        return printed(a.markdown ? markdown_page(commands()) : manual_page(commands()));
    });
    return all;
}

std::vector<std::string> OptionRow::spellings() const {
    std::vector<std::string> result;
    if (by_place()) return result;
    const std::string_view all = std::string_view(names).substr(names.front() == '!' ? 1 : 0);
    for (std::size_t begin = 0; begin <= all.size();) {
        const std::size_t end = std::min(all.find(',', begin), all.size());
        result.emplace_back(all.substr(begin, end - begin));
        begin = end + 1;
    }
    return result;
}

bool OptionRow::takes_several() const {
    return std::visit(
        [](auto* to) {
            using Value = std::remove_pointer_t<decltype(to)>;
            return std::is_same_v<Value, std::vector<std::string>> ||
                   std::is_same_v<Value, std::vector<double>> ||
                   std::is_same_v<Value, std::vector<fs::path>>;
        },
        target);
}

std::string OptionRow::value_text() const {
    if (!takes_value()) return "";
    std::string text = value;
    if (text.empty() && !words.empty()) text = fmt::format("{}", fmt::join(words, "|"));
    const bool is_file = std::holds_alternative<fs::path*>(target) ||
                         std::holds_alternative<std::optional<fs::path>*>(target) ||
                         std::holds_alternative<std::vector<fs::path>*>(target);
    if (text.empty())
        text = bounds.kind == OptionBounds::Kind::time      ? "TIME"
               : bounds.kind == OptionBounds::Kind::integer ? "N"
               : bounds.kind != OptionBounds::Kind::any     ? "NUMBER"
               : is_file                                    ? "FILE"
                                                            : "VALUE";
    if (list) text += ",...";
    return if_alone ? "[" + text + "]" : text;
}

std::string OptionRow::described() const {
    std::string text = help;
    constexpr std::uint64_t worth_saying = 1'000'000;
    if (bounds.kind == OptionBounds::Kind::integer && bounds.most < worth_saying)
        text += fmt::format(", {} to {}", bounds.least, bounds.most);
    if (bounds.kind == OptionBounds::Kind::share) text += ", 0 to 1";
    const std::string usual = std::visit(
        [](auto* to) -> std::string {
            using Value = std::remove_pointer_t<decltype(to)>;
            if constexpr (std::is_same_v<Value, std::string>) return *to;
            else if constexpr (std::is_same_v<Value, fs::path>) return to->string();
            else if constexpr (std::is_same_v<Value, bool> || !std::is_arithmetic_v<Value>)
                return "";
            else return *to == Value{} ? "" : fmt::format("{}", *to);
        },
        target);
    if (!usual.empty())
        text += " (default: " + usual + (bounds.kind == OptionBounds::Kind::time ? "s)" : ")");
    if (!by_place() && takes_several() && !list) text += " (can be repeated)";
    if (required && !by_place()) text += " (required)";
    return text;
}

namespace {

/// A number and nothing else; nothing: it is none.
std::optional<double> whole_text_as_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::string OptionBounds::why_wrong(std::string& text) const {
    const auto wanted = [&](const std::string& what) {
        return what + " wanted, got '" + text + "'";
    };
    if (kind == Kind::any) return "";
    if (kind == Kind::integer) {
        std::uint64_t value = 0;
        const char* const last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), last, value);
        if (error == std::errc() && end == last && value >= least && value <= most) return "";
        return wanted(most < std::uint64_t(std::numeric_limits<int>::max())
                          ? fmt::format("an integer from {} to {}", least, most)
                          : fmt::format("an integer of at least {}", least));
    }
    if (kind == Kind::time) {
        constexpr double needs_unit_from = 60;
        std::string compact = text;
        std::erase(compact, ' ');  // 2 s
        auto seconds = seconds_of(compact);
        const bool has_unit = seconds.has_value();
        if (!has_unit) seconds = real_of(text);
        if (!seconds || !(*seconds > 0)) return wanted("seconds, or a time such as 500ms,");
        if (!has_unit && *seconds >= needs_unit_from)
            return "say the unit: " + text + "ms or " + text + "s";
        text = fmt::format("{}", *seconds);
        return "";
    }
    const auto value = whole_text_as_number(text);
    if (kind == Kind::share)
        return value && *value >= 0 && *value <= 1 ? "" : wanted("a share from 0 to 1");
    const bool or_inf = kind == Kind::positive_or_inf;
    const bool fine = value && *value > 0 && (std::isfinite(*value) || (or_inf && text == "inf"));
    return fine ? "" : wanted(or_inf ? "a number above 0, or inf," : "a number above 0");
}

}  // namespace autotune
