// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The parameters that a form names: a JSON text with {parameter} in it, such as
/// `[[1, 1, {few}], [{many}, {many}, 0]]`. In their order, each once.
std::vector<std::string> names_in_form(std::string_view form);

/// The form with a JSON text for each of its parameters.
std::string filled_form(std::string_view form, const std::map<std::string, std::string>& texts);

/// What a JSON text without blanks has in the places of a form. Nothing where it is of another
/// form, or has two values for one parameter.
std::optional<std::map<std::string, std::string>> values_in_form(std::string_view form,
                                                                 std::string_view text);

/// Removes the keys that need a parameter which is gone.
void remove_keys(JsonFlag& flag, const std::function<bool(const std::string&)>& is_gone);

}  // namespace servetune
