// SPDX-License-Identifier: Apache-2.0
#include "engine_setup.hpp"

#include "weight_cache.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace simengine {
namespace {

using servetune::Catalogue;
using servetune::UsageError;

/// What clients call the model, and what it is called otherwise.
std::vector<std::string> served_names(const Dialect& dialect, const EngineCommand& command) {
    const char* flag = dialect.kind == EngineKind::llama_cpp ? "--alias" : "--served-model-name";
    const auto found = command.flags.find(flag);
    return found != command.flags.end() ? found->second : std::vector<std::string>{command.model};
}

/// The command for the cost model, with a model that it knows.
servetune::Command with_figures_of(const EngineCommand& command,
                                   const std::vector<servetune::ModelSpec>& models,
                                   const std::string& other) {
    servetune::Command result = command.modelled;
    const auto known = servetune::served_model(command.model, models);
    if (other.empty() || (known && known->model.weights.contains(known->quantization)))
        return result;
    std::replace(result.argv.begin(), result.argv.end(), command.model, other);
    return result;
}

servetune::HardwareSpec chip_of(const Catalogue& catalogue, const std::string& name) {
    try {
        return catalogue.hardware(name);
    } catch (const servetune::IoError& error) {
        throw UsageError(std::string("--hardware: ") + error.what());
    }
}

}  // namespace

std::vector<std::string> EngineSetup::log_lines(const std::string& event) const {
    constexpr double mib = 1024.0 * 1024;
    const servetune::CostModel& model = servetune::present(cost);
    const servetune::ServingTarget& target = model.target();
    // What is allocated when it goes wrong is a layer's weights, or about that.
    const double piece = model.memory().weights_bytes / static_cast<double>(target.model.layers);
    const std::vector<std::pair<std::string, std::string>> values{
        {"model", target.model.name},
        {"missing_mib", fmt::format("{:.2f}", piece / mib)},
        {"device_gib", fmt::format("{:.2f}", target.hardware.memory_bytes / mib / 1024)}};
    std::vector<std::string> lines;
    if (const auto found = target.traits.log.find(event); found != target.traits.log.end())
        for (const std::string& line : found->second)
            lines.push_back(servetune::filled(line, values));
    return lines;
}

EngineSetup set_up(const Options& options) {
    const Catalogue catalogue =
        options.search_spaces.empty() ? Catalogue::standard() : Catalogue(options.search_spaces);
    const std::vector<servetune::Engine> engines = catalogue.engines();
    const Recognized known = recognized(engines, options.engine_words);
    if (known.dialect == nullptr)
        throw UsageError(
            "an engine's command wanted behind the options: vllm serve MODEL, python3 -m "
            "sglang.launch_server --model-path MODEL, "
            "trtllm-serve MODEL or llama-server -m FILE" +
            (options.engine_words.empty() ? std::string()
                                          : "; got '" + options.engine_words.front() + "'"));
    EngineSetup setup;
    setup.dialect = known.dialect;
    setup.engine = *known.engine;
    const std::string& name = setup.engine.name;
    const std::vector<servetune::FlagFacts> versions =
        servetune::known_versions(catalogue.root(), name);
    if (versions.empty())
        throw servetune::IoError((catalogue.root() / "engines/versions").string() +
                                 " has no version of " + name);
    setup.version = versions.back().version;
    const std::vector<std::string> words(
        options.engine_words.begin() + static_cast<std::ptrdiff_t>(known.words),
        options.engine_words.end());
    const auto commands = std::make_shared<const servetune::CommandReader>(
        std::vector{setup.engine}, catalogue.root());
    const PreloadWords preload =
        known.holds_weights ? read_preload(words) : PreloadWords{words, ""};
    setup.command = read_engine_command(*known.dialect, preload.engine_words, versions.back(),
                                        setup.engine, *commands);
    setup.command.folder = preload.folder;
    if (setup.command.wants_help) {
        setup.help = help_text(*known.dialect, versions.back());
        return setup;
    }
    setup.served_names = served_names(*known.dialect, setup.command);

    const std::vector<servetune::ModelSpec> models = catalogue.all_models();
    const servetune::ServingReader reader(setup.engine, catalogue.traits(name), models,
                                          chip_of(catalogue, options.hardware), "", commands);
    const servetune::Serving serving =
        reader.read(with_figures_of(setup.command, models, options.model));
    setup.parameters = serving.parameters;
    setup.not_modelled = serving.not_modelled;
    setup.cost.emplace(serving.target, serving.settings);
    setup.start = serving.refused.end != servetune::StartResult::End::serves
                      ? serving.refused
                      : servetune::start(*setup.cost, serving.parameters);
    setup.defect = servetune::load_defect(serving.target.traits, serving.parameters);
    return setup;
}

}  // namespace simengine
