// SPDX-License-Identifier: Apache-2.0
// Fields are those of the API reference of Kubernetes 1.31, where `podFailurePolicy` became stable.
#include "cluster_files.hpp"

#include "output.hpp"

#include "base/files.hpp"
#include "base/own_folder.hpp"
#include "base/utf8.hpp"
#include "base/variable_name.hpp"
#include "interop/artefact_words.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "servetune/version.hpp"
#include "study_file/space_reader.hpp"
#include "study_file/yaml.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace autotune {

using namespace servetune;

namespace {

namespace fs = std::filesystem;

constexpr std::string_view manifest_file = "servetune.yaml";
constexpr std::string_view first_line =
    "# Written by `autotune init --as kubernetes`";    // whoever finds it may replace the file
constexpr std::string_view second_line = "# Change ";  // behind it the study's file

/// A text as the value of a key of a ConfigMap, line by line where it has nothing odd.
std::string block_text(const std::string& text) {
    const bool plain = !text.empty() && text.back() == '\n' && !text.ends_with("\n\n") &&
                       text.find_first_of("\r\t") == std::string::npos &&
                       std::none_of(text.begin(), text.end(), [](unsigned char c) {
                           return (c < ' ' && c != '\n') || c >= 0x7F;
                       });
    if (!plain) return " " + yaml_quoted(text) + "\n";
    std::string result = " |2\n";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        result += line.empty() ? "\n" : "    " + line + "\n";
        at = end + 1;
    }
    return result;
}

/// The image of the run in an earlier manifest; empty: there is none.
std::string image_in(const std::string& manifest) {
    constexpr std::string_view key = "\n          image: ";
    const std::size_t at = manifest.rfind(key);  // the study's own pod stands before
    if (at == std::string::npos) return "";
    const std::size_t begin = at + key.size();
    return Yaml::parse(manifest.substr(begin, manifest.find('\n', begin) - begin),
                       std::string(manifest_file))
        .text();
}

/// Whether a name stands in a text as a word.
bool says_file(const std::string& text, const std::string& name) {
    const auto inside = [&](std::size_t at) {
        const auto c = static_cast<unsigned char>(text[at]);
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    };
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
        if ((at == 0 || !inside(at - 1)) &&
            (at + name.size() == text.size() || !inside(at + name.size())))
            return true;
    return false;
}

}  // namespace

std::string cluster_name(const std::string& study) {
    constexpr std::size_t most =
        52;  // of 63 of a label: the Job's pods have a dash and five letters more, "-models" is the longest ending
    std::string result = "servetune-";
    for (const char c : study) {
        const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        result += fits ? c : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : '-';
    }
    result = result.substr(0, most);
    while (result.ends_with('-')) result.pop_back();
    return result;
}

std::string ClusterRun::manifest() const {
    const std::string name = cluster_name(study);
    const std::string config = files.front().first;
    std::string data;
    for (const auto& [file, content] : files)
        data += "  " + yaml_text(file) + ":" + block_text(content);
    const bool has_models = std::any_of(files.begin(), files.end(), [&](const auto& file) {
        return says_file(file.second, name + "-models");
    });
    std::string result = fmt::format(
        R"({first}: {study} in a cluster.
{second}{config} and the files that it names, then run that command again; here, only what it does not know.
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}}}
data:
{data}---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}}}
---
# Trials are Jobs of this namespace. Nothing in it is read but these.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {name}}}
rules:
  - {{apiGroups: [batch], resources: [jobs], verbs: [create, get, list, watch, delete]}}
  - {{apiGroups: [""], resources: [pods], verbs: [get, list, watch]}}
  - {{apiGroups: [""], resources: [pods/log], verbs: [get]}}
  - {{apiGroups: [""], resources: [events], verbs: [list]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {name}}}
subjects: [{{kind: ServiceAccount, name: {name}}}]
---
# The journal, on block storage: SQLite's write-ahead log works on one machine.
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec:
  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: 5Gi}}}}
---
)",
        fmt::arg("first", first_line), fmt::arg("second", second_line),
        fmt::arg("study", study),
        fmt::arg("config", config), fmt::arg("name", name), fmt::arg("data", data));
    if (has_models)
        result += fmt::format(
            R"(# Weights, so that each model is fetched once. Engines on several nodes at once need ReadWriteMany.
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}-models}}
spec:
  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: 200Gi}}}}  # 70 billion parameters in 16 bits are 140 GB
---
)",
            fmt::arg("name", name));
    // Both read the study and write or show its folder.
    const auto pod = [&](const std::string& container, const std::string& requests,
                         const std::string& command) {
        std::string text = fmt::format(
            R"(serviceAccountName: {name}
securityContext: {{runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {{type: RuntimeDefault}}}}
containers:
  - name: {container}
    image: {image}
    command: [{command}]
    env:
      - {{name: HOME, value: /tmp}}  # kubectl keeps there what it knows of the API
      - {{name: SERVETUNE_CACHE, value: /servetune/cache}}
    envFrom: [{{secretRef: {{name: {name}, optional: true}}}}]  # what the study names as ${{NAME}}
    resources: {{requests: {{{requests}}}}}
    securityContext: {{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {{drop: [ALL]}}}}
    volumeMounts:
      - {{name: study, mountPath: /study, readOnly: true}}
      - {{name: work, mountPath: /servetune}}
      - {{name: tmp, mountPath: /tmp}}
volumes:
  - {{name: study, configMap: {{name: {name}}}}}
  - {{name: work, persistentVolumeClaim: {{claimName: {name}}}}}
  - {{name: tmp, emptyDir: {{}}}}
)",
            fmt::arg("name", name), fmt::arg("container", container),
            fmt::arg("requests", requests), fmt::arg("image", yaml_text(image)),
            fmt::arg("command", command));
        return indented(text, 6);
    };
    result += fmt::format(
        R"(# The run. A pod that is evicted or loses its node is replaced and goes on; a wrong study is not tried again.
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  backoffLimit: 6
  podReplacementPolicy: Failed  # one run at a time
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions: [{{type: DisruptionTarget}}]
      - action: FailJob
        onExitCodes: {{containerName: autotune, operator: In, values: [2, 4]}}
  template:
    metadata:
      labels: {{app: {name}}}
      annotations: {{cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 120  # the trial's engine ends first
{pod}---
# The page after the run: `kubectl scale deployment {name}-page --replicas=1`
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}-page}}
spec:
  replicas: 0
  strategy: {{type: Recreate}}
  selector: {{matchLabels: {{app: {name}-page}}}}
  template:
    metadata: {{labels: {{app: {name}-page}}}}
    spec:
{page})",
        fmt::arg("name", name),
        fmt::arg(
            "pod",
            pod("autotune", "cpu: \"1\", memory: 512Mi",
                fmt::format(
                    "autotune, run, {}, --directory, /servetune/study, --view, \"127.0.0.1:8420\"",
                    yaml_text("/study/" + config)))),
        fmt::arg("page", pod("page", "cpu: 100m, memory: 128Mi",
                             "autotune, view, /servetune/study, --address, \"127.0.0.1:8420\"")));
    return result;
}

std::string pod_template_text(const std::string& name, const std::string& engine,
                              const std::string& image, const std::string& model) {
    const bool is_path = model.starts_with('/');
    const std::string mounted = is_path ? fs::path(model).parent_path().string() : "/models";
    return fmt::format(
        R"(# The pod of a trial. autotune sets its command, GPUs and end; all else is yours: nodeSelector, tolerations,
# imagePullSecrets, priorityClassName, labels of a queue.
apiVersion: v1
kind: Pod
spec:
  tolerations: [{{key: nvidia.com/gpu, operator: Exists}}]
  containers:
    - name: engine
      image: {image}{say}
      env:
        - {{name: HF_HOME, value: {hub}}}
        - {{name: HF_TOKEN, valueFrom: {{secretKeyRef: {{name: {name}, key: HF_TOKEN, optional: true}}}}}}
      # The least that vLLM's example of a Deployment asks for a GPU: a pod without requests is the first to be evicted.
      # Raise them for large models. No limits: engines take more while they load, and one of cpu would slow what is measured.
      resources: {{requests: {{cpu: "2", memory: 6G}}}}
      volumeMounts:
        - {{name: models, mountPath: {mounted}{read_only}}}
        - {{name: shm, mountPath: /dev/shm}}
  volumes:
    - {{name: models, persistentVolumeClaim: {{claimName: {claim}}}}}{which}
    - {{name: shm, emptyDir: {{medium: Memory}}}}
)",
        fmt::arg("image", image.empty() ? engine : image),
        fmt::arg("say", image.empty() ? "  # say which image has it, and its version"
                                      : "  # say a version, such as :v1.2.3"),
        fmt::arg("name", name), fmt::arg("hub", is_path ? "/tmp" : "/models"),
        fmt::arg("mounted", yaml_text(mounted)),
        fmt::arg("read_only", is_path ? ", readOnly: true" : ""),
        fmt::arg("claim", is_path ? "models" : name + "-models"),
        fmt::arg("which", is_path ? "  # say which claim has the model" : ""));
}

std::vector<std::pair<std::string, std::string>> files_of_study(const fs::path& study) {
    constexpr std::size_t most_bytes = 1 << 20;  // of a ConfigMap (its reference)
    const fs::path folder = study.has_parent_path() ? study.parent_path() : fs::path(".");
    std::vector<fs::path> others;
    std::error_code unreadable;
    for (fs::directory_iterator at(folder, unreadable), end; !unreadable && at != end;
         at.increment(unreadable))
        if (std::error_code unknown; at->is_regular_file(unknown) &&
                                     at->path().filename() != study.filename() &&
                                     at->path().filename() != manifest_file)
            others.push_back(at->path());
    std::sort(others.begin(), others.end());
    std::vector<std::pair<std::string, std::string>> result{
        {study.filename().string(), read_file(study)}};
    for (std::size_t i = 0; i < result.size(); ++i)
        for (fs::path& other : others)
            if (!other.empty() && says_file(result[i].second, other.filename().string())) {
                result.emplace_back(other.filename().string(), read_file(other));
                other.clear();
            }
    std::size_t bytes = 0;
    for (const auto& [file, content] : result) {
        bytes += content.size();
        if (content.find('\0') != std::string::npos)
            throw UsageError(file +
                             " is no text, and goes into no ConfigMap: put it on a volume, and say "
                             "its path there");
        (void)utf8_text(content, file);
        if (file.find_first_not_of(
                "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") !=
            std::string::npos)
            throw UsageError(
                "a ConfigMap takes letters, digits, '-', '_' and '.' in a file's name, and got '" +
                file + "': rename it");
    }
    if (bytes > most_bytes)
        throw UsageError(
            fmt::format("the study and the files that it names have {} bytes, and a ConfigMap "
                        "holds {}: put the largest on a "
                        "volume, and say its path there",
                        bytes, most_bytes));
    return result;
}

/// A ConfigMap shows its content to everybody who may look at the namespace.
void refuse_secrets(const ClusterRun& run, const StudyFile& study) {
    const auto* deploy = std::get_if<DeployChoice>(&study.measuring);
    const fs::path token = deploy != nullptr && deploy->ray
                               ? fs::path(deploy->ray->token_file).filename()
                               : fs::path();
    for (const auto& [file, content] : run.files)
        if (file == token ||
            (file != run.files.front().first && names_secret(fs::path(file).stem().string())) ||
            study.secrets(content) != content || secrets()(content) != content)
            throw UsageError(file +
                             " has a secret, and a ConfigMap hides none: put it into the Secret " +
                             cluster_name(run.study) +
                             ", and let the study take it from there (`${NAME}`, `token_env`)");
}

std::string earlier_manifest(const fs::path& study, bool force) {
    const fs::path manifest = study.parent_path() / manifest_file;
    std::error_code unknown;
    if (!fs::exists(fs::symlink_status(manifest, unknown))) return "";
    const std::string text = fs::is_regular_file(manifest, unknown) ? read_file(manifest) : "";
    if (!text.starts_with(first_line)) {
        if (!force)
            throw UsageError(manifest.string() +
                             " is there already, and is not of this command; move it, or --force");
        return "";
    }
    const std::string of = "\n" + std::string(second_line);
    const std::size_t begin = text.find(of);
    const std::string runs =
        begin == std::string::npos
            ? ""
            : text.substr(begin + of.size(), study.filename().string().size() + 1);
    if (runs != study.filename().string() + " ")
        throw UsageError(manifest.string() +
                         " runs another study of this folder: put each study into a folder of its "
                         "own (--output), or " +
                         "remove that file");
    return text;
}

void write_cluster_manifest(const fs::path& study, const std::string& image, bool force) {
    const fs::path manifest = study.parent_path() / manifest_file;
    const std::string before = earlier_manifest(study, force);
    ClusterRun run{{}, image.empty() ? image_in(before) : image, files_of_study(study)};
    if (run.image.empty()) run.image = "servetune:" + std::string(library_version);
    // As the pod has them: alone.
    const OwnFolder alone(temporary_files() / "servetune-");
    for (const auto& [file, content] : run.files) write_file(alone.path() / file, content);
    const fs::path copy = alone.path() / study.filename();
    try {
        const StudySetup setup = set_up(load_study(copy, Catalogue::standard()));
        run.study = setup.file.name;
        if (setup.file.starts_processes() && !setup.file.processes().launcher)
            throw UsageError(
                "its engines would start in the pod of autotune, whose image has none; say "
                "`evaluator: {deploy: {kubernetes: {template: pod.yaml}}}`");
        refuse_secrets(run, setup.file);
    } catch (const Error& error) {
        std::string why = error.what();
        for (auto at = why.find(copy.string()); at != std::string::npos;
             at = why.find(copy.string(), at))
            why.replace(at, copy.string().size(), study.string());
        throw UsageError(manifest.string() + " was not written: " + study.string() +
                         " cannot run in a cluster as it is: " + why);
    }
    const std::string now = run.manifest();
    const fs::path old = manifest.string() + ".old";
    const bool replaces = !before.empty() && before != now;
    if (replaces) write_file(old, before);  // a person may have changed it
    write_file(manifest, now);
    if (replaces) put(stdout, "what {} was is {} now\n", manifest.string(), old.string());
    std::string files;
    for (const auto& [file, content] : run.files) files += (files.empty() ? "" : ", ") + file;
    put(stdout, "wrote {} (with {})\nnext: {}, then {}\n", manifest.string(), files,
        Command{{"autotune", "validate", study.string()}}.text(),
        Command{{"kubectl", "apply", "-f", manifest.string()}}.text());
}

}  // namespace autotune
