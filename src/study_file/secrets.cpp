// SPDX-License-Identifier: Apache-2.0
#include "secrets.hpp"

#include "base/url.hpp"
#include "base/variable_name.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/value.hpp"

#include <unistd.h>

#include <string_view>
#include <variant>

namespace servetune {
namespace {

thread_local CollectSecrets* innermost = nullptr;

}  // namespace

CollectSecrets::CollectSecrets(Redactor& into) : into_(into), around_(innermost) {
    innermost = this;
}

CollectSecrets::~CollectSecrets() { innermost = around_; }

void CollectSecrets::found(const std::string& secret, const std::string& shown) {
    for (const CollectSecrets* one = innermost; one != nullptr; one = one->around_)
        one->into_.add(secret, shown);
}

void CollectSecrets::found(const Redactor& secrets) {
    for (const CollectSecrets* one = innermost; one != nullptr; one = one->around_)
        one->into_.add(secrets);
}

Redactor secrets_of_environment() {
    constexpr std::size_t least =
        8;  // EMPTY, none and the like are what people set where any key will do
    Redactor result;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view setting = *entry;
        const auto equals = setting.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string name(setting.substr(0, equals));
        const std::string value(setting.substr(equals + 1));
        const std::string shown = is_variable_name(name) ? "${" + name + "}" : "***";
        const bool secret = names_secret(name) && value.size() >= least &&
                            std::holds_alternative<std::string>(value_of(value));
        const std::string_view user =
            !contains(value, "://") ? std::string_view() : user_info_of(value);
        if (secret) result.add_unnamed(value, shown);
        else if (user.size() >= least && contains(user, ':')) add_user_info(result, value);
    }
    return result;
}

}  // namespace servetune
