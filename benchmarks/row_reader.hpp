// SPDX-License-Identifier: Apache-2.0
// Commands of measured rows, read by the shipped files.
#pragma once

#include "engine/command_reader.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/predict/serving.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

class RowReader {
public:
    explicit RowReader(const Catalogue& catalogue) : catalogue_(catalogue) {}

    /// Of a command on a chip; behind ` | ` its options file. Throws UsageError.
    Serving read(const std::string& engine, const std::string& version, const std::string& chip,
                 const std::string& command) {
        const std::string key = engine + version + chip;
        auto reader = readers_.find(key);
        if (reader == readers_.end()) {
            const Engine known = catalogue_.engine(engine);
            reader = readers_
                         .emplace(key, ServingReader(known, catalogue_.traits(engine, version),
                                                     catalogue_.all_models(),
                                                     catalogue_.hardware(chip), version,
                                                     std::make_shared<const CommandReader>(
                                                         std::vector{known}, catalogue_.root())))
                         .first;
        }
        const std::size_t options = command.find(" | ");
        Command words{shell_words(command.substr(0, options))};
        if (options != std::string::npos) words.files["options.yaml"] = command.substr(options + 3);
        Serving serving = reader->second.read(words);
        EngineTraits& traits = serving.target.traits;  // each prediction copies them
        traits.log.clear();
        traits.defaults.clear();
        std::erase_if(traits.kernels, [&](const auto& kernels) { return kernels.first != chip; });
        return serving;
    }

private:
    const Catalogue& catalogue_;
    std::map<std::string, ServingReader> readers_{};
};

}  // namespace servetune
