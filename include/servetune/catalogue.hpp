// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/engine_traits.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/perf/model_spec.hpp"
#include "servetune/engine.hpp"
#include "servetune/workload.hpp"

#include <filesystem>
#include <memory>

namespace servetune {

class StudySnapshot;

/// Finds the files that ship with servetune (engines, workloads, hardware, models, traits) by name
/// and reads them.
///
/// A name with a `/` or ending in `.yaml` is a file, relative to the folder of the file that names
/// it. Any other name is looked for as `NAME.yaml` in that folder, except a study (`vllm.yaml` may
/// tune vllm), then as `KIND/NAME.yaml` in the search spaces' folder.
class Catalogue {
public:
    /// `root` holds `engines/`, `workloads/`, `hardware/`, `models/` and `traits/`.
    explicit Catalogue(std::filesystem::path root) : root_(std::move(root)) {}

    /// The folder in $SERVETUNE_SEARCH_SPACES, else `share/servetune/search_spaces` or
    /// `search_spaces` beside or above the running program. Throws IoError when there is none.
    static Catalogue standard();

    [[nodiscard]] const std::filesystem::path& root() const { return root_; }

    /// The same, with the files of a study as its snapshot has them.
    [[nodiscard]] Catalogue through(std::shared_ptr<StudySnapshot> snapshot) const {
        Catalogue result = *this;
        result.snapshot_ = std::move(snapshot);
        return result;
    }
    [[nodiscard]] const std::shared_ptr<StudySnapshot>& snapshot() const { return snapshot_; }

    /// Throws IoError for an unknown name, listing the known ones nearest first.
    [[nodiscard]] std::filesystem::path find(const std::string& kind, const std::string& name,
                                             const std::filesystem::path& beside) const;
    [[nodiscard]] Engine engine(const std::string& name) const;
    [[nodiscard]] Engine engine_of(const std::filesystem::path& file) const;
    /// What the cost model knows of an engine: `traits/NAME.yaml` with `kernels/NAME.yaml`, or a
    /// file. `version`: of the engine; empty: the newest. Throws IoError for an engine without.
    [[nodiscard]] EngineTraits traits(const std::string& engine,
                                      const std::string& version = "") const;
    /// All that ship, by file name.
    [[nodiscard]] std::vector<Engine> engines() const;

    /// By file name, by any other name it is known by, or by a text that mentions it alone. Throws
    /// IoError, the nearest names first.
    [[nodiscard]] HardwareSpec hardware(const std::string& name) const;
    /// By file name or by the name of a checkpoint. Throws IoError, the nearest names first.
    [[nodiscard]] ServedModel model(const std::string& name) const;
    /// From the model's own files: a config.json (with hf_quant_config.json and the weights beside
    /// it), a folder that has one, a GGUF file, or a name in the hub's cache. What is not certain
    /// is in its `notes`. Throws IoError, ParseError with file and field.
    [[nodiscard]] ModelSpec model_from_files(const std::filesystem::path& files) const;
    /// The config.json or GGUF file of a model that is named by its folder, that file or its name
    /// on the hub; empty: it is not on this machine.
    [[nodiscard]] std::filesystem::path file_of_model(const std::string& name) const;
    /// All that ship, by file name; before them those of `use_hardware` and `use_model`, in place
    /// of one of that name.
    [[nodiscard]] std::vector<HardwareSpec> all_hardware() const;
    [[nodiscard]] std::vector<ModelSpec> all_models() const;

    /// Files of the user's own, in the form of `hardware/*.yaml` and `models/*.yaml`; a model's may
    /// be any that `model_from_files` reads.
    void use_hardware(std::filesystem::path file) { own_hardware_.push_back(std::move(file)); }
    /// `called`: its name, in place of the file's.
    void use_model(std::filesystem::path file, std::string called = "") {
        own_models_.emplace_back(std::move(file), std::move(called));
    }

private:
    [[nodiscard]] ModelSpec model_of(const std::filesystem::path& file) const;

    std::filesystem::path root_;
    std::shared_ptr<StudySnapshot> snapshot_{};
    std::vector<std::filesystem::path> own_hardware_{};
    std::vector<std::pair<std::filesystem::path, std::string>> own_models_{};
};

}  // namespace servetune
