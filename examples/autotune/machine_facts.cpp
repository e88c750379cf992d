// SPDX-License-Identifier: Apache-2.0
#include "machine_facts.hpp"

#include "load/http.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace autotune {

using namespace servetune;

namespace {

/// Host and port of `http://host:port/...`; the port as its scheme has it where none is said.
std::pair<std::string, std::string> host_and_port(const std::string& url) {
    const auto scheme = url.find("://");
    std::string rest = scheme == std::string::npos ? url : url.substr(scheme + 3);
    rest = rest.substr(0, rest.find('/'));
    if (const auto at = rest.rfind('@'); at != std::string::npos) rest = rest.substr(at + 1);
    const auto bracket = rest.find(']');
    const auto colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
    std::string host = rest.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return {host, colon == std::string::npos ? (url.starts_with("https") ? "443" : "80")
                                             : rest.substr(colon + 1)};
}

/// What a short command prints on its standard output; nothing where it cannot be started, fails or
/// takes too long.
std::optional<std::string> answer_of(const std::vector<std::string>& argv) {
    try {
        ProcessOptions options;
        options.argv = argv;
        options.answer_bytes = 64UL << 10UL;
        Process process(options);
        const bool ended = process.wait(std::chrono::seconds(10));
        (void)process.end(std::chrono::seconds(1));
        if (ended && process.exit_code() == 0) return process.answer();
    } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): it cannot be asked
    }
    return std::nullopt;
}

/// Whether a connection to this address is taken within a second.
bool takes_connection(const addrinfo& address) {
    const int descriptor = socket(
        address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
    if (descriptor < 0) return false;
    bool connected = connect(descriptor, address.ai_addr, address.ai_addrlen) == 0;
    if (!connected && errno == EINPROGRESS) {
        pollfd waiting{descriptor, POLLOUT, 0};
        int error = ETIMEDOUT;
        socklen_t size = sizeof(error);
        if (poll(&waiting, 1, 1000) > 0)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
        connected = error == 0;
    }
    close(descriptor);
    return connected;
}

}  // namespace

std::filesystem::path program_on_path(const std::string& name) {
    if (name.empty()) return {};
    if (name.find('/') != std::string::npos)
        return access(name.c_str(), X_OK) == 0 ? std::filesystem::path(name)
                                               : std::filesystem::path();
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing sets it
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::filesystem::path file =
            std::filesystem::path(folder.empty() ? "." : folder) / name;
        std::error_code unknown;
        if (std::filesystem::is_regular_file(file, unknown) && access(file.c_str(), X_OK) == 0)
            return file;
    }
    return {};
}

bool installed_here(const Engine& engine) {
    if (engine.launch.empty() || program_on_path(engine.launch.front()).empty()) return false;
    if (engine.launch.size() < 3 || engine.launch[1] != "-m") return true;
    const std::string package = engine.launch[2].substr(0, engine.launch[2].find('.'));
    const std::string question =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    return answer_of({program_on_path(engine.launch.front()).string(), "-c", question, package})
        .has_value();
}

std::vector<std::string> gpus_here() {
    std::vector<std::string> result;
    const std::filesystem::path program = program_on_path("nvidia-smi");
    if (program.empty()) return result;
    std::istringstream lines(
        answer_of({program.string(), "--query-gpu=name", "--format=csv,noheader"}).value_or(""));
    for (std::string line; std::getline(lines, line);)
        if (line.find_first_not_of(" \t\r") != std::string::npos) result.push_back(line);
    return result;
}

std::optional<ServerHere> server_at(const std::string& url, double within_seconds) {
    if (!anybody_listens(url)) return std::nullopt;
    Endpoint endpoint;
    endpoint.url = url;
    const ModelList list = ask_for_models(
        endpoint, within_seconds);  // else it is something else than a server of models
    return list.names.empty() ? std::nullopt : std::optional(ServerHere{url, list.names});
}

std::vector<ServerHere> servers_here() {
    // Ports that servers take by themselves: vLLM and TensorRT-LLM, SGLang, llama.cpp, LMDeploy,
    // Ollama.
    constexpr std::array<const char*, 5> ports{"8000", "30000", "8080", "23333", "11434"};
    constexpr double within_seconds =
        0.5;  // for all: whoever listens and does not answer gets what is left
    const auto begin = std::chrono::steady_clock::now();
    std::vector<ServerHere> result;
    for (const char* port : ports) {
        const double left =
            within_seconds -
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (left <= 0) break;
        if (auto found = server_at("http://127.0.0.1:" + std::string(port), left))
            result.push_back(*std::move(found));
    }
    return result;
}

bool anybody_listens(const std::string& url) {
    const auto [host, port] = host_and_port(url);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* addresses = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &addresses) != 0) return false;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(addresses, &freeaddrinfo);
    for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next)
        if (takes_connection(*address)) return true;
    return false;
}

}  // namespace autotune
