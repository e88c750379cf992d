// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace autotune {

/// What the objects of a study are called: `servetune-chat-tp2`, as a label of DNS.
std::string cluster_name(const std::string& study);

/// A study that runs in a cluster of Kubernetes: what `kubectl apply -f` takes for it.
struct ClusterRun {
    std::string study;  ///< its name
    std::string image;  ///< of autotune, with kubectl in it (packaging/make-image)
    /// Name and content of the study's file and of those beside it that it names; the first one is
    /// the study's.
    std::vector<std::pair<std::string, std::string>> files{};

    /// ConfigMap, account with its rights, volumes, the Job of the run, and the Deployment of its
    /// page, which is started when somebody wants to look.
    [[nodiscard]] std::string manifest() const;
};

/// The pod of an engine for `deploy: {kubernetes: {template: ...}}`, to be changed by its user.
/// `name`: of the study's objects; `image`: empty where nobody knows one; `model`: a name on the
/// hub or a path.
std::string pod_template_text(const std::string& name, const std::string& engine,
                              const std::string& image, const std::string& model);

/// The study's file and those in its folder that it names, itself or through them. Throws
/// UsageError for what no ConfigMap holds: text that is not UTF-8, more than 1 MiB.
std::vector<std::pair<std::string, std::string>> files_of_study(const std::filesystem::path& study);

/// The `servetune.yaml` beside a study; empty: none that this program wrote. Throws UsageError
/// where it is another's and `force` is not given, or runs another study of the folder, whose
/// `pod.yaml` is beside it.
std::string earlier_manifest(const std::filesystem::path& study, bool force);

/// Writes `servetune.yaml` beside a study, and says what to do with it. Throws UsageError as
/// `earlier_manifest`, and where the study cannot run in a cluster.
void write_cluster_manifest(const std::filesystem::path& study, const std::string& image,
                            bool force);

}  // namespace autotune
