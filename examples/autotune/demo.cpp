// SPDX-License-Identifier: Apache-2.0
// `autotune demo`: the study studies/demo.yaml, with simengine in the place of vLLM.
#include "commands.hpp"
#include "output.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "host/start_program.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <system_error>

namespace autotune {

namespace {

std::string variable_of(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
    return value == nullptr ? "" : value;
}

/// Beside this program, else on the PATH. Throws IoError where it is in neither place.
fs::path simengine_here() {
    std::error_code unknown;
    const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
    if (const fs::path beside = folder / "simengine"; access(beside.c_str(), X_OK) == 0)
        return beside;
    if (const fs::path other = find_program("simengine"); !other.empty())
        return fs::absolute(other);
    throw IoError(
        "the demo needs the program simengine, which plays the engine; it is neither in " +
        folder.string() +
        " nor on the PATH: install servetune whole (a build: the target simengine)");
}

/// A new folder: `autotune-demo` here, with a number where that is taken. Throws IoError.
fs::path new_folder() {
    std::error_code error;
    for (int number = 1; !error; ++number) {
        const fs::path folder =
            number == 1 ? "autotune-demo" : "autotune-demo-" + std::to_string(number);
        if (fs::exists(fs::symlink_status(folder, error))) continue;
        error.clear();  // it said that there is none
        if (fs::create_directory(folder, error)) return folder;
    }
    throw IoError("the demo cannot make its folder autotune-demo here: " + error.message() +
                  "; go to a folder that you can write");
}

/// What the study has found, from its report.
std::string found_text(const fs::path& folder, double seconds) {
    const auto report = nlohmann::json::parse(read_file(folder / "report.json"), RefuseDeep());
    std::string text = fmt::format("what happened: simulated, {} trials in {:.0f} s. {}",
                                   report.at("trials").at("told").get<int>(), seconds,
                                   report.at("headline").get<std::string>());
    const auto& best = report.at("recommended");
    return best.is_object() ? text + ": " + best.at("command").get<std::string>() : text;
}

/// A folder with the one program that the study's commands start.
fs::path engines_in(const fs::path& folder, const fs::path& simengine) {
    const fs::path engines = fs::absolute(folder) / "engines";
    std::error_code error;
    if (fs::create_directory(engines, error))
        fs::create_symlink(simengine, engines / "vllm", error);
    if (error)
        throw IoError("cannot make the link " + (engines / "vllm").string() + ": " +
                      error.message());
    return engines;
}

/// The study, with nothing else on the PATH: no program of this machine has a part in it,
/// nvidia-smi neither.
int run_with(const RunArguments& arguments, const fs::path& engines) {
    const std::string path = variable_of("PATH");
    setenv("PATH", engines.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    setenv("SIMENGINE_OPTIONS", "--start-scale 500", 1);  // NOLINT(concurrency-mt-unsafe): the same
    const int code = run(arguments);
    setenv("PATH", path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): there is one thread again
    return code;
}

}  // namespace

int demo() try {
    RunArguments arguments;
    arguments.study = Catalogue::standard().root() / "studies/demo.yaml";
    arguments.conclusion = false;
    const fs::path simengine = simengine_here();
    const fs::path folder = new_folder();
    arguments.directory = folder;
    complain(
        "A simulated study, about 15 s: simengine plays vLLM with Qwen3-14B on an H100. Processes, "
        "requests and load tests are real. "
        "It writes into {}.",
        folder.string());
    const auto begin = std::chrono::steady_clock::now();
    const int code = run_with(arguments, engines_in(folder, simengine));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (code == stopped)
        complain("the demo was stopped; nothing of it is running. What it has written is in {}",
                 folder.string());
    if (code != done) return code;
    put(stdout, "{}\nreport: {}\nnext: `autotune init` writes a study for your own model and GPU\n",
        found_text(folder, seconds), fs::absolute(folder / "report.html").string());
    return done;
} catch (const IoError& error) {
    complain("autotune: {}", error.what());
    return environment_error;
}

}  // namespace autotune
