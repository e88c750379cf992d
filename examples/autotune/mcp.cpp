// SPDX-License-Identifier: Apache-2.0
// `autotune mcp`: the tools for agents, which the Python package serves (python/servetune/mcp.py).
#include "commands.hpp"
#include "machine_facts.hpp"
#include "output.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace autotune {

int mcp(const std::filesystem::path& folder) {
    // The module's own file is found before a file of the folder that has its name.
    static const std::string program = R"(import sys
sys.path[:] = [place for place in sys.path if place]
try:
    from servetune.mcp import main
except ImportError as error:
    print(f"autotune: the tools for agents are in the Python package, and {sys.executable} cannot load it "
          f"({error}): pip install 'servetune[mcp]'", file=sys.stderr)
    sys.exit(3)
sys.exit(main(sys.argv[1:])))";
    const char* named = std::getenv("SERVETUNE_PYTHON");  // NOLINT(concurrency-mt-unsafe)
    const std::filesystem::path python = program_on_path(named != nullptr ? named : "python3");
    if (python.empty()) {
        complain(
            "autotune: agents are served by Python, and there is no {} on the PATH: install "
            "it, then pip install 'servetune[mcp]'\n",
            named != nullptr ? named : "python3");
        return environment_error;
    }
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    setenv("SERVETUNE_AUTOTUNE", self.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    const std::string place = "--directory=" + folder.string();
    execl(python.c_str(), python.c_str(), "-c", program.c_str(), place.c_str(), nullptr);
    complain("autotune: {} cannot be started\n", python.string());
    return environment_error;
}

}  // namespace autotune
