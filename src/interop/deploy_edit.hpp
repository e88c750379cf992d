// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deploy_file.hpp"
#include "deployment_model.hpp"
#include "engine/command_reader.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace servetune {

/// What a deploy file has to say of the engine: all that a study recommends of it.
struct DeployWish {
    Engine engine{};
    std::shared_ptr<const CommandReader> reader{};  ///< of this engine
    std::vector<std::string> flags{};               ///< behind the launch
    std::map<std::string, std::string> environment{};
    std::set<std::string>
        tuned{};  ///< parameters, flags of JSON and variables that the study decides
    std::vector<std::string>
        left_to_them{};  ///< what the study has and no file can get: secrets, files of options
    std::string model{};
    std::set<std::string>
        other_models{};  ///< that the study can serve instead: its own, checkpoints; empty: one model
    std::int64_t copies = 1;
    std::int64_t gpus = 0;  ///< of one engine; 0: not known
};

/// The recommended configuration as that.
DeployWish wish_of(const StudySetup& setup, const Configuration& configuration,
                   const DeploymentModel& deployment);

/// A flag, a variable, the model or a number of GPUs that is not as recommended.
struct DeployChange {
    std::string name{};  ///< the flag as the engine file spells it, the variable, `GPUs` or `model`
    std::string before{};  ///< what the file says, as words; empty: nothing
    std::string after{};   ///< what is recommended; empty: nothing
};

inline constexpr const char* model_change = "model";  ///< the name of such a change

/// What a file says against what was recommended.
struct DeployDifference {
    std::vector<DeployChange> changes{};
    std::vector<std::string>
        risks{};  ///< what else the file says that was not measured, a sentence each
    std::vector<std::string>
        by_hand{};  ///< what has to be changed and stands in no place that is known
};
DeployDifference difference_of(const DeployCommand& command, const DeployWish& wish);

/// A changed file.
struct DeployEdit {
    DeployDifference difference{};
    std::string text{};    ///< the whole file, changed
    std::string unsafe{};  ///< why the file is not changed; `text` is then empty
};

/// Writes the wish into a command of the file: text is replaced at the places found, nothing else
/// is. What comes out is read again: its command must say what is recommended, and all else the
/// same as before, or the edit is unsafe.
DeployEdit edit_deploy_file(const DeployFile& file, const DeployCommand& command,
                            const DeployWish& wish, const std::string& name);

}  // namespace servetune
