// SPDX-License-Identifier: Apache-2.0
// `init --as kubernetes`: what runs a study in a cluster.
#pragma once

#include <filesystem>
#include <string>

namespace autotune {

/// What the objects of a study are called: `servetune-chat-tp2`, as a label of DNS.
std::string cluster_name(const std::string& study);

/// The pod of an engine, to be changed by its user. `name`: of the study's objects; `image`: empty
/// where nobody knows one; `model`: a name on the hub or a path.
std::string pod_template_text(const std::string& name, const std::string& engine,
                              const std::string& image, const std::string& model);

/// The `servetune.yaml` beside a study; empty: none that this program wrote. Throws UsageError
/// where it is another's and `force` is not given, or runs another study of the folder.
std::string earlier_manifest(const std::filesystem::path& study, bool force);

/// Writes `servetune.yaml` beside a study, and says what to do with it: ConfigMap, account with its
/// rights, volumes, the Job of the run, and the Deployment of its page. The study takes the files
/// beside it along that it names, itself or through them. Throws UsageError as `earlier_manifest`,
/// for what no ConfigMap holds (secrets, more than 1 MiB, what is not UTF-8), and where the study
/// cannot run in a cluster.
void write_cluster_manifest(const std::filesystem::path& study, const std::string& image,
                            bool force);

}  // namespace autotune
