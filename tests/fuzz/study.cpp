// SPDX-License-Identifier: Apache-2.0
// Any bytes as a study, an engine, a preset or a workload, whichever they look like, among files
// that are right.
#include "fuzz/target.hpp"
#include "servetune/study_file.hpp"
#include "study_file/yaml.hpp"
#include "support/temporary_folder.hpp"

#include <map>
#include <string>

using namespace servetune;
using namespace servetune::fuzz;

namespace {

/// The files of a small study; each may be replaced by the input.
const std::map<std::string, std::string> right{
    {"study.yaml", R"(study: s
model: org/m
engine: ./engine.yaml
engine_versions: {toy: "1.2"}
workloads: [./workload.yaml]
objective: {maximize: total_tokens_per_second}
preset: ./preset.yaml
evaluator: {replay: results.csv}
)"},
    {"engine.yaml", R"(engine: toy
launch: [toy, "{model}"]
options_flag: --config
parameters:
  seqs: {flag: --seqs, int: {low: 1, high: 64, scale: log2}, default: 8}
  outer: {option: cache, choice: [engine, small]}
  inner: {option: cache.blocks, int: {low: 1, high: 8}, default: 2}
)"},
    {"preset.yaml", "preset: p\ndoc: d\nspace: {}\nothers: search\n"},
    {"workload.yaml", "workload: w\ndataset: {kind: random, input_tokens: 8, output_tokens: 8}\n"},
    {"results.csv", "seqs,outer,inner,status,total_tokens_per_second\n8,engine,2,ok,100\n"}};

std::string role_of(const Yaml& root) {
    if (!root.is_mapping() || root.entry(std::string("study")) != nullptr) return "study.yaml";
    if (root.entry(std::string("launch")) != nullptr) return "engine.yaml";
    return root.entry(std::string("preset")) != nullptr ? "preset.yaml" : "workload.yaml";
}

/// Everything that `validate` and `render` do, short of counting the space.
void use(const StudyFile& study) {
    const Composition& composition = *study.composition;
    const SearchSpace space(composition.parameters(), composition.constraints());
    const Configuration configuration = space.default_configuration();
    (void)space.violations(configuration);
    for (const Parameter& parameter : space.parameters()) {
        const std::size_t levels = parameter.level_count();
        for (const std::size_t level : {std::size_t{0}, levels / 2, levels - 1})
            if (level < levels)
                must_hold(parameter.level_of(parameter.level(level)) == level,
                          "a level is where it says");
    }
    const Command command = composition.render(configuration, {study.model, "localhost", 8000});
    must_hold(!command.argv.empty() && !command.text().empty(), "a command has words");
    (void)composition.parse(command.argv, study.model);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const test::TemporaryFolder folder;
    static const Catalogue catalogue(SERVETUNE_SOURCE "/search_spaces");
    static const bool ready = [] {
        for (const auto& [name, content] : right) folder.write(name, content);
        use(load_study(folder.path() / "study.yaml", catalogue));  // without the input all is right
        return true;
    }();
    (void)ready;
    const std::string text(text_of_input(data, size));
    std::string role;
    if (!accepted([&] { role = role_of(Yaml::parse(text, "f")); })) return 0;
    folder.write(role, text);
    (void)accepted([&] { use(load_study(folder.path() / "study.yaml", catalogue)); });
    (void)accepted([&] { (void)set_up(load_study(folder.path() / "study.yaml", catalogue)); });
    folder.write(role, right.at(role));
    return 0;
}
