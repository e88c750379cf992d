// SPDX-License-Identifier: Apache-2.0
#include "artefact.hpp"

#include "artefact_values.hpp"
#include "servetune/error.hpp"
#include "template_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

enum class NeedsImage { no, of_engine, of_platform };

/// A kind of artefact: its template, and what differs from the others.
struct ArtefactKind {
    std::string_view name;
    std::string_view file;  ///< `*`: the study's name
    const EmbeddedFile& text;
    StartedIn where;
    NeedsImage image;
    bool roles = false;  ///< it takes prefill and decode apart
    void (*add_values)(const DeploymentModel& deployment, OrderedJson& values) = nullptr;
};

constexpr std::array kinds{
    ArtefactKind{"shell", "*.sh", shell_sh_in, StartedIn::shell, NeedsImage::no, true},
    ArtefactKind{"systemd", "*.service", systemd_service_in, StartedIn::service_manager,
                 NeedsImage::no, true},
    ArtefactKind{"compose", "compose.yaml", compose_yaml_in, StartedIn::container,
                 NeedsImage::of_engine, true},
    ArtefactKind{"slurm", "*.sbatch", slurm_sbatch_in, StartedIn::shell, NeedsImage::no},
    ArtefactKind{"kubernetes", "*.yaml", kubernetes_yaml_in, StartedIn::cluster,
                 NeedsImage::of_engine, false, add_pod},
    ArtefactKind{"llm-d", "patch.yaml", llm_d_yaml_in, StartedIn::cluster, NeedsImage::no, false,
                 add_llm_d},
    ArtefactKind{"kserve", "*.yaml", kserve_yaml_in, StartedIn::cluster, NeedsImage::no, false,
                 add_kserve},
    ArtefactKind{"dynamo", "*.yaml", dynamo_yaml_in, StartedIn::cluster, NeedsImage::of_platform,
                 false, add_dynamo},
    ArtefactKind{"rayservice", "*.yaml", rayservice_yaml_in, StartedIn::cluster,
                 NeedsImage::of_platform, false, add_rayservice},
    ArtefactKind{"gpustack", "*.json", gpustack_json_in, StartedIn::cluster, NeedsImage::no, false,
                 add_gpustack}};

const ArtefactKind& kind_named(std::string_view name) {
    const auto* const found = std::find_if(
        kinds.begin(), kinds.end(), [&](const ArtefactKind& kind) { return kind.name == name; });
    if (found == kinds.end())
        throw UsageError("'" + std::string(name) + "' is no kind of file: " +
                         fmt::format("{}", fmt::join(artefact_kinds(), ", ")) + " wanted");
    return *found;
}

void check_image(const ArtefactKind& kind, const Engine& engine, bool has_image, bool asked) {
    if (kind.image == NeedsImage::of_platform && !asked)
        throw UsageError(fmt::format("an image is needed that has {} and {}: --image IMAGE",
                                     kind.name, engine.name));
    if (kind.image != NeedsImage::of_engine || has_image) return;
    const std::string image = engine.images.empty() ? "IMAGE" : engine.images.front();
    throw UsageError("an image is needed that has the engine: --image " + image +
                     (engine.images.empty() || image.find(':') != std::string::npos ? "" : ":TAG") +
                     ", or `container` in the study");
}

std::string file_name(const ArtefactKind& kind, const std::string& study) {
    const std::size_t star = kind.file.find('*');
    return star == std::string_view::npos ? std::string(kind.file)
                                          : study + std::string(kind.file.substr(star + 1));
}

}  // namespace

std::vector<std::string> artefact_kinds() {
    std::vector<std::string> result;
    for (const ArtefactKind& kind : kinds) result.emplace_back(kind.name);
    return result;
}

Artefact artefact_of(std::string_view name, const DeploymentModel& deployment) {
    const ArtefactKind& kind = kind_named(name);
    OrderedJson values = values_of(deployment);
    if (kind.add_values != nullptr) kind.add_values(deployment, values);
    Artefact result{file_name(kind, deployment.name), ""};
    result.left_out = deployment.left_out;
    if (const auto more = values.find("left_out"); more != values.end() && !more->empty())
        result.left_out += (result.left_out.empty() ? "" : " ") + more->get<std::string>();
    result.executable = kind.file.ends_with(".sh");
    for (const auto& [file, content] : deployment.first().files)
        if (kind.where != StartedIn::cluster) result.beside[file] = content;
    if (const auto beside = values.find("beside"); beside != values.end())
        for (const auto& [file, text] : beside->items()) result.beside[file] = text;
    if (kind.where != StartedIn::service_manager || deployment.engines.size() == 1) {
        result.text = filled_artefact(kind.text.text, values);
        return result;
    }
    for (std::size_t i = 0; i < deployment.engines.size(); ++i) {  // a file each
        OrderedJson own = values;
        own.update(values["engines"][i]);
        const std::string& role = deployment.engines[i].role;
        const std::string file =
            file_name(kind, deployment.name + "-" + (role.empty() ? std::to_string(i) : role));
        std::string text = filled_artefact(kind.text.text, own);
        if (i == 0) result.name = file, result.text = std::move(text);
        else result.beside[file] = std::move(text);
    }
    return result;
}

Artefact artefact_of(std::string_view name, const StudySetup& setup,
                     const Configuration& configuration, const DeploymentOptions& options) {
    const ArtefactKind& kind = kind_named(name);
    const bool roles =
        setup.file.has_commands() && setup.file.composition->needs_router(configuration);
    if (roles && !kind.roles)
        throw UsageError(
            "this configuration runs prefill and decode apart, which takes servers of two kinds "
            "and a router: --as shell, --as systemd, --as compose");
    const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
    const bool client = kind.where == StartedIn::shell || kind.where == StartedIn::service_manager;
    if ((options.replicas > 1 || roles) && client && deploy != nullptr && deploy->container)
        throw UsageError(roles ? "the containers of roles are started by compose: --as compose"
                               : "several containers are started by compose or Kubernetes: --as "
                                 "compose, --as kubernetes");
    const DeploymentModel deployment = deployment_of(setup, configuration, options, kind.where);
    check_image(kind, setup.file.composition->engine_of(configuration), !deployment.image.empty(),
                !options.image.empty());
    return artefact_of(name, deployment);
}

}  // namespace servetune
