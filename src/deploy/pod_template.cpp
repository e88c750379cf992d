// SPDX-License-Identifier: Apache-2.0
// Fields are those of Kubernetes 1.37's API reference: Pod, Container.
#include "pod_template.hpp"

#include "base/nesting.hpp"
#include "base/variable_name.hpp"
#include "launch_clients.hpp"

#include <array>
#include <optional>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// A field that this program sets, why, and the value with which it does no harm.
struct OwnField {
    std::string_view name, reason, harmless;
};
constexpr std::array<OwnField, 5> own_of_pod{{
    {"restartPolicy", "an engine that ends is a result, so its pod never starts again",
     R"("Never")"},
    {"terminationGracePeriodSeconds", "`stop_within` of `deploy` says it", ""},
    {"enableServiceLinks",
     "variables of Services would change engines (a Service sets NAME_PORT for its own name)",
     "false"},
    {"automountServiceAccountToken", "an engine needs no access to the cluster", "false"},
    {"hostNetwork", "`reach: node` of `kubernetes` says it", "false"},
}};
constexpr std::array<OwnField, 9> own_of_engine{{
    {"command", "each trial has its own", ""},
    {"args", "each trial has its own; fixed flags belong under `arguments` of the study", ""},
    {"startupProbe", "this program asks the engine itself", ""},
    {"readinessProbe", "this program asks the engine itself", ""},
    {"livenessProbe", "it would kill an engine that starts slowly; this program asks itself", ""},
    {"ports", "each trial has its own", ""},
    {"restartPolicy", "an engine that ends is a result, so it never starts again", R"("Never")"},
    {"terminationMessagePolicy", "the last lines of a failed engine are read there",
     R"("FallbackToLogsOnError")"},
    {"terminationMessagePath", "the last lines of a failed engine are read there",
     R"("/dev/termination-log")"},
}};

/// Labels that the Job or this program gives.
bool is_own_label(std::string_view name) {
    constexpr std::array<std::string_view, 3> whole{"app.kubernetes.io/managed-by", "job-name",
                                                    "controller-uid"};
    for (const std::string_view one : whole)
        if (name == one) return true;
    return name.starts_with("batch.kubernetes.io/") ||
           name.starts_with(std::string(own_names) + "/");
}

class TemplateReader {
public:
    TemplateReader(const std::string& devices, bool has_images)
        : devices_(devices), has_images_(has_images) {}

    PodTemplate read(const std::string& text) {
        const Json json = shallow_json<Json>(text);
        if (!json.is_object()) return refused("", "an object of kind Pod or PodTemplate wanted");
        const Json* inner = &json;
        std::string path;
        const std::string kind = json.value("kind", Json("Pod")).is_string()
                                     ? json.value("kind", Json("Pod")).get<std::string>()
                                     : "?";
        if (kind == "PodTemplate" && json.contains("template")) {
            inner = &json["template"];
            path = "template.";
        } else if (kind != "Pod")
            return refused("kind", "'" + kind +
                                       "' is none: a Pod or PodTemplate wanted (of a Deployment or "
                                       "Job, what stands under "
                                       "`spec.template`)");
        for (const auto& [name, value] : inner->items())
            if (name != "apiVersion" && name != "kind" && name != "metadata" && name != "spec")
                wrong(path + name, "a template has `metadata` and `spec` only");
        read_metadata(inner->value("metadata", Json::object()), path + "metadata");
        read_spec(inner->value("spec", Json()), path + "spec");
        return std::move(result_);
    }

private:
    void wrong(const std::string& path, const std::string& why) {
        result_.wrong.push_back("`" + path + "`: " + why);
    }
    PodTemplate refused(const std::string& path, const std::string& why) {
        if (path.empty()) result_.wrong.push_back(why);
        else wrong(path, why);
        return std::move(result_);
    }
    /// Whether it is an object; says so where it is another thing.
    bool is_object(const Json& value, const std::string& path) {
        if (!value.is_object()) wrong(path, "a mapping wanted, got " + value.dump().substr(0, 40));
        return value.is_object();
    }
    /// A list of objects that have names.
    bool is_list(const Json& value, const std::string& path) {
        bool good = value.is_array();
        for (std::size_t i = 0; good && i < value.size(); ++i)
            good =
                value[i].is_object() && value[i].contains("name") && value[i]["name"].is_string();
        if (!good) wrong(path, "a list of mappings with a `name` wanted");
        return good;
    }

    /// Whether it is there and a list of mappings.
    bool has_list_of_mappings(const Json& object, const char* name, const std::string& path) {
        const auto found = object.find(name);
        if (found == object.end() || found->is_null()) return false;
        bool good = found->is_array();
        for (std::size_t i = 0; good && i < found->size(); ++i) good = (*found)[i].is_object();
        if (!good)
            wrong(path + "." + name,
                  "a list of mappings wanted, got " + found->dump().substr(0, 40));
        return good;
    }
    /// Whether it is there and a mapping.
    bool has_mapping(const Json& object, const char* name, const std::string& path) {
        return object.contains(name) && !object[name].is_null() &&
               is_object(object[name], path + "." + name);
    }
    /// Where it is there, a text wanted.
    void check_text_of(const Json& object, const char* name, const std::string& path) {
        if (object.contains(name) && !object[name].is_string())
            wrong(path + "." + name, "text wanted, got " + object[name].dump().substr(0, 40));
    }

    void read_metadata(const Json& metadata, const std::string& path) {
        if (!is_object(metadata, path)) return;
        for (const auto& [name, value] : metadata.items()) {
            if (name == "namespace")
                wrong(path + ".namespace", "`namespace` of `kubernetes` says it");
            else if (name == "name" || name == "generateName")
                wrong(path + "." + name, "each trial has a name of its own");
            else if (name != "labels" && name != "annotations")
                wrong(path + "." + name, "of the metadata, `labels` and `annotations` only");
            else if (is_object(value, path + "." + name)) read_labels(value, path + "." + name);
        }
        result_.metadata = metadata;
    }
    void read_labels(const Json& labels, const std::string& path) {
        for (const auto& [name, value] : labels.items()) {
            if (is_own_label(name))
                wrong(path + "." + name, "it is this program's, to find what it has started");
            if (!value.is_string())
                wrong(path + "." + name, "text wanted, got " + value.dump() + ": put it in quotes");
        }
    }

    template <std::size_t n>
    void refuse_own(const std::array<OwnField, n>& fields, const Json& value,
                    const std::string& path) {
        for (const OwnField& field : fields) {
            const auto found = value.find(field.name);
            if (found == value.end() ||
                (!field.harmless.empty() && found->dump() == field.harmless))
                continue;
            wrong(path + "." + std::string(field.name),
                  "leave it out, " + std::string(field.reason));
        }
    }

    void read_spec(const Json& spec, const std::string& path) {
        if (!is_object(spec, path)) return;
        refuse_own(own_of_pod, spec, path);
        if (has_list_of_mappings(spec, "tolerations", path))
            for (std::size_t i = 0; i < spec["tolerations"].size(); ++i)
                for (const char* text : {"key", "operator", "value", "effect"})
                    check_text_of(spec["tolerations"][i], text,
                                  path + ".tolerations[" + std::to_string(i) + "]");
        (void)has_mapping(spec, "affinity", path);
        if (spec.contains("volumes") && is_list(spec["volumes"], path + ".volumes"))
            for (std::size_t i = 0; i < spec["volumes"].size(); ++i)
                if (spec["volumes"][i]["name"].get<std::string>().starts_with(own_names))
                    wrong(path + ".volumes[" + std::to_string(i) + "].name",
                          "names that begin with '" + std::string(own_names) + "' are ours");
        for (const char* list : {"containers", "initContainers"}) {
            if (!spec.contains(list)) continue;
            if (!is_list(spec[list], path + "." + list)) return;
            for (std::size_t i = 0; i < spec[list].size(); ++i)
                read_variables(spec[list][i], path + "." + list + "[" + std::to_string(i) + "]");
        }
        if (const auto engine = engine_in(spec, path)) {
            result_.engine = *engine;
            read_engine(spec["containers"][*engine],
                        path + ".containers[" + std::to_string(*engine) + "]");
        }
        result_.spec = spec;
    }

    std::optional<std::size_t> engine_in(const Json& spec, const std::string& path) {
        const Json all = spec.value("containers", Json::array());
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i]["name"] == "engine") return i;
        if (all.size() == 1) return 0;
        wrong(path + ".containers",
              all.empty() ? "one container wanted, named `engine`"
                          : "one of the " + std::to_string(all.size()) +
                                " must be named `engine`: it gets the engine's command");
        return std::nullopt;
    }

    /// Whoever may read pods reads the values.
    void read_variables(const Json& container, const std::string& path) {
        if (!container.contains("env") || !is_list(container["env"], path + ".env")) return;
        for (std::size_t i = 0; i < container["env"].size(); ++i) {
            const Json& variable = container["env"][i];
            const auto name = variable["name"].get<std::string>();
            const auto value = variable.find("value");
            if (value == variable.end()) continue;
            const std::string at = path + ".env[" + std::to_string(i) + "].value";
            if (!value->is_string())
                wrong(at, "text wanted, got " + value->dump() + ": put it in quotes");
            else if (names_secret(name) && !value->get_ref<const std::string&>().empty())
                wrong(at, name +
                              " is a secret by its name, and everybody who may read pods would see "
                              "it: put it into a Secret, and "
                              "`valueFrom: {secretKeyRef: {name: SECRET, key: " +
                              name + "}}` here");
        }
    }

    void read_engine(const Json& engine, const std::string& path) {
        refuse_own(own_of_engine, engine, path);
        const Json image = engine.value("image", Json());
        if (has_images_ && !image.is_null())
            wrong(path + ".image", "leave it out, `images` of `kubernetes` says it");
        if (!has_images_ && (!image.is_string() || image.get_ref<const std::string&>().empty()))
            wrong(path + ".image",
                  "the engine's image wanted, here or under `images` of `kubernetes`");
        if (has_mapping(engine, "resources", path))
            for (const char* which : {"limits", "requests"}) {
                const std::string at = path + ".resources";
                if (has_mapping(engine["resources"], which, at) && !devices_.empty() &&
                    engine["resources"][which].contains(devices_))
                    wrong(at + "." + which + "." + devices_,
                          "leave it out, the layout of each trial says it (`devices: \"\"` of "
                          "`kubernetes`: the template does)");
            }
        if (engine.contains("volumeMounts") &&
            is_list(engine["volumeMounts"], path + ".volumeMounts"))
            for (std::size_t i = 0; i < engine["volumeMounts"].size(); ++i) {
                const Json& mount = engine["volumeMounts"][i];
                const std::string at = path + ".volumeMounts[" + std::to_string(i) + "]";
                check_text_of(mount, "mountPath", at);
                if (mount.value("mountPath", Json()) == files_folder)
                    wrong(at + ".mountPath", "the engine's own files are there");
            }
    }

    const std::string& devices_;
    const bool has_images_;
    PodTemplate result_{};
};

}  // namespace

PodTemplate pod_template_of(const std::string& json, const std::string& devices, bool has_images) {
    return TemplateReader(devices, has_images).read(json);
}

}  // namespace servetune
