// SPDX-License-Identifier: Apache-2.0
#include "mcp_tools.hpp"

#include "mcp_answers.hpp"
#include "mcp_tool_table.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

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

namespace {

constexpr std::string_view proposed_file = "proposed.json";  ///< in the folder of a run: configurations that an agent suggests
constexpr int most_wait_seconds = 50;                        ///< clients give up after a minute

const ToolEntry* entry_of(std::string_view name) {
    const auto table = tool_table();
    const auto found = std::find_if(table.begin(), table.end(), [&](const ToolEntry& one) { return one.name == name; });
    return found == table.end() ? nullptr : &*found;
}

OrderedJson schema_of(const ToolArgument& argument) {
    OrderedJson schema;
    switch (argument.takes) {
        case Takes::count: schema = {{"type", "integer"}, {"minimum", 0}}; break;
        case Takes::number: schema = {{"type", "number"}, {"exclusiveMinimum", 0}}; break;
        case Takes::flag: schema = {{"type", "boolean"}}; break;
        case Takes::files: schema = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}}; break;
        case Takes::settings:
            schema = {{"type", "object"}, {"additionalProperties", {{"type", OrderedJson::array({"string", "number", "boolean"})}}}};
            break;
        default: schema = {{"type", "string"}};
    }
    schema["description"] = std::string(argument.what);
    return schema;
}

[[noreturn]] void refuse(std::string_view argument, const std::string& wanted, const OrderedJson& got) {
    std::string shown = got.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    constexpr std::size_t longest = 200;
    if (shown.size() > longest) shown = shown.substr(0, longest) + "...";
    throw UsageError(fmt::format("`{}`: {} wanted, got {}", argument, wanted, printable_line(shown)));
}

/// One line of text that is no option.
std::string line_in(const ToolArgument& argument, const OrderedJson& value) {
    const auto* text = value.get_ptr<const std::string*>();
    constexpr std::size_t longest = 4096;
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
    if (text == nullptr || text->empty() || text->size() > longest || std::any_of(text->begin(), text->end(), is_control))
        refuse(argument.name, "one line of text", value);
    if (text->front() == '-') refuse(argument.name, "a text that does not begin with '-'", value);
    return *text;
}

bool looks_like_file(const std::string& text) {
    const std::string ending = std::filesystem::path(text).extension();
    return text.front() == '/' || text.front() == '.' || text.front() == '~' || text.find("..") != std::string::npos || ending == ".yaml" ||
           ending == ".yml" || ending == ".json" || ending == ".csv" || ending == ".jsonl" || ending == ".txt";
}

/// A load test is a load: an agent aims it at this machine only.
std::string local_url(const ToolArgument& argument, const OrderedJson& value) {
    static const std::regex local(R"(https?://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?)");
    const std::string url = line_in(argument, value);
    if (!std::regex_match(url, local))
        refuse(argument.name, "a server of this machine, such as http://127.0.0.1:8000 (a study with `attach` may name another)", value);
    return url;
}

std::string text_of_value(const ToolArgument& argument, const OrderedJson& value) {
    if (value.is_boolean() || value.is_number()) return value.dump();
    return line_in(argument, value);
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
            properties["wait_seconds"] = {{"type", "number"},
                                          {"minimum", 0},
                                          {"maximum", most_wait_seconds},
                                          {"description", "How long to wait for the end before saying how it stands (0)"}};
        OrderedJson schema{{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}};
        tools.push_back({{"name", std::string(entry.name)},
                         {"description", std::string(entry.what)},
                         {"inputSchema", schema},
                         {"annotations", {{"readOnlyHint", entry.reads_only}, {"destructiveHint", false}, {"openWorldHint", false}}}});
    }
    return tools;
}

std::filesystem::path Tools::inside(const std::string& file) const {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(root_ / file, error);
    const auto relative = error ? std::filesystem::path() : whole.lexically_relative(root_);
    if (relative.empty() || *relative.begin() == "..")
        throw UsageError(fmt::format("'{}' is not in the folder of this server, {}; files elsewhere are neither read nor written",
                                     printable_line(file), root_.string()));
    return whole;
}

std::vector<std::string> Tools::words_of(const std::string& tool, const OrderedJson& arguments) const {
    const ToolEntry& entry = *entry_of(tool);
    for (const auto& [name, value] : arguments.items()) {
        const bool known = std::any_of(entry.arguments.begin(), entry.arguments.end(),
                                       [&called = name](const ToolArgument& one) { return one.name == called; });
        if (!known && !(entry.takes_long && name == "wait_seconds"))
            throw UsageError(fmt::format("`{}` takes no `{}`", tool, printable_line(name)));
    }
    std::vector<std::string> words(entry.words.begin(), entry.words.end());
    std::vector<std::string> positional;
    for (const ToolArgument& argument : entry.arguments) {
        const auto found = arguments.find(argument.name);
        if (found == arguments.end() || found->is_null()) {
            if (argument.required) throw UsageError(fmt::format("`{}` is missing: {}", argument.name, argument.what));
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
            case Takes::name: {
                const std::string text = line_in(argument, value);
                add(looks_like_file(text) ? inside(text).string() : text);
                break;
            }
            case Takes::count:
                if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
                    refuse(argument.name, "a whole number of at least 0", value);
                add(value.dump());
                break;
            case Takes::number:
                if (!value.is_number() || !(value.get<double>() > 0)) refuse(argument.name, "a number above 0", value);
                add(value.dump());
                break;
            case Takes::flag:
                if (!value.is_boolean()) refuse(argument.name, "true or false", value);
                if (value.get<bool>()) words.push_back(option);
                break;
            case Takes::file: add(inside(line_in(argument, value)).string()); break;
            case Takes::files:
                if (!value.is_array() || value.empty()) refuse(argument.name, "a list of files", value);
                for (const OrderedJson& one : value) add(inside(line_in(argument, one)).string());
                break;
            case Takes::settings:
                if (!value.is_object() || value.empty()) refuse(argument.name, "an object, parameter -> value,", value);
                for (const auto& [name, one] : value.items()) {
                    if (name.empty() || name.front() == '-' || name.find('=') != std::string::npos) refuse(argument.name, "names", value);
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

std::filesystem::path Tools::folder_of(const OrderedJson& arguments) {
    if (arguments.contains("directory")) return inside(arguments.at("directory").get<std::string>());
    const std::filesystem::path study = inside(arguments.at("study").get<std::string>());
    std::error_code unknown;
    if (std::filesystem::is_directory(study, unknown)) return study;
    // The folder has the study's name, which the program itself reads.
    const auto asked = jobs_.start("validate", {}, {"validate", "--json", "--no-installed", "--", study.string()});
    if (!asked->wait(60s)) throw IoError(study.string() + " could not be read within a minute");
    const OrderedJson read = shallow_json<OrderedJson>(asked->answer());
    if (!read.is_object() || !read.contains("study")) {
        const std::string why = read.is_object() ? read.value("error", "") : "";
        throw UsageError(!why.empty() ? why : asked->said().empty() ? study.string() + " cannot be read" : asked->said().back());
    }
    return inside(read["study"].get<std::string>());
}

OrderedJson Tools::told_of(Job& job) const {
    if (job.running()) {
        OrderedJson told{{"state", "working"}, {"job", job.id()}, {"seconds", std::round(job.seconds())}};
        if (!job.said().empty()) told["said"] = job.said().back();
        told["next"] = "call `status` with this job (`wait_seconds` up to 50), or `stop`";
        return told;
    }
    return answer_of(job.tool(), job.exit_code(), job.answer(), job.said());
}

OrderedJson Tools::waited(const std::shared_ptr<Job>& job, const OrderedJson& arguments, const Progress& progress,
                          const std::function<bool()>& cancelled) {
    double seconds = 60;  // what is no long work has its own bounds
    if (const ToolEntry& entry = *entry_of(job->tool()); entry.takes_long) {
        const auto asked = arguments.find("wait_seconds");
        seconds = asked == arguments.end() || !asked->is_number() ? 0 : std::clamp(asked->get<double>(), 0.0, double{most_wait_seconds});
        if (!job->subject().empty()) seconds = std::max(seconds, 0.5);  // what fails at once is said at once
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    auto told = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() < until && !job->wait(100ms)) {
        if (cancelled()) {
            if (!entry_of(job->tool())->takes_long) job->stop();
            break;
        }
        if (std::chrono::steady_clock::now() - told < 2s) continue;
        told = std::chrono::steady_clock::now();
        progress(std::round(job->seconds()), 0, job->tool() + " runs");
    }
    if (job->running() && !entry_of(job->tool())->takes_long) {
        job->stop();
        return {{"state", "failed"}, {"reason", job->tool() + " did not end within a minute"}, {"next", "try again, or ask a person"}};
    }
    return told_of(*job);
}

OrderedJson Tools::start(const OrderedJson& arguments, const Progress& progress, const std::function<bool()>& cancelled) {
    const std::filesystem::path folder = folder_of(arguments);
    if (const auto earlier = jobs_.of("start", folder); earlier && earlier->running()) return told_of(*earlier);
    std::vector<std::string> words = words_of("start", arguments);
    const auto end_of_options = std::find(words.begin(), words.end(), "--");
    std::error_code unknown;
    if (const auto file = folder / proposed_file; std::filesystem::exists(file, unknown))
        words.insert(end_of_options, "--suggest=" + file.string());
    return waited(jobs_.start("start", folder, std::move(words)), arguments, progress, cancelled);
}

OrderedJson Tools::status(const OrderedJson& arguments, const Progress& progress, const std::function<bool()>& cancelled) {
    std::shared_ptr<Job> job;
    OrderedJson study = arguments;
    if (const auto id = arguments.find("job"); id != arguments.end()) {
        job = jobs_.find(id->is_string() ? id->get<std::string>() : "");
        if (!job) refuse("job", "what `start`, `bench` or `compare` gave", *id);
        if (job->tool() != "start") return waited(job, arguments, progress, cancelled);
        study = {{"study", job->subject().string()}};
    } else if (!arguments.contains("study")) throw UsageError("`study` or `job` is missing");
    else job = jobs_.of("start", folder_of(arguments));
    study.erase("wait_seconds");
    const auto now = [&] {
        const auto asked = jobs_.start("report", {}, words_of("report", study));
        return waited(
            asked, {}, [](double, double, const std::string&) {}, cancelled);
    };
    OrderedJson report = now();
    if (!job || !job->running()) {
        if (job && job->exit_code() != 0 && report.value("state", "") != "done") return told_of(*job);  // it never began
        if (report.value("state", "") == "done") report["running"] = false;
        return report;
    }
    const auto wait = arguments.find("wait_seconds");
    const double seconds =
        wait == arguments.end() || !wait->is_number() ? 0 : std::clamp(wait->get<double>(), 0.0, double{most_wait_seconds});
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < until && !cancelled() &&
           !job->wait(std::min<std::chrono::milliseconds>(
               5s, std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now())))) {
        if (std::chrono::steady_clock::now() >= until) break;
        report = now();
        const double done = report.contains("trials") ? report["trials"].value("told", 0.0) : 0.0;
        progress(done, 0, report.value("headline", "the study runs"));
    }
    report = job->running() ? now() : told_of(*job);
    if (job->running()) {
        report["running"] = true;
        report["job"] = job->id();
        report["state"] = "working";
        report["next"] = "call `status` with `wait_seconds`, or `stop`";
    }
    return report;
}

OrderedJson Tools::stop(const OrderedJson& arguments) {
    const auto id = arguments.find("job");
    const auto job = id == arguments.end() || !id->is_string() ? nullptr : jobs_.find(id->get<std::string>());
    if (!job) throw UsageError("`job`: what `start`, `bench` or `compare` gave wanted; what a person started, a person ends");
    job->stop();
    OrderedJson told = told_of(*job);
    told["state"] = "done";
    told["next"] = "what was measured is kept: `status` shows it, `start` goes on";
    return told;
}

OrderedJson Tools::propose(const OrderedJson& arguments) {
    const std::filesystem::path folder = folder_of(arguments);
    const OrderedJson configuration = arguments.value("configuration", OrderedJson());
    if (!configuration.is_object() || configuration.empty()) refuse("configuration", "an object, parameter -> value,", configuration);
    // `render` knows what the study's space takes.
    const ToolArgument settings{"configuration", Takes::settings, "--set"};
    std::vector<std::string> words{"render", "--json"};
    for (const auto& [name, value] : configuration.items()) {
        if (name.empty() || name.front() == '-' || name.find('=') != std::string::npos) refuse("configuration", "names", configuration);
        words.push_back("--set=" + name + "=" + text_of_value(settings, value));
    }
    words.emplace_back("--");
    words.push_back(inside(arguments.at("study").get<std::string>()).string());
    const auto asked = jobs_.start("render", {}, words);
    if (!asked->wait(60s) || asked->exit_code() != 0) return answer_of("render", asked->exit_code(), asked->answer(), asked->said());
    const std::filesystem::path file = folder / proposed_file;
    std::error_code unknown;
    OrderedJson all = OrderedJson::array();
    if (std::filesystem::exists(file, unknown)) all = shallow_json<OrderedJson>(read_file(file));
    if (!all.is_array()) throw UsageError(file.string() + " is not a list of configurations: remove it");
    if (std::find(all.begin(), all.end(), configuration) == all.end()) all.push_back(configuration);
    std::filesystem::create_directories(folder);
    OutputFile output(file);
    output.write(all.dump(2) + "\n");
    output.commit();
    const bool begun = std::filesystem::exists(folder / "study.db", unknown);
    return {{"state", "done"},
            {"proposed", all.size()},
            {"file", file.string()},
            {"next", std::string("`start` tries the most promising in at most 3 of 10 trials") +
                         (begun ? "; the run has begun, so `stop` it where it runs, and `start` with `accept_changes`" : "")}};
}

OrderedJson Tools::call(const std::string& name, const OrderedJson& arguments, const Progress& progress,
                        const std::function<bool()>& cancelled) {
    if (!arguments.is_object()) throw UsageError("`arguments`: an object wanted");
    const ToolEntry& entry = *entry_of(name);
    if (entry.words.empty() || name == "start") (void)words_of(name, arguments);  // refuses what cannot be
    if (name == "start") return start(arguments, progress, cancelled);
    if (name == "status") return status(arguments, progress, cancelled);
    if (name == "stop") return stop(arguments);
    if (name == "propose") return propose(arguments);
    return waited(jobs_.start(name, {}, words_of(name, arguments)), arguments, progress, cancelled);
}

OrderedJson Tools::resources() const {
    OrderedJson all = OrderedJson::array();
    all.push_back({{"uri", "servetune://schema/study"},
                   {"name", "study.json"},
                   {"description", "JSON Schema of a study"},
                   {"mimeType", "application/schema+json"}});
    std::error_code unknown;
    std::vector<std::string> runs;
    for (const auto& one : std::filesystem::directory_iterator(root_, unknown))
        if (std::filesystem::exists(one.path() / "study.db", unknown)) runs.push_back(one.path().filename().string());
    std::sort(runs.begin(), runs.end());
    for (const std::string& run : runs)
        all.push_back({{"uri", "servetune://report/" + run},
                       {"name", run + "/report.md"},
                       {"description", "Report of the study"},
                       {"mimeType", "text/markdown"}});
    return all;
}

OrderedJson Tools::read_resource(const std::string& uri) {
    const OrderedJson listed = resources();
    const auto found = std::find_if(listed.begin(), listed.end(), [&](const OrderedJson& one) { return one["uri"] == uri; });
    if (found == listed.end()) throw UsageError("there is no resource " + printable_line(uri));
    constexpr std::string_view of_report = "servetune://report/";
    std::vector<std::string> words{"schema", "study"};
    if (uri.starts_with(of_report)) words = {"report", "--", inside(uri.substr(of_report.size())).string()};
    const auto job = jobs_.start("resource", {}, std::move(words));
    if (!job->wait(60s) || job->exit_code() != 0)
        throw UsageError("it cannot be read: " + (job->said().empty() ? uri : job->said().back()));
    return {{"uri", uri}, {"mimeType", (*found)["mimeType"]}, {"text", job->answer()}};
}

}  // namespace autotune
