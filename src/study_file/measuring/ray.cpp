// SPDX-License-Identifier: Apache-2.0
#include "ray.hpp"

#include "deploy/ray_jobs.hpp"
#include "jobs.hpp"
#include "servetune/error.hpp"
#include "study_file/key_reader.hpp"
#include "study_file/keys.hpp"
#include "study_file/secrets.hpp"
#include "study_file/study_readers.hpp"

#include <charconv>

namespace servetune {
namespace {

/// What a job has in its environment is read by everybody who has Ray's token.
std::string remedy_for_secret_of_ray(const std::string& name) {
    return "everybody who may see Ray's jobs would see this secret. Set " + name +
           " where Ray is started on the nodes (" + name +
           "=... ray start ...), whose jobs inherit it, and leave it out here";
}

/// `18000-18999`.
void read_ports(const Yaml& node, RayOptions& options) {
    const std::string text = node.text();
    const char* const end = text.data() + text.size();
    int first = 0;
    int last = 0;
    const auto one = std::from_chars(text.data(), end, first);
    const bool goes_on = one.ec == std::errc() && one.ptr != end && *one.ptr == '-';
    const auto two = goes_on ? std::from_chars(one.ptr + 1, end, last) : one;
    if (!goes_on || two.ec != std::errc() || two.ptr != end)
        node.fail("a range of ports such as 18000-18999 wanted, got '" + text + "'");
    options.first_port = first;
    options.last_port = last;
}

}  // namespace

std::optional<RayOptions> read_ray(const Yaml& deploy) {
    const Yaml* at = deploy.find(keys::deploy.ray);
    if (at == nullptr) return std::nullopt;
    const auto& table = keys::ray;
    at->check_keys(table);
    RayOptions options;
    read(*at, table.address, options.address);
    if (const Yaml* file = at->find(table.token_file)) options.token_file = path_of(*file).string();
    read(*at, table.token_env, options.token_env);
    if (const Yaml* ports = at->find(table.ports)) read_ports(*ports, options);
    read(*at, table.bound, options.bound_seconds);
    read(*at, table.resources, options.resources);
    if (const std::string why = options.why_invalid(); !why.empty()) at->fail(why);
    refuse_parts_of_machine(deploy, "Ray", "job");
    refuse_secrets(deploy, remedy_for_secret_of_ray);
    return options;
}

std::shared_ptr<const Launcher> launcher_on_ray(const RayOptions& options, const StudyFile& file) {
    if (file.kept.empty()) {
        try {
            if (const std::string token = token_of(options); !token.empty())
                CollectSecrets::found(token, "the token of Ray");
        } catch (const UsageError& error) {
            throw UsageError(file.source.file.string() + ": " + error.what());
        }
    }
    return ray_launcher(options);
}

}  // namespace servetune
