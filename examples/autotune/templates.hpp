// SPDX-License-Identifier: Apache-2.0
// The files of `templates/` in the program (cmake/embed.cmake).
#pragma once

#include "base/template.hpp"
#include "study_file/yaml_text.hpp"

namespace servetune {

extern const EmbeddedFile study_yaml_in;         ///< what `init` writes
extern const EmbeddedFile pod_yaml_in;           ///< the pod of a trial in a cluster
extern const EmbeddedFile servetune_yaml_in;     ///< what runs a study in a cluster
extern const EmbeddedFile autotune_pod_yaml_in;  ///< the pod of autotune there, its part `pod`

extern const EmbeddedFile suggestion_txt_in, no_suggestion_txt_in;  ///< what `suggest` prints

extern const EmbeddedFile remedies_txt_in;  ///< of `doctor`

extern const EmbeddedFile commands_in;  ///< all commands and options
extern const EmbeddedFile help_in, command_help_in, manual_1_in, commands_md_in;
extern const EmbeddedFile completion_bash_in, completion_zsh_in, completion_fish_in;
extern const EmbeddedFile mcp_py_in;  ///< starts the Python module

}  // namespace servetune

namespace autotune {

/// A YAML text: `{{name|yaml}}` becomes a scalar.
inline std::string filled_yaml(const servetune::EmbeddedFile& file,
                               const servetune::TemplateValues& values,
                               const servetune::TemplateParts& parts = {}) {
    return servetune::fill_template(file.text, values, {{"yaml", servetune::yaml_text}}, parts);
}

}  // namespace autotune
