// SPDX-License-Identifier: Apache-2.0
#include "served_engine.hpp"

#include "engine/command_reader.hpp"
#include "server_probe.hpp"
#include "servetune/detail/base/present.hpp"

#include <utility>

namespace servetune {
namespace {

/// Of roles only the router listens for clients.
bool runs_roles(const std::vector<ServerPart>& parts) { return !parts.front().role.empty(); }

Command rendered_part(const Composition& composition, const Configuration& configuration,
                      const LaunchTarget& target, const std::string& role) {
    return role.empty() ? composition.render(configuration, target)
                        : composition.render(configuration, target, role);
}

std::vector<ServerPart> with_renders(std::vector<ServerPart> parts, const Composition& composition,
                                     const std::string& model, const Configuration& configuration,
                                     const ServedAt& at) {
    const bool roles = runs_roles(parts);
    int next = at.port;
    for (ServerPart& part : parts) {
        if (!roles) part.port = next++;
        const std::string host = roles ? std::string("127.0.0.1") : at.host;
        part.render = [&composition, configuration, model, host, role = part.role](int port,
                                                                                   int side_port) {
            return rendered_part(composition, configuration, {model, host, port, side_port}, role);
        };
    }
    return parts;
}

std::optional<ServerRouter> router_at(const Composition& composition, const std::string& model,
                                      const Configuration& configuration,
                                      const std::vector<ServerPart>& parts, const ServedAt& at) {
    if (!runs_roles(parts)) return std::nullopt;
    return ServerRouter{present(composition.engine_of(configuration).roles).router_ready,
                        [&composition, configuration, model, host = at.host](
                            int port, int side_port, const auto& servers) {
                            return composition.render_router(
                                configuration, {model, host, port, side_port}, servers);
                        },
                        at.port};
}

Engine asked_as(const Engine& engine, const std::vector<ServerPart>& parts) {
    Engine result = engine;
    if (runs_roles(parts)) result.ready_path = present(engine.roles).router_ready;
    return result;
}

std::string name_for_clients(const Composition& composition, const std::string& model,
                             const Configuration& configuration,
                             const std::vector<ServerPart>& parts) {
    return CommandReader({composition.engine_of(configuration)})
        .served_name(
            rendered_part(composition, configuration, {.model = model}, parts.front().role));
}

}  // namespace

ServedEngine::ServedEngine(const Composition& composition, const std::string& model,
                           const Configuration& configuration, std::vector<ServerPart> parts,
                           const DeployOptions& options, const ServedAt& at,
                           const std::stop_token& stop)
    : engine_(asked_as(composition.engine_of(configuration), parts)),
      replicas_(composition.engine_of(configuration),
                with_renders(parts, composition, model, configuration, at),
                router_at(composition, model, configuration, parts, at),
                name_for_clients(composition, model, configuration, parts), options, stop) {}

std::vector<std::string> ServedEngine::addresses() const {
    const Endpoint endpoint = replicas_.endpoint();
    std::vector<std::string> result{endpoint.url};
    result.insert(result.end(), endpoint.replicas.begin(), endpoint.replicas.end());
    return result;
}

std::string ServedEngine::why_silent(double answer_within_seconds,
                                     const std::stop_token& stop) const {
    Endpoint endpoint = replicas_.endpoint();
    endpoint.replicas.clear();
    for (const std::string& url : addresses()) {
        endpoint.url = url;
        const ProbeAnswer answer = ServerProbe(engine_, endpoint, [&stop] {
                                       return stop.stop_requested();
                                   }).ask(answer_within_seconds, false);
        if (answer.state == ProbeAnswer::State::not_yet ||
            answer.state == ProbeAnswer::State::failed)
            return url + ": " + answer.message;
    }
    return "";
}

std::size_t ServedEngine::ports_of(const std::vector<ServerPart>& parts) {
    return runs_roles(parts) ? 1 : parts.size();
}

}  // namespace servetune
