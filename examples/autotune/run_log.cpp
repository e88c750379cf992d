// SPDX-License-Identifier: Apache-2.0
#include "run_log.hpp"

#include "output.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "base/text.hpp"
#include "servetune/outcome.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace autotune {

using namespace servetune;

namespace {

constexpr std::size_t file_bytes = 5UL << 20UL;
constexpr std::size_t older_files = 3;
constexpr std::string_view ending = " ends: ";  // behind the time, before reason and message

std::string text_of_outcome(const Trial& trial) {
    if (const Failure* failure = trial.failure())
        return fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
    const Measurement& measurement = *trial.measurement();
    std::string text(name_in(verdicts, measurement.validity.verdict));
    for (const Finding& finding : measurement.validity.findings)
        text += fmt::format(", {} ({}; {})", finding.id, finding.left, finding.right);
    for (const auto& [name, metric] : measurement.metrics)
        if (MetricKey::of(name).workload.empty())
            text += fmt::format(" {}={:.6g}", name, metric.value);
    return text;
}

}  // namespace

std::string last_end(const std::filesystem::path& folder) {
    constexpr std::streamoff enough = 64 << 10;
    std::error_code unknown;
    const std::filesystem::path file = folder / "run.log";
    if (!std::filesystem::is_regular_file(file, unknown)) return "";
    std::ifstream log(file, std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file, unknown));
    if (!unknown && size > enough) log.seekg(size - enough);
    std::string last;
    for (std::string line; std::getline(log, line);)
        if (!line.empty()) last = std::move(line);
    const auto after_time = last.find(' ');
    if (after_time == std::string::npos || last.compare(after_time, ending.size(), ending) != 0)
        return "";
    return last.substr(after_time + ending.size());
}

RunLog::RunLog(const std::filesystem::path& folder, Observer* next) : next_(next) {
    const std::filesystem::path file = folder / "run.log";
    std::error_code unknown;  // then opening it says what is wrong
    const std::filesystem::file_status there = std::filesystem::symlink_status(file, unknown);
    // A FIFO would wait for a reader, a device would be renamed with the older files, a link leads
    // out of the folder.
    if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
        complain("autotune: there will be no run.log: {} is not a regular file; remove it",
                 file.string());
        return;
    }
    try {
        auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file.string(),
                                                                           file_bytes, older_files);
        logger_ = std::make_shared<spdlog::logger>("run", std::move(sink));
        logger_->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %v");
        logger_->flush_on(spdlog::level::info);
        logger_->set_error_handler([said = false](const std::string& why) mutable {
            if (!said) complain("autotune: run.log is not complete: {}", why);
            said = true;
        });
    } catch (const spdlog::spdlog_ex& error) {
        complain("autotune: there will be no run.log: {}", error.what());
    }
}

RunLog::~RunLog() = default;

void RunLog::ends(std::string_view reason, const std::string& message) {
    say(fmt::format("{}{} {}", ending.substr(1), reason, message));
}

void RunLog::say(const std::string& line) {
    if (logger_) logger_->info("{}", printable_line(secrets()(line)));
}

void RunLog::resumed(std::span<const Trial> history) {
    const auto told = std::count_if(history.begin(), history.end(),
                                    [](const Trial& trial) { return trial.told(); });
    say("resumes after " + counted_text(static_cast<std::size_t>(told), "trial"));
    if (next_ != nullptr) next_->resumed(history);
}

void RunLog::started(const Trial& trial) {
    say(fmt::format("trial {}: {}{}", trial.id, trial.workload.empty() ? "" : trial.workload + ": ",
                    trial.configuration.text()));
    if (next_ != nullptr) next_->started(trial);
}

void RunLog::told(const Trial& trial, std::span<const Trial> history) {
    say(fmt::format("trial {}: told {}", trial.id, text_of_outcome(trial)));
    if (next_ != nullptr) next_->told(trial, history);
}

}  // namespace autotune
