// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/model_spec.hpp"
#include "servetune/expression.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace servetune {

class Catalogue;

/// `a | b`: the first of these expressions that has a value.
using Alternatives = std::map<std::string, std::string>;

/// Which weights a layer has: `use` names a block.
struct LayerChoice {
    std::string use;
    Expression when{};
};

/// Parts of a layer: what it keeps of a sequence, and parameters by module.
struct LayerBlock {
    Alternatives facts{}, linear{}, experts{}, other{};
};

struct WeightFormat {
    double bits = 0;  ///< of a parameter, with its scales
    bool experts_only = false;
};

/// What keys of a config.json mean to models of some types; the usual ones behind.
struct ModelFamily {
    std::vector<std::string> types{};  ///< model_type, or classes under `architectures`
    std::string like{};                ///< a type of another family, whose names stand behind
    Alternatives names{};
    Alternatives assumed{};  ///< where nothing says them; that is noted
    std::vector<LayerChoice> mixer{}, feed_forward{};
    std::vector<Expression> contradictions{};  ///< that should not hold in any layer
};

/// search_spaces/architectures.yaml.
struct ModelFamilies {
    ModelFamily usual{};
    std::map<std::string, LayerBlock> blocks{};
    std::map<std::string, WeightFormat> quantizations{};
    std::vector<ModelFamily> families{};
};

}  // namespace servetune
