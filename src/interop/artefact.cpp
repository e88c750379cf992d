// SPDX-License-Identifier: Apache-2.0
#include "artefact.hpp"

#include "artefact_writers.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace servetune {
namespace {

/// What is known of a kind without its text.
struct KindFacts {
    StartedIn where = StartedIn::cluster;
    Artefact (*writer)(const DeploymentModel&);
    enum class Image {
        own,
        study,
        none
    } image = Image::own;  ///< what it needs: one of its own, the study's, or none
    bool roles = false;    ///< it takes prefill and decode apart
};

KindFacts kind_facts(ArtefactKind kind) {
    using Image = KindFacts::Image;
    switch (kind) {
        case ArtefactKind::shell: return {StartedIn::shell, shell_artefact, Image::none, true};
        case ArtefactKind::slurm: return {StartedIn::shell, slurm_artefact, Image::none};
        case ArtefactKind::systemd:
            return {StartedIn::service_manager, systemd_artefact, Image::none, true};
        case ArtefactKind::compose:
            return {StartedIn::container, compose_artefact, Image::study, true};
        case ArtefactKind::kubernetes:
            return {StartedIn::cluster, kubernetes_artefact, Image::study};
        case ArtefactKind::llm_d: return {StartedIn::cluster, llm_d_artefact, Image::none};
        case ArtefactKind::kserve: return {StartedIn::cluster, kserve_artefact, Image::none};
        case ArtefactKind::gpustack: return {StartedIn::cluster, gpustack_artefact, Image::none};
        case ArtefactKind::dynamo: return {StartedIn::cluster, dynamo_artefact, Image::own};
        case ArtefactKind::rayservice: return {StartedIn::cluster, rayservice_artefact, Image::own};
    }
    throw std::logic_error("no such artefact");
}

void check_image(const DeploymentModel& deployment, ArtefactKind kind, const Engine& engine,
                 const DeploymentOptions& options) {
    const KindFacts::Image image = kind_facts(kind).image;
    if (image == KindFacts::Image::own && options.image.empty())
        throw UsageError("an image is needed that has " +
                         std::string(name_in(artefact_kinds, kind)) + " and " + engine.name +
                         ": --image IMAGE");
    if (image != KindFacts::Image::study || !deployment.image.empty()) return;
    const std::vector<std::string>& images = engine.images;
    throw UsageError(
        "an image is needed that has the engine: --image " +
        (images.empty() ? "IMAGE" : images.front()) +
        (images.empty() || images.front().find(':') != std::string::npos ? "" : ":TAG") +
        ", or `container` in the study");
}

}  // namespace

Artefact artefact_of(ArtefactKind kind, const StudySetup& setup, const Configuration& configuration,
                     const DeploymentOptions& options) {
    const KindFacts facts = kind_facts(kind);
    const bool roles =
        setup.file.has_commands() && setup.file.composition->needs_router(configuration);
    const bool client =
        facts.where == StartedIn::shell || facts.where == StartedIn::service_manager;
    const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
    if (roles && !facts.roles) {
        std::string others;
        for (const auto& [other, name] : artefact_kinds)
            if (kind_facts(other).roles)
                others += (others.empty() ? "--as " : ", --as ") + std::string(name);
        throw UsageError(
            "this configuration runs prefill and decode apart, which takes servers of two kinds "
            "and a router: " +
            others);
    }
    if ((options.replicas > 1 || roles) && client && deploy != nullptr && deploy->container)
        throw UsageError(roles ? "the containers of roles are started by compose: --as compose"
                               : "several containers are started by compose or Kubernetes: --as "
                                 "compose, --as kubernetes");
    DeploymentModel deployment = deployment_of(setup, configuration, options, facts.where);
    check_image(deployment, kind, setup.file.composition->engine_of(configuration), options);
    Artefact result = facts.writer(deployment);
    if (!deployment.left_out.empty())
        result.left_out =
            deployment.left_out + (result.left_out.empty() ? "" : " ") + result.left_out;
    return result;
}

}  // namespace servetune
