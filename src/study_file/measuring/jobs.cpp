// SPDX-License-Identifier: Apache-2.0
#include "jobs.hpp"

#include "base/variable_name.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "study_file/keys.hpp"
#include "study_file/secrets.hpp"

#include <utility>

namespace servetune {

void refuse_parts_of_machine(const Yaml& deploy, const std::string& cluster,
                             const std::string& job) {
    for (const auto& [key, unused] :
         {std::pair(keys::deploy.gpus, "devices"), std::pair(keys::deploy.cores, "cores")})
        if (const Yaml* own = deploy.find(key))
            own->fail(cluster + " itself gives each " + job + " its " + unused +
                      ": leave this out");
}

void refuse_secrets(const Yaml& deploy,
                    const std::function<std::string(const std::string& name)>& remedy) {
    const Yaml* environment = deploy.find(keys::deploy.environment);
    if (environment == nullptr) return;
    const Redactor known = secrets_of_environment();
    for (const auto& [name, value] : environment->entries())
        if (value.is_scalar() && !value.text().empty() &&
            (names_secret(name) || known(value.text()) != value.text()))
            value.fail(remedy(name));
}

}  // namespace servetune
