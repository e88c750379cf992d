// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "first_study.hpp"
#include "study_file/recipes.hpp"

#include "servetune/study_file.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace autotune {

/// The configuration of which the cost model expects most, of the default and those drawn, and what
/// it expects. Defined by `suggest`.
servetune::Configuration best_believed(const servetune::StudySetup& setup,
                                       std::optional<double>& gain,
                                       std::optional<double>& predicted);

/// A published deployment as the study's engine takes it.
struct KnownRecipe {
    servetune::RecipeMatch match;
    servetune::AppliedRecipe applied;
    std::size_t devices = 1;
};

/// What `init --preset known` makes of a first study: the default, each recipe that fits, the cost
/// model's best, and the nearest recipe without one change each.
class KnownStudy {
public:
    /// The recipes that fit, those of `more` (a file or folder of vllm-project/recipes; empty:
    /// none) before ours. Gives `study` the devices that the nearest takes, unless their number is
    /// `fixed`. Throws UsageError where there are none.
    KnownStudy(FirstStudy& study, const std::filesystem::path& more, bool fixed,
               const servetune::Catalogue& catalogue);

    using Draft = std::function<servetune::StudySetup(const FirstStudy&)>;
    /// Gives `study` its space and stages. `draft`: sets up a study as it stands. Throws
    /// UsageError where no recipe starts, by the cost model.
    void write_into(FirstStudy& study, const Draft& draft);
    /// For the person, a sentence each: which recipes these are, and what was left out.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    [[nodiscard]] std::string notes_text() const;
    servetune::Engine engine_;
    servetune::HardwareSpec chip_;
    std::string version_;  ///< that is installed; empty: the newest
    std::vector<KnownRecipe> recipes_{};
    std::vector<std::string> notes_{};
};

}  // namespace autotune
