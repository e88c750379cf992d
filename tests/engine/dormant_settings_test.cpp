// SPDX-License-Identifier: Apache-2.0
// Settings that an engine ignores under others: each has a condition or a rule, so that no trial is
// spent on a difference that is none.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/constraint.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/space/feasible_set.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <map>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Engine -> what a setting depends on -> settings that do nothing without it, as their own
/// documentation in the engine file says.
const std::map<std::string, std::map<std::string, std::vector<std::string>>> dependencies{
    {"vllm",
     {{"speculative_method",
       {"num_speculative_tokens", "num_speculative_tokens_at_load", "parallel_drafting",
        "suffix_max_tree_depth", "suffix_max_spec_factor", "suffix_min_token_prob", "draft_model",
        "draft_tensor_parallel_size", "prompt_lookup_max", "prompt_lookup_min"}},
      {"num_speculative_tokens_at_load",
       {"speculation_load_from", "num_speculative_tokens", "data_parallel_size"}},
      {"enable_prefix_caching", {"prefix_caching_hash_algo", "prefix_cache_retention_interval"}},
      {"long_prefill_token_threshold", {"long_prefill_token_threshold_adaptive"}},
      {"offload_group_size", {"offload_num_in_group", "offload_prefetch_step"}},
      {"kv_offloading_size", {"kv_offloading_backend"}},
      {"enforce_eager",
       {"cudagraph_mode", "max_cudagraph_capture_size", "compilation_mode", "fuse_allreduce_rms",
        "enable_sequence_parallelism"}},
      {"cudagraph_mode", {"max_cudagraph_capture_size"}},
      {"enable_expert_parallel",
       {"expert_placement_strategy", "all2all_backend", "enable_eplb", "enable_dbo"}},
      {"enable_eplb", {"eplb_redundant_experts", "eplb_window_size", "eplb_step_interval"}},
      {"enable_dbo", {"dbo_decode_token_threshold", "dbo_prefill_token_threshold", "dbo_comm_sms"}},
      {"decode_context_parallel_size", {"dcp_comm_backend", "dcp_q_replicate"}},
      {"data_parallel_size",
       {"all2all_backend", "dp_sync_interval", "prefill_schedule_interval", "enable_dbo",
        "enable_expert_parallel", "nccl_nvls", "nccl_max_ctas"}},
      {"tensor_parallel_size",
       {"fuse_allreduce_rms", "enable_sequence_parallelism", "enable_batch_sharded_sampling",
        "disable_custom_all_reduce", "allreduce_symm_mem", "allreduce_flashinfer",
        "flashinfer_allreduce_backend", "nccl_symm_mem", "nccl_nvls", "nccl_max_ctas",
        "rocm_quick_reduce", "enable_expert_parallel"}},
      {"model.experts",
       {"moe_backend", "enable_expert_parallel", "moe_deep_gemm", "flashinfer_moe_fp8",
        "flashinfer_moe_fp4", "flashinfer_moe_fp16", "no_shared_experts_stream",
        "shared_experts_stream_tokens", "rocm_aiter_moe", "rocm_aiter_shared_experts"}},
      {"quantization",
       {"deep_gemm", "flashinfer_moe_fp8", "flashinfer_moe_fp4", "flashinfer_moe_fp16",
        "mxfp4_marlin", "nvfp4_gemm_backend", "marlin_atomic_add"}},
      {"flashinfer_moe_fp8", {"flashinfer_moe_backend"}},
      {"rocm_aiter", {"rocm_aiter_linear", "rocm_aiter_moe", "rocm_aiter_shared_experts"}},
      {"cpu_thread_binding", {"omp_threads", "cpu_reserved_cores"}}}},
    {"sglang",
     {{"disable_radix_cache",
       {"radix_eviction_policy", "enable_hierarchical_cache", "enable_lmcache",
        "mamba_radix_cache_strategy"}},
      {"enable_hierarchical_cache",
       {"hicache_size", "hicache_ratio", "hicache_write_policy", "hicache_io_backend",
        "hicache_mem_layout", "enable_lmcache"}},
      {"hicache_size", {"hicache_ratio"}},
      {"speculative_algorithm",
       {"speculative_draft_model_path", "speculative_num_steps", "speculative_ngram_draft_tokens",
        "speculative_attention_mode", "speculative_draft_attention_backend",
        "speculative_ngram_max_bfs_breadth", "speculative_adaptive", "speculative_overlap"}},
      {"speculative_adaptive", {"speculative_num_steps"}},
      {"pp_size", {"enable_dynamic_chunking", "pp_max_micro_batch_size"}},
      {"disable_cuda_graph",
       {"cuda_graph_max_bs", "disable_cuda_graph_padding", "cuda_graph_backend_decode",
        "cuda_graph_backend_prefill"}},
      {"cuda_graph_backend_prefill",
       {"cuda_graph_max_seq_len_prefill", "piecewise_cuda_graph_max_tokens"}},
      {"enable_piecewise_cuda_graph", {"piecewise_cuda_graph_max_tokens"}},
      {"enable_torch_compile", {"torch_compile_max_bs"}},
      {"dp_size", {"load_balance_method", "enable_dp_attention"}},
      {"enable_dp_attention", {"enable_dp_lm_head", "moe_dense_tp_size", "enable_prefill_delayer"}},
      {"enable_prefill_delayer", {"prefill_delayer_max_delay_passes"}},
      {"enable_eplb", {"ep_num_redundant_experts"}},
      {"ep_size", {"enable_eplb"}},
      {"moe_a2a_backend",
       {"deepep_mode", "deepep_dispatch_tokens", "moe_nvfp4_dispatch", "enable_two_batch_overlap"}},
      {"tp_size",
       {"ep_size", "disable_custom_all_reduce", "enable_mscclpp", "enable_torch_symm_mem",
        "enable_symm_mem", "enable_nccl_nvls", "flashinfer_allreduce_fusion_backend",
        "boundary_reduction", "rocm_quick_reduce", "nccl_max_ctas"}},
      {"model.experts", {"ep_size", "moe_runner_backend", "moe_a2a_backend"}},
      {"attention_backend", {"triton_attention_num_kv_splits", "page_size"}},
      {"quantization", {"jit_deep_gemm", "moe_nvfp4_dispatch"}}}},
    {"tensorrt-llm",
     {{"enable_block_reuse", {"enable_partial_reuse", "host_cache_size"}},
      {"decoding_type",
       {"max_draft_len", "num_nextn_predict_layers", "max_matching_ngram_size", "draft_model",
        "speculative_max_concurrency"}},
      {"enable_chunked_prefill", {"context_chunking_policy"}},
      {"torch_compile_inductor", {"torch_compile_max_num_streams"}},
      {"enable_attention_dp", {"attention_dp_balance"}},
      {"attention_dp_balance", {"attention_dp_timeout_iters", "attention_dp_batching_wait_iters"}},
      {"tp_size",
       {"ep_size", "enable_attention_dp", "allreduce_strategy", "nccl_nvls", "nccl_max_ctas"}},
      {"model.experts", {"ep_size", "moe_backend", "moe_max_num_tokens"}}}},
    {"llama.cpp",
     {{"cpu_moe", {"n_cpu_moe"}},
      {"split_mode", {"main_gpu"}},
      {"cache_prompt", {"cache_reuse"}},
      {"cache_ram", {"cache_idle_slots"}},
      {"spec_type",
       {"draft_model", "spec_draft_n_max", "spec_draft_n_min", "spec_draft_p_min", "spec_draft_ngl",
        "spec_ngram_simple_size_n", "spec_ngram_simple_size_m", "spec_ngram_mod_n_match",
        "spec_ngram_mod_n_max"}},
      {"model.experts", {"cpu_moe", "n_cpu_moe", "moe_cache_mib"}}}}};

bool depends(const Engine& engine, const std::string& name, const std::string& on) {
    const EngineParameter* declared = engine.find(name);
    REQUIRE(declared != nullptr);
    const auto& conditions = declared->parameter.active_when;
    if (std::any_of(conditions.begin(), conditions.end(),
                    [&](const Condition& condition) { return condition.parent == on; }))
        return true;
    return std::any_of(engine.constraints.begin(), engine.constraints.end(),
                       [&](const Constraint& rule) {
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
    for (const auto& [name, by_parent] : dependencies) {
        const Engine engine = shipped_catalogue.engine(name);
        for (const auto& [parent, settings] : by_parent)
            for (const std::string& setting : settings) {
                INFO(name << ": " << setting << " does nothing without " << parent);
                CHECK(depends(engine, setting, parent));
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
            const bool ruled = std::any_of(
                engine.constraints.begin(), engine.constraints.end(), [&](const Constraint& rule) {
                    const std::vector<std::string> names = names_of(rule);
                    return std::find(names.begin(), names.end(), name) != names.end();
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
    CHECK(vllm.at("num_speculative_tokens_at_load").size() > 5);

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
