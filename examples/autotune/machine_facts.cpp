// SPDX-License-Identifier: Apache-2.0
#include "machine_facts.hpp"

#include "base/url.hpp"
#include "host/run_command.hpp"
#include "host/start_program.hpp"
#include "load/http.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>

namespace autotune {

using namespace servetune;

namespace {

/// Host and port of `http://host:port/...`; the port as its scheme has it where none is said.
std::pair<std::string, std::string> host_and_port(const std::string& url) {
    std::string rest = without_user_info(url);
    const auto scheme = rest.find("://");
    rest = rest.substr(scheme == std::string::npos ? 0 : scheme + 3);
    rest.resize(std::min(rest.find('/'), rest.size()));
    const bool literal = rest.starts_with('[');  // IPv6
    const auto end = literal ? rest.find(']') + 1 : rest.find(':');
    const std::string port = end < rest.size() ? rest.substr(end + 1) : "";
    return {literal ? rest.substr(1, end - 2) : rest.substr(0, end), !port.empty() ? port
                                                                     : url.starts_with("https")
                                                                         ? "443"
                                                                         : "80"};
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

bool installed_here(const Engine& engine) {
    if (engine.launch.empty()) return false;
    const std::string program = find_program(engine.launch.front()).string();
    if (program.empty() || engine.launch.size() < 3 || engine.launch[1] != "-m")
        return !program.empty();
    const std::string question =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    const std::string package = engine.launch[2].substr(0, engine.launch[2].find('.'));
    constexpr std::size_t output_bytes = 64UL << 10UL;
    const RanCommand asked =
        run_command({program, "-c", question, package}, std::chrono::seconds(10), output_bytes);
    return asked.end == RanCommand::End::exited && asked.exit_code == 0;
}

std::vector<std::string> models_at(const std::string& url) {
    if (!anybody_listens(url)) return {};
    Endpoint endpoint;
    endpoint.url = url;
    constexpr double within_seconds = 10;
    return ask_for_models(endpoint, within_seconds).names;
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
