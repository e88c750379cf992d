// SPDX-License-Identifier: Apache-2.0
// What the cost model knows of engines: search_spaces/traits/*.yaml.
#include "keys.hpp"
#include "parameter_reader.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/io/yaml.hpp"
#include "servetune/space/expression_parser.hpp"
#include "servetune/study_file/catalogue.hpp"
#include "servetune/trial/outcome.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, double EngineTraits::*>, 19> trait_figures{{
    {"bandwidth_efficiency", &EngineTraits::bandwidth_efficiency},
    {"step_overhead_seconds", &EngineTraits::step_overhead_seconds},
    {"sequence_overhead_seconds", &EngineTraits::sequence_overhead_seconds},
    {"eager_layer_seconds", &EngineTraits::eager_layer_seconds},
    {"uncompiled_factor", &EngineTraits::uncompiled_factor},
    {"request_overhead_seconds", &EngineTraits::request_overhead_seconds},
    {"chunk_overhead_seconds", &EngineTraits::chunk_overhead_seconds},
    {"all_reduce_seconds", &EngineTraits::all_reduce_seconds},
    {"link_efficiency", &EngineTraits::link_efficiency},
    {"context_bytes", &EngineTraits::context_bytes},
    {"activation_bytes_per_token_and_width", &EngineTraits::activation_bytes_per_token_and_width},
    {"logits_bytes_per_entry", &EngineTraits::logits_bytes_per_entry},
    {"graph_bytes", &EngineTraits::graph_bytes},
    {"graph_bytes_per_size", &EngineTraits::graph_bytes_per_size},
    {"start_seconds", &EngineTraits::start_seconds},
    {"load_bytes_per_second", &EngineTraits::load_bytes_per_second},
    {"compile_seconds", &EngineTraits::compile_seconds},
    {"graph_seconds_per_size", &EngineTraits::graph_seconds_per_size},
    {"reserved_share", &EngineTraits::reserved_share},
}};
constexpr std::array<std::pair<std::string_view, bool EngineTraits::*>, 7> trait_switches{{
    {"checks_context", &EngineTraits::checks_context},
    {"chunked_prefill", &EngineTraits::chunked_prefill},
    {"whole_prompts_raise_budget", &EngineTraits::whole_prompts_raise_budget},
    {"mixed_steps", &EngineTraits::mixed_steps},
    {"overlap", &EngineTraits::overlap},
    {"graphs", &EngineTraits::graphs},
    {"compiled", &EngineTraits::compiled},
}};
constexpr std::array<std::pair<EngineTraits::FractionOf, std::string_view>, 4> fractions{{
    {EngineTraits::FractionOf::device, "device"},
    {EngineTraits::FractionOf::weights_cache, "weights_cache"},
    {EngineTraits::FractionOf::free, "free"},
    {EngineTraits::FractionOf::none, "none"},
}};
constexpr std::array<std::string_view, 5> defect_kinds{"slow_start", "hang", "exit", "crash_under_load", "hang_under_load"};

double not_negative(const Yaml& node) {
    const double value = node.real();
    if (!(value >= 0) || std::isinf(value)) node.fail_wanted("a number of at least 0");
    return value;
}
double share_in(const Yaml& node) {
    const double value = node.real();
    if (!(value > 0 && value <= 1)) node.fail_wanted("a share: more than 0, at most 1");
    return value;
}
AttentionTraits read_attention(const Yaml& node) {
    node.check_keys(keys::attention);
    AttentionTraits result{share_in(*node.find("prefill_efficiency")), share_in(*node.find("decode_efficiency")), {}, {}, {}};
    if (const Yaml* types = node.find("cache_types")) result.cache_types = read_text_list(*types);
    if (const Yaml* needs = node.find("needs")) result.needs = read_text_list(*needs);
    if (const Yaml* chips = node.find("architectures")) result.architectures = read_architectures(*chips);
    return result;
}

Defect read_defect(const Yaml& node) {
    node.check_keys(keys::defect);
    const Yaml& kind = *node.find("kind");
    if (std::find(defect_kinds.begin(), defect_kinds.end(), kind.text()) == defect_kinds.end())
        kind.fail_wanted("slow_start, hang, exit, crash_under_load or hang_under_load");
    Defect result{kind.text(), {}, not_negative(*node.find("seconds")), {}, node.find("because")->text()};
    try {
        result.when = parse_expression(node.find("when")->text());
    } catch (const ParseError& error) {
        node.find("when")->fail(error.what());
    }
    if (const Yaml* lines = node.find("lines")) result.lines = read_text_list(*lines);
    return result;
}

DefaultRule read_rule(const Yaml& node) {
    node.check_keys(keys::default_rule);
    DefaultRule rule{node.find("value")->value(), 0, {}};
    if (const Yaml* from = node.find("from_memory_bytes")) rule.from_memory_bytes = not_negative(*from);
    if (const Yaml* hardware = node.find("hardware")) rule.hardware = read_text_list(*hardware);
    return rule;
}

void check_sources(const Yaml& file) {
    const Yaml& sources = *file.find("sources");
    for (const auto& [key, node] : file.entries()) {
        const bool figure = node.is_mapping() ? key != "log" && key != "sources" : node.is_scalar() && key != "engine";
        if (figure && sources.find(key) == nullptr) node.fail("'" + key + "' has no source: say where the figure is from under 'sources'");
    }
}

EngineTraits read_traits(const Yaml& file) {
    file.check_keys(keys::traits);
    EngineTraits traits;
    traits.engine = file.find("engine")->text();
    const Yaml& fraction = *file.find("fraction_of");
    const auto kind = named_in(fractions, fraction.text());
    if (!kind) fraction.fail_wanted("device, weights_cache, free or none");
    traits.fraction_of = *kind;
    for (const auto& [key, member] : trait_figures)
        if (const Yaml* node = file.find(key)) traits.*member = not_negative(*node);
    for (const auto& [key, member] : trait_switches)
        if (const Yaml* node = file.find(key)) traits.*member = node->boolean();
    if (const Yaml* node = file.find("graph_max_tokens")) traits.graph_max_tokens = node->integer();
    (void)share_in(*file.find("bandwidth_efficiency"));
    (void)share_in(*file.find("link_efficiency"));
    if (!(traits.load_bytes_per_second > 0)) file.find("load_bytes_per_second")->fail_wanted("a positive number");
    if (traits.uncompiled_factor < 1) file.find("uncompiled_factor")->fail_wanted("a number of at least 1");
    for (const auto& [type, node] : file.find("compute_efficiency")->entries()) traits.compute_efficiency[type] = share_in(node);
    if (!traits.compute_efficiency.contains("other"))
        file.find("compute_efficiency")->fail("'other' is missing: for types that are not named");
    for (const auto& [name, node] : file.find("attention")->entries()) traits.attention[name] = read_attention(node);
    traits.default_attention = file.find("default_attention")->text();
    if (!traits.attention.contains(traits.default_attention))
        file.find("default_attention")->fail("'" + traits.default_attention + "' is not among 'attention'");
    if (const Yaml* node = file.find("acceptance"))
        for (const auto& [method, chance] : node->entries()) {
            traits.acceptance[method] = not_negative(chance);
            if (traits.acceptance[method] >= 1) chance.fail_wanted("a number below 1");
        }
    if (const Yaml* node = file.find("defaults"))
        for (const auto& [name, rules] : node->entries())
            for (const Yaml& rule : rules.items()) traits.defaults[name].push_back(read_rule(rule));
    if (const Yaml* node = file.find("log"))
        for (const auto& [event, lines] : node->entries()) traits.log[event] = read_text_list(lines);
    if (const Yaml* node = file.find("defects"))
        for (const Yaml& item : node->items()) traits.defects.push_back(read_defect(item));
    check_sources(file);
    return traits;
}

}  // namespace

EngineTraits Catalogue::traits(const std::string& engine) const {
    const fs::path file = find("traits", engine, root_ / "traits");
    return read_traits(Yaml::load(file));
}

}  // namespace servetune
