// SPDX-License-Identifier: Apache-2.0
#include "kubectl.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "client_calls.hpp"
#include "host/kept_output.hpp"
#include "host/start_program.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr auto request_timeout = 10s;
constexpr std::size_t most_answer_bytes = 64UL << 20UL;  // a list of pods has some KiB for each

bool is_in(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

/// All variables but those that mark a process as one of a trial: kubectl ends with who started it.
std::vector<std::string> environment_of_user() {
    std::vector<std::string> result;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        if (!text.starts_with("SERVETUNE_GROUP=") && !text.starts_with("SERVETUNE_STUDY="))
            result.emplace_back(text);
    }
    return result;
}

/// A file in memory, so that the manifest is nowhere else.
Descriptor file_with(const std::string& text) {
    Descriptor file(memfd_create("servetune-manifest", MFD_CLOEXEC));
    for (std::size_t at = 0; file.id() >= 0 && at < text.size();) {
        const ssize_t wrote = ::write(file.id(), text.data() + at, text.size() - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0)
            throw IoError("cannot keep a manifest in memory: " +
                          std::generic_category().message(errno));
        at += static_cast<std::size_t>(wrote);
    }
    if (file.id() < 0 || lseek(file.id(), 0, SEEK_SET) != 0)
        throw IoError("cannot keep a manifest in memory: " +
                      std::generic_category().message(errno));
    return file;
}

int started_kubectl_pipe(const Pipe& pipe) {
    (void)fcntl(pipe.out.id(), F_SETFL, O_NONBLOCK);
    return pipe.in.id();
}

ChildProgram child_of(const std::vector<std::string>& words,
                      const std::vector<std::string>& command, int input) {
    const auto file = find_program(words.front());
    if (file.empty())
        throw IoError("there is no program '" + words.front() +
                      "' in $PATH to start jobs of Kubernetes with");
    ChildProgram result{.file = file,
                        .argv = words,
                        .environment = environment_of_user(),
                        .input_descriptor = input};
    result.argv.insert(result.argv.end(), command.begin(), command.end());
    ClientCalls::add_one();
    return result;
}

/// Reads what is there; false at the end of the stream.
bool read_piece(int from, std::string& into) {
    std::array<char, 65536> buffer{};
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got > 0) into.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

bool is_in_pod() {
    return std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}  // NOLINT(concurrency-mt-unsafe): nothing sets it

bool is_temporary_complaint(const std::string& complaint) {
    // Of our words, whoever is asked. Reasons: k8s.io/apimachinery, pkg/apis/meta/v1/types.go.
    constexpr std::array<std::string_view, 14> lasting{"(NotFound)",
                                                       "(AlreadyExists)",
                                                       "(Invalid)",
                                                       "(BadRequest)",
                                                       "is invalid:",
                                                       "exceeded quota",
                                                       "violates PodSecurity",
                                                       "does not exist",
                                                       "unknown flag",
                                                       "unknown command",
                                                       "error validating",
                                                       "error parsing",
                                                       "no configuration has been provided",
                                                       "timed out waiting for the condition"};
    if (is_in(complaint, "could not find the requested resource"))
        return true;  // NotFound of a whole kind
    return std::none_of(lasting.begin(), lasting.end(),
                        [&](std::string_view one) { return is_in(complaint, one); });
}

Kubectl::Kubectl(std::vector<std::string> program, const std::string& context,
                 const std::string& name_space)
    : words_(std::move(program)) {
    if (words_.empty()) words_.emplace_back("kubectl");
    if (!context.empty()) words_.push_back("--context=" + context);
    if (!name_space.empty()) words_.push_back("--namespace=" + name_space);
}

Kubectl::Answer Kubectl::once(const std::vector<std::string>& command, const std::string& input,
                              milliseconds within, const std::function<bool()>& give_up) const {
    RunningKubectl one(*this, command, input);
    Answer result;
    for (const auto until = Clock::now() + within; !one.over();) {
        std::array<pollfd, 2> waiting{{{one.output(), POLLIN, 0}, {one.errors(), POLLIN, 0}}};
        (void)poll(waiting.data(), waiting.size(), 20);
        result.output += one.read();
        const bool late = Clock::now() > until;
        if (!late && result.output.size() <= most_answer_bytes && !(give_up && give_up())) continue;
        one.kill();
        result.exit_code = 128 + SIGKILL;
        result.complaint = late ? "it did not answer in time" : "it was given up";
        return result;
    }
    result.exit_code = one.exit_code();
    if (result.exit_code != 0) result.complaint = one.complaint();
    return result;
}

std::string Kubectl::ask(const std::vector<std::string>& command, const std::string& input,
                         milliseconds patience, const std::function<bool()>& give_up) const {
    std::vector<std::string> bounded = command;
    // In a pod this option would keep kubectl from the pod's own account (kubernetes/kubernetes
    // #93474); `once` ends it in time.
    if (!is_in_pod())
        bounded.push_back("--request-timeout=" + std::to_string(request_timeout.count()) + "s");
    const auto until = Clock::now() + patience;
    for (milliseconds pause = 100ms;; pause = std::min(2 * pause, milliseconds(2000))) {
        constexpr auto to_start = 20s;  // a login may ask somebody first
        const Answer answer = once(bounded, input, request_timeout + to_start, give_up);
        if (answer.exit_code == 0) return answer.output;
        const bool temporary = is_temporary_complaint(answer.complaint);
        if (!temporary || Clock::now() + pause > until || (give_up && give_up()))
            throw KubectlError("kubectl " + command.front() + " failed: " + answer.complaint,
                               temporary);
        for (const auto next = Clock::now() + pause;
             Clock::now() < next && !(give_up && give_up());)
            std::this_thread::sleep_for(20ms);
    }
}

nlohmann::json Kubectl::json(const std::vector<std::string>& command, milliseconds patience) const {
    std::vector<std::string> words = command;
    words.emplace_back("--output=json");
    const std::string answer = ask(words, "", patience);
    if (trimmed(answer).empty()) return {};
    nlohmann::json result = shallow_json<nlohmann::json>(answer);
    if (result.is_discarded())
        throw KubectlError(
            "kubectl " + command.front() + " answered what is no JSON: " + answer.substr(0, 200),
            false);
    return result;
}

RunningKubectl::RunningKubectl(const Kubectl& kubectl, const std::vector<std::string>& command,
                               const std::string& input)
    : child_([&]() -> ChildGroup {
          const Descriptor told = input.empty() ? Descriptor() : file_with(input);
          return ChildGroup(child_of(kubectl.words(), command, told.id()),
                            started_kubectl_pipe(errors_), started_kubectl_pipe(output_));
      }()) {
    output_.in.reset();
    errors_.in.reset();
}

std::string RunningKubectl::read() {
    // Its helpers may hold the pipes when it has ended: what is there then is all.
    const bool ended = child_.ended();
    std::string result;
    const auto read_all = [&](int from, std::string& into, bool& open) {
        for (std::size_t before = into.size(); open; before = into.size()) {
            open = read_piece(from, into);
            if (into.size() == before) break;
        }
        open = open && !ended;
    };
    read_all(output_.out.id(), result, open_);
    read_all(errors_.out.id(), said_, errors_open_);
    constexpr std::size_t most_said = 64UL << 10UL;
    if (said_.size() > most_said) said_.erase(0, said_.size() - most_said);
    return result;
}

std::string RunningKubectl::complaint() const {
    std::string last = "exit code " + std::to_string(exit_code());
    for (const std::string& line : lines_of(said_))
        if (!trimmed(line).empty() && !line.starts_with("Warning:")) last = trimmed(line);
    return last.substr(0, 1000);
}

}  // namespace servetune
