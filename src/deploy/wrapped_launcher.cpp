// SPDX-License-Identifier: Apache-2.0
// Engines that another program starts: docs/reference/your-own-program.md is the contract of that
// program.
#include "base/files.hpp"
#include "base/text.hpp"
#include "base/variable_name.hpp"
#include "host/start_program.hpp"
#include "launch_clients.hpp"
#include "servetune/error.hpp"
#include "servetune/launcher.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <charconv>
#include <cmath>
#include <mutex>
#include <utility>

namespace servetune {
namespace {

using namespace std::chrono_literals;

constexpr auto wanted_every = 5s;
constexpr auto verb_patience = 300s;  // a cluster may need its grace and more to remove a job

using Lines = std::vector<std::pair<std::string, std::string>>;

/// A line of a request; a value with line feeds goes on in further ones.
void add_line(std::string& request, std::string_view key, std::string_view value) {
    request.append(key) += ' ';
    for (const char c : value) c == '\n' ? request += "\nmore " : request += c;
    request += '\n';
}

std::shared_ptr<const Descriptor> new_facts() {
    auto result = std::make_shared<const Descriptor>(memfd_create("facts", MFD_CLOEXEC));
    if (result->id() < 0) throw IoError("cannot make a file in memory for a launcher's facts");
    return result;
}

/// The whole lines that were written so far: word and text.
Lines facts_in(const std::shared_ptr<const Descriptor>& file) {
    constexpr off_t most_bytes = 1 << 20;
    struct stat seen {};
    if (!file || fstat(file->id(), &seen) != 0) return {};
    std::string all(std::size_t(std::min(seen.st_size, most_bytes)), '\0');
    all.resize(std::size_t(std::max<ssize_t>(pread(file->id(), all.data(), all.size(), 0), 0)));
    Lines result;
    for (std::size_t from = 0, end = 0; (end = all.find('\n', from)) != npos; from = end + 1) {
        const std::string line = all.substr(from, end - from);
        const std::size_t blank = std::min(line.find(' '), line.size());
        result.emplace_back(line.substr(0, blank),
                            printable_line(line.substr(std::min(blank + 1, line.size()))));
    }
    return result;
}

std::vector<std::string> facts_named(const Lines& facts, std::string_view word) {
    std::vector<std::string> result;
    for (const auto& [key, text] : facts)
        if (key == word) result.push_back(text);
    return result;
}

/// `failed KIND TEXT`; a kind that is none is the launcher's own fault.
std::optional<Failure> failure_in(const Lines& facts) {
    const std::vector<std::string> all = facts_named(facts, "failed");
    if (all.empty()) return std::nullopt;
    const std::size_t blank = std::min(all.back().find(' '), all.back().size());
    Failure result{FailureKind::infrastructure,
                   all.back().substr(std::min(blank + 1, all.back().size()))};
    for (const auto& [kind, called] : failure_kinds)
        if (called == all.back().substr(0, blank)) result.kind = kind;
    return result;
}

class WrappedLauncher : public Launcher {
public:
    explicit WrappedLauncher(WrappedOptions options) : options_(std::move(options)) {}

    [[nodiscard]] std::string name() const override { return options_.name; }
    [[nodiscard]] bool on_this_machine() const override { return false; }
    [[nodiscard]] bool gives_out_devices() const override {
        return !facts_named(about(), "devices").empty();
    }
    [[nodiscard]] std::string listen_address() const override {
        const auto said = facts_named(about(), "listen");
        return said.empty() ? "127.0.0.1" : said.back();
    }
    [[nodiscard]] std::pair<int, int> ports() const override {
        std::pair<int, int> result{0, 0};
        for (const std::string& text : facts_named(about(), "ports")) {
            const char* const end = text.data() + text.size();
            const auto first = std::from_chars(text.data(), end, result.first);
            if (first.ptr < end) (void)std::from_chars(first.ptr + 1, end, result.second);
        }
        return result;
    }
    [[nodiscard]] std::vector<std::string> images() const override {
        return options_.setting("images");
    }

    [[nodiscard]] std::string wrong_settings() const override {
        std::string all;
        for (const std::string& text : facts_named(about(), "wrong"))
            all += (all.empty() ? "`" + options_.name + "` of `deploy`: " : "; ") + text;
        return all;
    }
    [[nodiscard]] std::string trouble(const std::string& image) const override {
        try {
            if (std::string wrong = wrong_settings(); !wrong.empty()) return wrong;
            std::string request = begun();
            if (!image.empty()) add_line(request, "image", image);
            const Lines answer = ask("check", request);
            const std::scoped_lock lock(mutex_);
            remarks_ = facts_named(answer, "note");
            const auto wrong = facts_named(answer, "wrong");
            return wrong.empty() ? "" : wrong.front();
        } catch (const Error& error) {
            return error.what();
        }
    }
    [[nodiscard]] std::vector<std::string> remarks() const override {
        const std::scoped_lock lock(mutex_);
        return remarks_;
    }

    [[nodiscard]] Launch launch(const LaunchRequest& request) const override {
        if (const std::string wrong = wrong_settings(); !wrong.empty()) throw UsageError(wrong);
        end_earlier();
        Launch result;
        result.name = new_launch_name(label_here_of(request.mark));
        result.image = request.image;
        result.program = request.command.argv.front();
        result.argv = options_.program;
        result.argv.emplace_back("start");
        result.environment = secret_variables();  // by which its clients may log in
        result.facts = new_facts();
        result.beats = wanted_every;
        result.told = told(request, result.name);
        return result;
    }

    [[nodiscard]] LaunchedAt place(const Launch& launch) const override {
        LaunchedAt at{"the launcher " + options_.name + " starts it"};
        for (const auto& [word, text] : facts_in(launch.facts)) {
            if (word == "wrong") throw UsageError(text);  // not the cluster's to mend
            if (word == "waits") at.waits = text;
            if (word == "place")
                at.place[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
            if (word != "at") continue;
            at.waits.clear();
            const std::size_t blank = std::min(text.find(' '), text.size());
            at.host = text.substr(0, blank);
            at.inside = text.substr(std::min(blank + 1, text.size()));
        }
        return at;
    }

    /// By the end of its input: it ends the engine, and hands its last words on.
    bool ask_to_end(const Launch& /*launch*/, Process& process) const override {
        process.hang_up();
        return true;
    }

    [[nodiscard]] std::optional<Failure> lost(const Launch& launch) const override {
        try {
            return failure_in(ask("lost", launched(launch)));
        } catch (const IoError& error) {
            return Failure{FailureKind::infrastructure, error.what()};
        }
    }

    [[nodiscard]] std::optional<Failure> ended(
        const Launch& launch, int exit_code,
        const std::vector<std::string>& /*lines*/) const override {
        const Lines facts = facts_in(launch.facts);
        if (auto failure = failure_in(facts)) return failure;
        if (!facts_named(facts, "ended").empty()) return std::nullopt;
        return Failure{FailureKind::infrastructure,
                       "the launcher " + options_.name + " ended with exit code " +
                           std::to_string(exit_code) + " and did not say how the engine did"};
    }

    std::string remove(const Launch& launch) const override {
        const auto [blocks, all] = removed(launched(launch));
        const std::scoped_lock lock(mutex_);
        if (blocks) not_removed_[launch.name] = launched(launch);
        return all.empty() ? all : all + "\n";
    }

    [[nodiscard]] std::vector<std::string> leftovers(const std::string& mark) const override {
        return of_study("leftovers", mark);
    }
    std::vector<std::string> end_leftovers(const std::string& mark) const override {
        return of_study("remove", mark);
    }

private:
    /// What the program says to a verb. Throws IoError where it does not come to its end.
    [[nodiscard]] Lines ask(const std::string& verb, const std::string& request) const {
        const auto facts = new_facts();
        ProcessOptions options;
        options.argv = options_.program;
        options.argv.push_back(verb);
        options.environment = secret_variables();
        options.facts = facts;
        options.beats = wanted_every;
        options.told = request + "\n";
        Process process(options);
        if (!process.wait(verb_patience)) (void)process.end(1s);
        const int code = process.exit_code().value_or(1);
        if (code == 0) return facts_in(facts);
        const std::vector<std::string> said = process.lines();
        throw IoError("the launcher " + options_.name + " (" + options_.program.front() + " " +
                      verb + ") ended with exit code " + std::to_string(code) +
                      (said.empty() ? "" : ": " + said.back()));
    }

    /// What each request begins with.
    [[nodiscard]] std::string begun() const {
        std::string result;
        for (const auto& [key, value] : options_.lines) add_line(result, key, value);
        return result;
    }

    /// What its settings come to; asked once.
    [[nodiscard]] const Lines& about() const {
        const std::scoped_lock lock(asking_);
        if (!about_) about_ = ask("about", begun());
        return *about_;
    }

    [[nodiscard]] std::string told(const LaunchRequest& request, const std::string& name) const {
        std::string result = begun();
        const auto add = [&](std::string_view key, const std::string& value) {
            if (!value.empty()) add_line(result, key, value);
        };
        add("name", name);
        add("study", label_here_of(request.mark));
        add("folder", request.folder.string());
        add("image", request.image);
        if (request.port != 0) add("port", std::to_string(request.port));
        if (request.devices > 0) add("devices", std::to_string(request.devices));
        add("stop_within", std::to_string(std::int64_t(std::ceil(request.stop_within_seconds))));
        for (const auto& [hidden, value] : secret_variables()) add("hidden", hidden);
        std::map<std::string, std::string> environment = request.environment;
        if (!request.gpus.empty()) {
            environment["CUDA_VISIBLE_DEVICES"] = request.gpus;
            environment.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // as nvidia-smi counts
        }
        for (const auto& [variable, value] : environment) {
            if (const std::string why = wrong_with_variable(variable); !why.empty())
                throw UsageError("the engine's environment: " + why);
            add("environment", variable + "=" + value);
        }
        for (const auto& [file, content] : request.command.files) {
            add("file", file);
            add("content", content);
        }
        std::string cores;
        for (const int core : request.cores)
            cores += (cores.empty() ? "" : ",") + std::to_string(core);
        add("cores", cores);
        for (const std::string& word : request.command.argv) add_line(result, "word", word);
        return result + "\n";
    }

    /// The request of what was launched, and where it is.
    [[nodiscard]] static std::string launched(const Launch& launch) {
        std::string result = launch.told;
        result.pop_back();
        for (const std::string& at : facts_named(facts_in(launch.facts), "at"))
            add_line(result, "at", at);
        return result;
    }

    /// Whether something is left that keeps others out; what is left, for a person.
    [[nodiscard]] std::pair<bool, std::string> removed(const std::string& request) const {
        std::string all;
        bool blocks = true;
        try {
            const Lines facts = ask("remove", request);
            blocks = !facts_named(facts, "left").empty();
            for (const auto& [word, text] : facts)
                if (word == "left" || word == "note") all += (all.empty() ? "" : "; ") + text;
        } catch (const IoError& error) {
            all = error.what();
        }
        return {blocks, all};
    }

    /// What would not go before is tried again, so that an engine never meets the one before it.
    void end_earlier() const {
        const std::scoped_lock lock(removing_);
        for (;;) {
            std::pair<std::string, std::string> first;
            {
                const std::scoped_lock reading(mutex_);
                if (not_removed_.empty()) return;
                first = *not_removed_.begin();
            }
            if (const auto [blocks, all] = removed(first.second); blocks)
                throw IoError(
                    "an earlier engine may still be there, so none is started beside it: " + all);
            const std::scoped_lock erasing(mutex_);
            not_removed_.erase(first.first);
        }
    }

    [[nodiscard]] std::vector<std::string> of_study(const std::string& verb,
                                                    const std::string& mark) const {
        if (mark.empty()) return {};
        std::string request = begun();
        add_line(request, "study", label_here_of(mark));
        return facts_named(ask(verb, request), "left");
    }

    const WrappedOptions options_;
    mutable std::mutex asking_{}, removing_{};
    mutable std::mutex mutex_{};  ///< of what follows
    mutable std::optional<Lines> about_{};
    mutable std::vector<std::string> remarks_{};
    mutable std::map<std::string, std::string> not_removed_{};  ///< name -> request
};

}  // namespace

std::vector<std::string> WrappedOptions::setting(std::string_view key) const {
    std::vector<std::string> result;
    for (const auto& [word, text] : lines)
        if (word == "set" && text.starts_with(std::string(key) + " "))
            result.push_back(text.substr(key.size() + 1));
    return result;
}

std::shared_ptr<const Launcher> wrapped_launcher(WrappedOptions options) {
    if (options.program.empty()) throw UsageError("a launcher needs a program");
    return std::make_shared<WrappedLauncher>(std::move(options));
}

}  // namespace servetune
