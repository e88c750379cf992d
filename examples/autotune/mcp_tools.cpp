// SPDX-License-Identifier: Apache-2.0
#include "mcp_tools.hpp"

#include "mcp_answers.hpp"
#include "mcp_tool_table.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <regex>

namespace autotune {

using namespace servetune;
using namespace std::chrono_literals;
using OrderedJson = Tools::OrderedJson;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::string_view proposed_file =
    "proposed.json";  ///< in the folder of a run: configurations that an agent suggests
constexpr int most_wait_seconds = 50;  ///< clients give up after a minute

const ToolEntry* entry_of(std::string_view name) {
    const auto table = tool_table();
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const ToolEntry& one) { return one.name == name; });
    return found == table.end() ? nullptr : &*found;
}

OrderedJson schema_of(const ToolArgument& argument) {
    OrderedJson schema;
    switch (argument.takes) {
        case Takes::count: schema = {{"type", "integer"}, {"minimum", 0}}; break;
        case Takes::number: schema = {{"type", "number"}, {"exclusiveMinimum", 0}}; break;
        case Takes::flag: schema = {{"type", "boolean"}}; break;
        case Takes::files:
            schema = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}};
            break;
        case Takes::settings:
            schema = {{"type", "object"},
                      {"additionalProperties",
                       {{"type", OrderedJson::array({"string", "number", "boolean"})}}}};
            break;
        case Takes::choice: schema = {{"type", "string"}, {"enum", OrderedJson::array()}}; break;
        default: schema = {{"type", "string"}};
    }
    for (const std::string_view one : argument.choices) schema["enum"].push_back(std::string(one));
    schema["description"] = std::string(argument.what);
    return schema;
}

[[noreturn]] void refuse(std::string_view argument, const std::string& wanted,
                         const OrderedJson& got) {
    std::string shown = got.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    constexpr std::size_t longest = 200;
    if (shown.size() > longest) shown = shown.substr(0, longest) + "...";
    throw UsageError(
        fmt::format("`{}`: {} wanted, got {}", argument, wanted, printable_line(shown)));
}

/// One line of text that is no option.
std::string line_in(const ToolArgument& argument, const OrderedJson& value) {
    const auto* text = value.get_ptr<const std::string*>();
    constexpr std::size_t longest = 4096;
    const auto is_control = [](char c) {
        return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    };
    if (text == nullptr || text->empty() || text->size() > longest ||
        std::any_of(text->begin(), text->end(), is_control))
        refuse(argument.name, "one line of text", value);
    if (text->front() == '-') refuse(argument.name, "a text that does not begin with '-'", value);
    return *text;
}

/// As `Catalogue::find` reads a name: one with a slash, or of YAML, is a file.
bool is_file_of_catalogue(const std::string& text) {
    const std::string ending = std::filesystem::path(text).extension();
    return text.find('/') != std::string::npos || ending == ".yaml" || ending == ".yml" ||
           text.front() == '~';
}

/// A name on the hub has a slash too.
bool is_file_of_model(const std::string& text) {
    const std::string ending = std::filesystem::path(text).extension();
    return text.front() == '/' || text.front() == '.' || text.front() == '~' ||
           text.find("..") != std::string::npos || ending == ".yaml" || ending == ".yml" ||
           ending == ".json";
}

/// A load test is a load: an agent aims it at this machine only.
std::string local_url(const ToolArgument& argument, const OrderedJson& value) {
    static const std::regex local(
        R"(https?://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?)");
    const std::string url = line_in(argument, value);
    if (!std::regex_match(url, local))
        refuse(argument.name,
               "a server of this machine, such as http://127.0.0.1:8000 (a study with `attach` may "
               "name another)",
               value);
    return url;
}

double seconds_to_wait(const OrderedJson& arguments) {
    const auto asked = arguments.find("wait_seconds");
    if (asked == arguments.end()) return 0;
    if (!asked->is_number() || asked->get<double>() < 0 || asked->get<double>() > most_wait_seconds)
        refuse("wait_seconds", fmt::format("0 to {} seconds", most_wait_seconds), *asked);
    return asked->get<double>();
}

std::string text_of_value(const ToolArgument& argument, const OrderedJson& value) {
    if (value.is_boolean() || value.is_number()) return value.dump();
    return line_in(argument, value);
}

/// How a study that runs stands, in a line.
std::string standing_of(const OrderedJson& report) {
    const auto trials = report.find("trials");
    if (trials == report.end() || !trials->is_object()) return "the study begins";
    return fmt::format("{} trials told; so far: {}", trials->value("told", 0),
                       report.value("headline", "nothing"));
}

std::string utc_text(std::chrono::system_clock::time_point at) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(at)));
}

/// Whether a file is YAML with a line that names a study.
bool is_study_file(const std::filesystem::path& file) {
    constexpr std::uintmax_t longest = 1UL << 20UL;
    std::error_code unknown;
    if (file.extension() != ".yaml" && file.extension() != ".yml") return false;
    if (!std::filesystem::is_regular_file(file, unknown) ||
        std::filesystem::file_size(file, unknown) > longest)
        return false;
    try {
        return ("\n" + read_file(file)).find("\nstudy:") != std::string::npos;
    } catch (const IoError&) {
        return false;
    }
}

}  // namespace

Tools::Tools(std::filesystem::path root) : root_(std::move(root)), jobs_(root_) {}

bool Tools::has(const std::string& name) { return entry_of(name) != nullptr; }

OrderedJson Tools::list() {
    OrderedJson tools = OrderedJson::array();
    for (const ToolEntry& entry : tool_table()) {
        OrderedJson properties = OrderedJson::object();
        OrderedJson required = OrderedJson::array();
        for (const ToolArgument& argument : entry.arguments) {
            properties[std::string(argument.name)] = schema_of(argument);
            if (argument.required) required.push_back(std::string(argument.name));
        }
        if (entry.takes_long)
            properties["wait_seconds"] = {
                {"type", "number"},
                {"minimum", 0},
                {"maximum", most_wait_seconds},
                {"description", "How long to wait for the end before saying how it stands (0)"}};
        OrderedJson schema{{"type", "object"},
                           {"properties", properties},
                           {"required", required},
                           {"additionalProperties", false}};
        tools.push_back({{"name", std::string(entry.name)},
                         {"description", std::string(entry.what)},
                         {"inputSchema", schema},
                         {"annotations",
                          {{"readOnlyHint", entry.reads_only},
                           {"destructiveHint", entry.destroys},
                           {"openWorldHint", false}}}});
    }
    return tools;
}

std::filesystem::path Tools::inside(const std::string& file) const {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(root_ / file, error);
    const auto relative = error ? std::filesystem::path() : whole.lexically_relative(root_);
    if (relative.empty() || *relative.begin() == "..")
        throw UsageError(
            fmt::format("'{}' is not in the folder of this server, {}; files elsewhere are neither "
                        "read nor written",
                        printable_line(file), root_.string()));
    return whole;
}

std::vector<std::string> Tools::words_of(const std::string& tool,
                                         const OrderedJson& arguments) const {
    const ToolEntry& entry = *entry_of(tool);
    for (const auto& [name, value] : arguments.items()) {
        const bool known =
            std::any_of(entry.arguments.begin(), entry.arguments.end(),
                        [&called = name](const ToolArgument& one) { return one.name == called; });
        if (!known && !(entry.takes_long && name == "wait_seconds"))
            throw UsageError(fmt::format("`{}` takes no `{}`", tool, printable_line(name)));
    }
    std::vector<std::string> words(entry.words.begin(), entry.words.end());
    std::vector<std::string> positional;
    for (const ToolArgument& argument : entry.arguments) {
        const auto found = arguments.find(argument.name);
        if (found == arguments.end()) {
            if (argument.required)
                throw UsageError(fmt::format("`{}` is missing: {}", argument.name, argument.what));
            continue;
        }
        const OrderedJson& value = *found;
        const std::string option(argument.option);
        const auto add = [&](const std::string& text) {
            if (option.empty()) positional.push_back(text);
            else words.push_back(option + "=" + text);
        };
        switch (argument.takes) {
            case Takes::text: add(line_in(argument, value)); break;
            case Takes::choice:
                if (std::find(argument.choices.begin(), argument.choices.end(),
                              line_in(argument, value)) == argument.choices.end())
                    refuse(argument.name,
                           fmt::format("one of {}", fmt::join(argument.choices, ", ")), value);
                add(value.get<std::string>());
                break;
            case Takes::catalogued:
            case Takes::model: {
                const std::string text = line_in(argument, value);
                const bool is_file = argument.takes == Takes::model ? is_file_of_model(text)
                                                                    : is_file_of_catalogue(text);
                add(is_file ? inside(text).string() : text);
                break;
            }
            case Takes::count:
                if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
                    refuse(argument.name, "a whole number of at least 0", value);
                add(value.dump());
                break;
            case Takes::number:
                if (!value.is_number() || !(value.get<double>() > 0))
                    refuse(argument.name, "a number above 0", value);
                add(value.dump());
                break;
            case Takes::flag:
                if (!value.is_boolean()) refuse(argument.name, "true or false", value);
                if (value.get<bool>()) words.push_back(option);
                break;
            case Takes::file: add(inside(line_in(argument, value)).string()); break;
            case Takes::files:
                if (!value.is_array() || value.empty())
                    refuse(argument.name, "a list of files", value);
                for (const OrderedJson& one : value) add(inside(line_in(argument, one)).string());
                break;
            case Takes::settings:
                if (!value.is_object() || value.empty())
                    refuse(argument.name, "an object, parameter -> value,", value);
                for (const auto& [name, one] : value.items()) {
                    if (name.empty() || name.front() == '-' || name.find('=') != std::string::npos)
                        refuse(argument.name, "names", value);
                    add(name + "=" + text_of_value(argument, one));
                }
                break;
            case Takes::url: add(local_url(argument, value)); break;
        }
    }
    if (!positional.empty()) words.emplace_back("--");
    words.insert(words.end(), positional.begin(), positional.end());
    return words;
}

Tools::Ran Tools::ran(std::vector<std::string> words,
                      const std::function<bool()>& cancelled) const {
    constexpr auto patience = 60s;
    const std::string called = words.front();
    Job job("", called, {}, std::move(words), root_);
    for (const auto until = Clock::now() + patience; !job.wait(50ms);)
        if (cancelled() || Clock::now() > until) {
            job.stop();
            throw IoError(called +
                          (cancelled() ? " was cancelled" : " did not end within a minute"));
        }
    return {job.exit_code(), job.answer(), job.said()};
}

std::filesystem::path Tools::folder_of(const OrderedJson& arguments,
                                       const std::function<bool()>& cancelled) const {
    const auto file_in = [&](const char* name) {
        return inside(line_in({name}, arguments.at(name)));
    };
    if (arguments.contains("directory")) return file_in("directory");
    const std::filesystem::path study = file_in("study");
    std::error_code unknown;
    if (std::filesystem::is_directory(study, unknown)) return study;
    // The folder has the study's name, which the program itself reads.
    const Ran asked =
        ran({"validate", "--json", "--no-installed", "--", study.string()}, cancelled);
    const OrderedJson read = shallow_json<OrderedJson>(asked.answer);
    if (read.is_object() && read.contains("study")) return inside(read["study"].get<std::string>());
    const std::string why = read.is_object() ? read.value("error", "") : "";
    throw UsageError(!why.empty()         ? why
                     : asked.said.empty() ? study.string() + " cannot be read"
                                          : asked.said.back());
}

OrderedJson Tools::told_of(Job& job) const {
    if (!job.running()) return answer_of(job.tool(), job.exit_code(), job.answer(), job.said());
    OrderedJson told{
        {"state", "working"}, {"job", job.id()}, {"seconds", std::round(job.seconds())}};
    if (!job.said().empty()) told["said"] = job.said().back();
    told["next"] = "call `status` with this job (`wait_seconds` up to 50), or `stop`";
    return told;
}

OrderedJson Tools::waited(Job& job, double seconds, const Progress& progress,
                          const std::function<bool()>& cancelled) const {
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    for (auto told = Clock::now(); Clock::now() < until && !cancelled() && !job.wait(100ms);)
        if (Clock::now() - told > 2s) {
            told = Clock::now();
            progress(std::round(job.seconds()), job.tool() + " runs");
        }
    return told_of(job);
}

OrderedJson Tools::report_of(OrderedJson study, const std::function<bool()>& cancelled) const {
    study.erase("wait_seconds");
    const Ran made = ran(words_of("report", study), cancelled);
    return answer_of("report", made.exit_code, made.answer, made.said);
}

OrderedJson Tools::start(const OrderedJson& arguments, const Progress& progress,
                         const std::function<bool()>& cancelled) {
    const std::filesystem::path folder = folder_of(arguments, cancelled);
    if (const auto earlier = jobs_.of("start", folder); earlier && earlier->running())
        return told_of(*earlier);
    std::vector<std::string> words = words_of("start", arguments);
    std::error_code unknown;
    if (const auto file = folder / proposed_file; std::filesystem::exists(file, unknown))
        words.insert(std::find(words.begin(), words.end(), "--"), "--suggest=" + file.string());
    constexpr auto fails_at_once = 2s;  // is then said at once
    const auto job = jobs_.start("start", folder, std::move(words));
    if (job->wait(fails_at_once) || seconds_to_wait(arguments) == 0) return told_of(*job);
    return status({{"job", job->id()}, {"wait_seconds", seconds_to_wait(arguments)}}, progress,
                  cancelled);
}

OrderedJson Tools::status(const OrderedJson& arguments, const Progress& progress,
                          const std::function<bool()>& cancelled) {
    std::shared_ptr<Job> job;
    OrderedJson study = arguments;
    if (const auto id = arguments.find("job"); id != arguments.end()) {
        job = job_in(*id);
        if (job->tool() != "start")
            return waited(*job, seconds_to_wait(arguments), progress, cancelled);
        study = {{"study", job->subject().string()}};
    } else if (!arguments.contains("study")) return studies(cancelled);
    else job = jobs_.of("start", folder_of(arguments, cancelled));
    const auto until = Clock::now() + std::chrono::duration<double>(seconds_to_wait(arguments));
    OrderedJson told = report_of(study, cancelled);
    while (job && job->running() && Clock::now() < until && !cancelled()) {
        constexpr std::chrono::milliseconds pause = 5s;
        (void)job->wait(
            std::min(pause, std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now())));
        told = report_of(study, cancelled);
        progress(std::round(job->seconds()), standing_of(told));
    }
    const bool running = job && job->running();
    if (job && !running)
        told = report_of(study, cancelled);  // it may have ended while the last one was made
    if (running && told.value("state", "") == "failed")
        return told_of(*job);  // its journal is not there yet
    if (job && !running && job->exit_code() != 0 && told.value("state", "") != "done")
        return told_of(*job);  // it never began
    if (running || told.value("state", "") == "done") told["running"] = running;
    if (running) {
        told["job"] = job->id();
        told["state"] = "working";
        told["next"] = "call `status` with `wait_seconds`, or `stop`";
    }
    return told;
}

std::shared_ptr<Job> Tools::job_in(const OrderedJson& id) const {
    const auto job = jobs_.find(id.is_string() ? id.get<std::string>() : "");
    if (!job) refuse("job", "what `start`, `bench` or `compare` gave", id);
    return job;
}

OrderedJson Tools::studies(const std::function<bool()>& cancelled) const {
    constexpr std::size_t most = 20;
    const std::vector<std::string> folders = runs();
    OrderedJson all = OrderedJson::array();
    for (std::size_t i = 0; i < std::min(most, folders.size()); ++i) {
        const std::filesystem::path folder = root_ / folders[i];
        const OrderedJson report = report_of({{"study", folder.string()}}, cancelled);
        OrderedJson one{{"study", folders[i]}, {"running", somebody_writes(folder)}};
        for (const char* name : {"verdict", "headline", "trials"})
            if (report.contains(name)) one[name] = report[name];
        if (report.value("state", "") == "failed") one["reason"] = report.value("reason", "");
        if (const auto job = jobs_.of("start", folder); job && job->running())
            one["job"] = job->id();
        all.push_back(one);
    }
    OrderedJson files = OrderedJson::array();
    std::error_code unknown;
    for (const auto& one : std::filesystem::directory_iterator(root_, unknown))
        if (is_study_file(one.path())) files.push_back(one.path().filename().string());
    std::sort(files.begin(), files.end());
    OrderedJson told{{"state", "done"}, {"studies", all}, {"files", files}};
    if (folders.size() > most) told["left_out"] = folders.size() - most;
    told["next"] = all.empty() && files.empty()
                       ? "`init` writes a study"
                       : "`report` a study, or `validate` and `start` a file";
    return told;
}

bool Tools::makes_jobs(const std::string& name) { return autotune::makes_jobs(*entry_of(name)); }

Tools::Task Tools::task(const std::string& id, const std::function<bool()>& cancelled) const {
    const auto job = job_in(id);
    const bool working = job->running();
    constexpr int soon_milliseconds = 1000, later_milliseconds = 5000;
    constexpr double young_seconds = 30;
    const auto seconds = std::chrono::duration_cast<std::chrono::system_clock::duration>(
        std::chrono::duration<double>(job->seconds()));
    Task result{{{"taskId", id},
                 {"status", working            ? "working"
                            : job->cancelled() ? "cancelled"
                                               : "completed"},
                 {"createdAt", utc_text(job->began_at())},
                 {"lastUpdatedAt", utc_text(job->began_at() + seconds)},
                 {"ttlMs", nullptr},
                 {"pollIntervalMs",
                  job->seconds() < young_seconds ? soon_milliseconds : later_milliseconds}}};
    if (working)
        result.fields["statusMessage"] =
            job->tool() != "start"
                ? job->tool() + " runs"
                : standing_of(report_of({{"study", job->subject().string()}}, cancelled));
    else if (!job->cancelled()) result.told = told_of(*job);
    return result;
}

void Tools::cancel_task(const std::string& id) const { job_in(id)->cancel(); }

OrderedJson Tools::stop(const OrderedJson& arguments) {
    const auto job = job_in(arguments.at("job"));
    const bool ran_on = job->running();
    job->stop();
    OrderedJson told = told_of(*job);
    if (ran_on && job->tool() == "start") {
        told["state"] = "done";
        told["next"] = "what was measured is kept: `status` shows it, `start` goes on";
    }
    return told;
}

OrderedJson Tools::propose(OrderedJson arguments, const std::function<bool()>& cancelled) {
    const std::filesystem::path folder = folder_of(arguments, cancelled);
    const OrderedJson configuration = arguments.at("configuration");
    arguments.erase("directory");
    // `render` knows what the study's space takes.
    if (const Ran asked = ran(words_of("propose", arguments), cancelled); asked.exit_code != 0)
        return answer_of("render", asked.exit_code, asked.answer, asked.said);
    const std::scoped_lock lock(proposing_);
    const std::filesystem::path file = folder / proposed_file;
    std::error_code unknown;
    OrderedJson all = OrderedJson::array();
    if (std::filesystem::exists(file, unknown)) all = shallow_json<OrderedJson>(read_file(file));
    if (!all.is_array())
        throw UsageError(file.string() + " is not a list of configurations: remove it");
    if (std::find(all.begin(), all.end(), configuration) == all.end()) all.push_back(configuration);
    std::filesystem::create_directories(folder);
    write_file(file, all.dump(2) + "\n");
    const bool begun = std::filesystem::exists(folder / "study.db", unknown);
    return {{"state", "done"},
            {"proposed", all.size()},
            {"file", file.string()},
            {"next", std::string("`start` tries the most promising in at most 3 of 10 trials") +
                         (begun ? "; the run has begun, so `stop` it where it runs, and `start` "
                                  "with `accept_changes`"
                                : "")}};
}

OrderedJson Tools::call(const std::string& name, OrderedJson arguments, const Progress& progress,
                        const std::function<bool()>& cancelled) {
    if (!arguments.is_object()) throw UsageError("`arguments`: an object wanted");
    for (auto one = arguments.begin(); one != arguments.end();)
        one = one->is_null() ? arguments.erase(one) : std::next(one);
    const ToolEntry& entry = *entry_of(name);
    std::vector<std::string> words = words_of(name, arguments);  // refuses what cannot be
    (void)seconds_to_wait(arguments);
    if (name == "start") return start(arguments, progress, cancelled);
    if (name == "status") return status(arguments, progress, cancelled);
    if (name == "stop") return stop(arguments);
    if (name == "propose") return propose(std::move(arguments), cancelled);
    if (!entry.takes_long) {
        const Ran made = ran(std::move(words), cancelled);
        return answer_of(name, made.exit_code, made.answer, made.said);
    }
    const auto job = jobs_.start(name, {}, std::move(words));
    OrderedJson told = waited(*job, seconds_to_wait(arguments), progress, cancelled);
    if (cancelled()) job->stop();  // nobody hears of it
    return told;
}

std::vector<std::string> Tools::runs() const {
    std::error_code unknown;
    std::vector<std::string> result;
    for (const auto& one : std::filesystem::directory_iterator(root_, unknown))
        if (std::filesystem::exists(one.path() / "study.db", unknown))
            result.push_back(one.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
}

OrderedJson Tools::resources() const {
    OrderedJson all = OrderedJson::array();
    all.push_back({{"uri", "servetune://schema/study"},
                   {"name", "study.json"},
                   {"description", "JSON Schema of a study"},
                   {"mimeType", "application/schema+json"}});
    for (const std::string& run : runs())
        all.push_back({{"uri", "servetune://report/" + run},
                       {"name", run + "/report.md"},
                       {"description", "Report of the study"},
                       {"mimeType", "text/markdown"}});
    return all;
}

OrderedJson Tools::read_resource(const std::string& uri,
                                 const std::function<bool()>& cancelled) const {
    const OrderedJson listed = resources();
    const auto found = std::find_if(listed.begin(), listed.end(),
                                    [&](const OrderedJson& one) { return one["uri"] == uri; });
    if (found == listed.end()) throw UsageError("there is no resource " + printable_line(uri));
    constexpr std::string_view of_report = "servetune://report/";
    std::vector<std::string> words{"schema", "study"};
    if (uri.starts_with(of_report))
        words = {"report", "--", inside(uri.substr(of_report.size())).string()};
    const Ran read = ran(std::move(words), cancelled);
    if (read.exit_code != 0)
        throw UsageError("it cannot be read: " + (read.said.empty() ? uri : read.said.back()));
    return {{"uri", uri}, {"mimeType", (*found)["mimeType"]}, {"text", read.answer}};
}

}  // namespace autotune
