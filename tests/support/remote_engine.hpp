// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/autotune.hpp"
#include "support/temporary_folder.hpp"
#include "support/waiting.hpp"

#include "servetune/catalogue.hpp"
#include "base/present.hpp"
#include "servetune/engine_evaluator.hpp"
#include "servetune/error.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

namespace servetune::test {

/// A simulated vLLM behind a launcher, with one small workload of so many `requests`.
class RemoteEngine {
public:
    /// `complains`: on TERM it prints what an engine prints that breaks under load.
    explicit RemoteEngine(std::shared_ptr<const Launcher> launcher, int requests = 40,
                          bool complains = false) {
        std::filesystem::create_directories(folder_.path() / "bin");
        if (complains) {
            const std::filesystem::path file =
                folder_.write("bin/vllm", "#!/bin/sh\n'" SIMENGINE_PROGRAM
                                          "' vllm \"$@\" & engine=$!\n"
                                          "trap 'echo vllm.v1.engine.exceptions.EngineDeadError: "
                                          "EngineCore encountered an issue; sleep 1; "
                                          "kill $engine; exit 1' TERM\nwait $engine\n");
            std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        } else std::filesystem::create_symlink(SIMENGINE_PROGRAM, folder_.path() / "bin/vllm");
        options.folder = folder_.path() / "study";
        options.deploy.launcher = std::move(launcher);
        options.deploy.environment = {
            {"SIMENGINE_OPTIONS", "--start-scale 1000 --time-scale 20"},
            {"SERVETUNE_SEARCH_SPACES",
             (std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces").string()},
            {"PATH", (folder_.path() / "bin").string() +
                         ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}};
        options.deploy.mark = options.folder.string();
        options.deploy.stop_within_seconds = 8;
        options.deploy.ready_within_seconds = 20;
        options.measure.warm_up_requests = 2;
        options.measure.infrastructure_retries = 0;
        options.measure.phase = [this](std::uint64_t /*trial*/, const std::string& phase) {
            const std::scoped_lock lock(mutex_);
            phases_ += phase + "\n";
        };
        workload_.name = "small";
        workload_.dataset.input_tokens = 64;
        workload_.dataset.output_tokens = 64;
        workload_.requests = requests;
        workload_.arrival.kind = Arrival::Kind::concurrency;
        workload_.arrival.in_flight = 4;
        workload_.ignore_eos = true;
        SpaceDescription description{
            {Catalogue(std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces")
                 .engine(std::string("vllm"))}};
        description.others_searched = false;
        composition_ = std::make_unique<Composition>(std::move(description));
    }
    /// In an image that has the engine: nothing of this machine's folders is there.
    void in_image() {
        options.deploy.environment.erase("PATH");
        options.deploy.environment.erase("SERVETUNE_SEARCH_SPACES");
    }
    Outcome measure(const std::stop_token& stop = {}) {
        EngineEvaluator evaluator(*composition_, "Qwen/Qwen3-8B", StudyWorkloads{{workload_}},
                                  options);
        EvaluationContext context;
        context.stop = stop;
        return evaluator.evaluate({}, context);
    }
    /// What came of it, for a person: a failure with its kind, or what stops a run.
    std::string measured(const std::stop_token& stop = {}) {
        try {
            const Outcome outcome = measure(stop);
            const auto* failure = std::get_if<Failure>(&outcome);
            return failure == nullptr ? "measured"
                                      : std::string(name_in(failure_kinds, failure->kind)) + ": " +
                                            failure->message;
        } catch (const IoError& error) {
            return std::string("the machine: ") + error.what();
        }
    }
    /// In a thread; `disturb` once the load test runs.
    std::string disturbed(const std::function<void()>& disturb) {
        std::string message;
        std::thread measuring([&] { message = measured(); });
        if (comes_true([&] { return phases().find("small: 1") != std::string::npos; })) disturb();
        else message = "it was never under load: " + phases();
        measuring.join();
        return message;
    }
    [[nodiscard]] std::string phases() const {
        const std::scoped_lock lock(mutex_);
        return phases_;
    }
    [[nodiscard]] std::string mark() const { return options.deploy.mark; }
    /// Of this engine, wherever they were started: its folder is in their PATH.
    [[nodiscard]] std::size_t processes() const {
        std::size_t result = 0;
        std::error_code none;
        for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
            std::ifstream stream(process.path() / "environ", std::ios::binary);
            const std::string environment{std::istreambuf_iterator<char>(stream), {}};
            result +=
                environment.find("PATH=" + (folder_.path() / "bin").string()) != std::string::npos
                    ? 1
                    : 0;
        }
        return result;
    }

    EngineEvaluator::Options options;

private:
    TemporaryFolder folder_;
    Workload workload_;
    std::unique_ptr<Composition> composition_;
    mutable std::mutex mutex_{};
    std::string phases_;
};

}  // namespace servetune::test
