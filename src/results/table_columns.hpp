// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/template.hpp"

namespace servetune {

// Files in tables/. What trackers of experiments (W&B, MLflow, Ray Tune, Optuna) call columns:
// words between blanks, in lower case, `_` for a blank, `x*` for all that begin with x.

/// Which row it is, who made it, when it ran, how it ended: no parameter and no figure.
extern const EmbeddedFile columns_about_rows_txt;
/// Where there are such, all other columns are no parameters.
extern const EmbeddedFile columns_of_parameters_txt;
/// What `state` or `status` says of a run that came to no good end.
extern const EmbeddedFile bad_ends_txt;

/// Where the figures of benchmark tools stand in what they write, and what tells it from others.
extern const EmbeddedFile figures_of_tools_txt, known_by_txt;

}  // namespace servetune
