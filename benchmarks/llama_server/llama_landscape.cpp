// SPDX-License-Identifier: Apache-2.0
// The two ends of scripts/benchmark-llama-server: makes the model that is served, and a table of
// what was measured.
//   llama_landscape model FILE      a model of random weights, 76 MB llama_landscape table
//   FOLDER... CSV of the studies' journals, one run of all configurations each
#include "base/files.hpp"
#include "convergence/sample.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "support/tiny_model.hpp"

#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace servetune;

namespace {

const std::string metric = "output_tokens_per_second";

/// Large enough that a step is weights from memory and not the server's own work: threads, batches
/// and caches matter.
std::string model() {
    return test::TinyModel{.embedding = 512,
                           .layers = 6,
                           .heads = 8,
                           .kv_heads = 4,
                           .feed_forward = 1536,
                           .context_tokens = 32768}
        .gguf();
}

struct Runs {
    std::vector<double> rates;
    std::vector<std::string> failures;
};

/// Whether a number counts: one that breaks a limit (all requests must succeed) is this task's
/// failure.
std::optional<double> rate_of(const Trial& trial, std::string& failure) {
    if (const Failure* failed = trial.failure()) {
        failure = std::string(name_in(failure_kinds, failed->kind));
        return std::nullopt;
    }
    const Measurement* measured = trial.measurement();
    if (measured == nullptr) return std::nullopt;
    if (const auto success = measured->metrics.find("success_ratio");
        success == measured->metrics.end() || success->second.value < 0.99) {
        failure = "other";
        return std::nullopt;
    }
    return measured->metrics.at(metric).value;
}

/// A configuration counts as failed where it failed in most of its runs. `cv`: of one run, from the
/// runs' spread.
void print_table(const std::vector<std::string>& folders) {
    std::map<Configuration, Runs> all;
    for (const std::string& folder : folders)
        for (const Trial& trial : SqliteJournal::read(folder).trials()) {
            if (!trial.of_search() || !trial.told()) continue;
            std::string failure;
            Runs& runs = all[trial.configuration];
            if (const auto rate = rate_of(trial, failure)) runs.rates.push_back(*rate);
            else if (!failure.empty()) runs.failures.push_back(failure);
        }
    if (all.empty()) throw UsageError("these studies have measured nothing");
    std::vector<std::string> names;
    for (const auto& [name, value] : all.begin()->first.entries()) names.push_back(name);
    for (const std::string& name : names) std::printf("%s,", name.c_str());
    std::printf("status,%s,runs,cv\n", metric.c_str());
    for (const auto& [configuration, runs] : all) {
        for (const std::string& name : names) {
            const Value* value = configuration.find(name);
            if (value == nullptr)
                throw UsageError("all configurations of a table have the same parameters");
            std::printf("%s,", text_of(*value).c_str());
        }
        if (runs.rates.size() <= runs.failures.size()) {
            std::printf("%s,,%zu,\n", runs.failures.front().c_str(), runs.failures.size());
            continue;
        }
        const double mean = convergence::mean(runs.rates);
        const double of_one_run = convergence::standard_error(runs.rates) *
                                  std::sqrt(static_cast<double>(runs.rates.size()));
        std::printf("ok,%.2f,%zu,%.4f\n", mean, runs.rates.size(), of_one_run / mean);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        if (words.size() == 2 && words[0] == "model") write_file(words[1], model());
        else if (words.size() >= 2 && words[0] == "table")
            print_table({words.begin() + 1, words.end()});
        else
            throw UsageError("usage: llama_landscape model FILE | llama_landscape table FOLDER...");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
    return 0;
}
