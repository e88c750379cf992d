// SPDX-License-Identifier: Apache-2.0
// Settings that an engine ignores under others: each has a condition or a rule, so that no trial is
// spent on a difference that is none.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/constraint.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/search_space.hpp"
#include "study_file/yaml.hpp"

#include <algorithm>
#include <map>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

bool depends(const Engine& engine, const std::string& name, const std::string& on) {
    const EngineParameter* declared = engine.find(name);
    REQUIRE(declared != nullptr);
    const auto& conditions = declared->parameter.active_when;
    if (any_of(conditions, [&](const Condition& condition) { return condition.parent == on; }))
        return true;
    return any_of(engine.constraints, [&](const Constraint& rule) {
        const std::vector<std::string> names = names_of(rule);
        const std::set<std::string> both(names.begin(), names.end());
        return both.contains(name) && both.contains(on);
    });
}

/// The values that 2000 draws from all of an engine give a parameter on one GPU.
std::map<std::string, std::set<std::string>> drawn_on_one_gpu(const std::string& engine,
                                                              const std::string& version,
                                                              std::int64_t experts) {
    SpaceDescription description{{shipped_catalogue.engine(engine)}};
    description.versions = {{engine, version}};
    description.architecture = "hopper";
    description.model_facts = {{"model.experts", experts}};
    for (const DeviceFactor& factor : description.engines.front().devices) {
        SpaceEntry entry{factor.parameter};
        entry.fixed = true;
        entry.default_value = std::int64_t{1};
        description.entries.push_back(entry);
    }
    const Composition composition(description);
    const SearchSpace space(composition.parameters(), composition.constraints());
    const FeasibleSet feasible(space);
    Rng rng(5);
    std::map<std::string, std::set<std::string>> result;
    for (int i = 0; i < 2000; ++i) {
        const Configuration drawn = feasible.sample(rng);
        for (const Parameter& parameter : space.parameters())
            if (const Value* value = drawn.find(parameter.name))
                result[parameter.name].insert(text_of(*value));
    }
    return result;
}

}  // namespace

TEST_CASE(
    "dormant settings: what does nothing under other settings has a condition or a rule, in every "
    "engine file") {
    const Yaml dependencies =
        Yaml::load(SERVETUNE_SOURCE "/tests/data/cases/dormant_settings.yaml");
    for (const auto& [name, by_parent] : dependencies.entries()) {
        const Engine engine = shipped_catalogue.engine(name);
        for (const auto& [parent, settings] : by_parent.entries())
            for (const Yaml& setting : settings.items()) {
                INFO(name << ": " << setting.text() << " does nothing without " << parent);
                CHECK(depends(engine, setting.text(), parent));
            }
    }
}

TEST_CASE("dormant settings: an environment variable is a parameter where it can act only") {
    // These act on every machine that the engine runs on.
    const std::set<std::string> everywhere{"worker_gc", "cpu_thread_cores"};
    for (const Engine& engine : shipped_catalogue.engines())
        for (const EngineParameter& declared : engine.parameters) {
            const std::string& name = declared.parameter.name;
            if (declared.destination.environment.empty() || everywhere.contains(name)) continue;
            INFO(engine.name << " " << name);
            const bool ruled = any_of(engine.constraints, [&](const Constraint& rule) {
                const std::vector<std::string> names = names_of(rule);
                return contains(names, name);
            });
            CHECK((ruled || !declared.parameter.active_when.empty() ||
                   !declared.architectures.empty()));
            const bool older = declared.destination.environment.starts_with("VLLM_") ||
                               declared.destination.environment.starts_with("SGLANG_");
            if (older)
                CHECK(
                    (declared.source.starts_with("envs.py") || declared.source.starts_with("srt")));
        }
}

TEST_CASE("dormant settings: one GPU and a dense model leave nothing to share or to spread") {
    const auto vllm = drawn_on_one_gpu("vllm", "0.33.0", 0);
    const std::set<std::string> unset{"engine"}, off{"false"};
    for (const char* name :
         {"allreduce_flashinfer", "flashinfer_allreduce_backend", "nccl_nvls", "nccl_max_ctas"}) {
        INFO(name);
        CHECK(vllm.at(name) == unset);
    }
    CHECK(vllm.at("disable_custom_all_reduce") == off);
    CHECK(vllm.at("enable_expert_parallel") == off);
    CHECK(vllm.at("enable_dbo") == off);
    CHECK(vllm.at("dp_sync_interval") == std::set<std::string>{"16"});
    CHECK(vllm.at("prefill_schedule_interval").size() > 1);  // 0.33 reads it with one copy, too
    CHECK_FALSE(vllm.contains("all2all_backend"));
    CHECK_FALSE(vllm.contains("rocm_aiter"));          // AMD's
    CHECK_FALSE(vllm.contains("cpu_thread_binding"));  // serves from processors
    CHECK_FALSE(vllm.contains("omp_threads"));
    for (const std::string& backend : vllm.at("moe_backend"))
        CHECK((backend == "engine" || backend == "auto"));
    CHECK(vllm.at("flashinfer_sampler").size() == 3);

    const auto older = drawn_on_one_gpu("vllm", "0.16.0", 64);
    CHECK(older.at("moe_deep_gemm").size() == 3);
    CHECK(older.at("flashinfer_moe_fp8").size() == 3);
    CHECK_FALSE(older.contains("moe_backend"));
    CHECK(drawn_on_one_gpu("vllm", "0.16.0", 0).at("flashinfer_moe_fp8") == unset);

    const auto sglang = drawn_on_one_gpu("sglang", "0.5.23", 0);
    for (const char* name : {"enable_nccl_nvls", "enable_mscclpp", "enable_symm_mem",
                             "disable_custom_all_reduce", "nccl_max_ctas"})
        CHECK_FALSE(sglang.contains(name));
    CHECK(sglang.at("enable_dynamic_chunking") == off);
    CHECK(sglang.at("load_balance_method") == unset);
    CHECK(sglang.at("ep_size") == std::set<std::string>{"1"});
    CHECK(sglang.at("moe_a2a_backend") == std::set<std::string>{"none"});
    CHECK_FALSE(sglang.contains("rocm_aiter"));
    CHECK_FALSE(sglang.contains("cpu_thread_cores"));  // text: fixed by a study
}

TEST_CASE(
    "dormant settings: what only a machine without a GPU has is refused on a chip, with its "
    "reason") {
    SpaceDescription description{{shipped_catalogue.engine(std::string("vllm"))}};
    description.architecture = "hopper";
    SpaceEntry entry{"cpu_thread_binding"};
    entry.domain = ChoiceDomain{{"nobind"}};
    description.entries = {entry};
    CHECK(has(message_of<Error>([&] { (void)Composition(description); }),
              "only where it serves from processors"));
    description.architecture.clear();
    CHECK_NOTHROW(Composition(description));
}
