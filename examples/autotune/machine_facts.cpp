// SPDX-License-Identifier: Apache-2.0
#include "machine_facts.hpp"

#include "base/url.hpp"
#include "host/run_command.hpp"
#include "host/start_program.hpp"
#include "load/http.hpp"

#include <chrono>

namespace autotune {

using namespace servetune;

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
    Endpoint endpoint;
    endpoint.url = server_url(url);
    constexpr double within_seconds = 10;
    return ask_for_models(endpoint, within_seconds).names;
}

bool anybody_answers(const std::string& url) {
    Endpoint endpoint;
    endpoint.url = server_url(url);
    constexpr double within_seconds = 2;
    return get(endpoint, endpoint.models_path, within_seconds).status != 0;
}

}  // namespace autotune
