// SPDX-License-Identifier: Apache-2.0
// `autotune mcp`: the tools for agents, which the Python package serves (python/servetune/mcp.py).
#include "commands.hpp"
#include "output.hpp"
#include "templates.hpp"

#include "host/start_program.hpp"

#include <unistd.h>

#include <cstdlib>

namespace autotune {

int mcp(const McpArguments& arguments) {
    const char* named = std::getenv("SERVETUNE_PYTHON");  // NOLINT(concurrency-mt-unsafe)
    const fs::path python = find_program(named != nullptr ? named : "python3");
    if (python.empty()) {
        complain(
            "autotune: agents are served by Python, and there is no {} on the PATH: install "
            "it, then pip install 'servetune[mcp]'\n",
            named != nullptr ? named : "python3");
        return environment_error;
    }
    const std::string self = fs::read_symlink("/proc/self/exe").string();
    setenv("SERVETUNE_AUTOTUNE", self.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    const std::string place = "--directory=" + arguments.directory.string();
    execl(python.c_str(), python.c_str(), "-c", std::string(mcp_py_in.text).c_str(), place.c_str(),
          nullptr);
    complain("autotune: {} cannot be started\n", python.string());
    return environment_error;
}

}  // namespace autotune
