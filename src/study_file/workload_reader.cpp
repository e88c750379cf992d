// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"
#include "base/kept_texts.hpp"
#include "key_reader.hpp"
#include "keys.hpp"
#include "load/data_files.hpp"
#include "parameter_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace servetune {
namespace {

/// What data of a kind cannot do without; `path`: a file.
struct DatasetNeeds {
    Dataset::Kind kind;
    bool path = false;
    std::vector<Key> keys{};
};

void check_needs(const Yaml& node, const Dataset& dataset) {
    const auto& table = keys::dataset;
    using Kind = Dataset::Kind;
    const std::array<DatasetNeeds, 6> needs{{
        {Kind::sharegpt, true},
        {Kind::trace, true},
        {Kind::prompts, true},
        {Kind::random, false, {table.input_tokens, table.output_tokens}},
        {Kind::shared_prefix,
         false,
         {table.prefix_tokens, table.input_tokens, table.output_tokens}},
        {Kind::multi_turn, false, {table.turns, table.input_tokens, table.output_tokens}},
    }};
    for (const DatasetNeeds& one : needs) {
        if (one.kind != dataset.kind) continue;
        std::vector<Key> missing = one.keys;
        if (one.path) missing.push_back(table.path);
        std::erase_if(missing, [&](const Key& key) { return node.find(key) != nullptr; });
        if (!missing.empty())
            node.fail("a data set of kind " + std::string(name_in(dataset_kinds, one.kind)) +
                      " needs " + std::string(missing.front().name));
    }
}

Dataset read_dataset(const Yaml& node) {
    Dataset result;
    read_table(node, keys::dataset, result);
    if (const Yaml* path = node.find(keys::dataset.path)) result.path = text_with_home(*path);
    result.folder = on_disk(node.file()).parent_path().string();
    if (result.kind == Dataset::Kind::sharegpt) {
        result.min_tokens = sharegpt_min_tokens;
        result.max_prompt_tokens = sharegpt_max_prompt_tokens;
        result.max_total_tokens = sharegpt_max_total_tokens;
    }
    check_needs(node, result);
    return result;
}

Arrival read_arrival(const Yaml& node) {
    const auto& table = keys::arrival;
    using Kind = Arrival::Kind;
    Arrival result;
    read_table(node, table, result);
    const Yaml* rate = node.find(table.rate);
    int given = rate != nullptr ? 1 : 0;
    for (const auto& [key, kind] : {std::pair(table.concurrency, Kind::concurrency),
                                    {table.ramp, Kind::ramp},
                                    {table.largest_rate, Kind::largest_rate},
                                    {table.largest_concurrency, Kind::largest_concurrency}})
        if (node.find(key) != nullptr) {
            ++given;
            result.kind = kind;
        }
    if (given > 1)
        node.fail(
            "an arrival is one of rate, concurrency, ramp, largest_rate, largest_concurrency");
    if (rate != nullptr && rate->is_scalar() && rate->text() == "timestamps")
        result.kind = Kind::trace;
    else if (rate != nullptr) {
        double per_second = 0;
        read(node, table.rate, per_second);
        if (std::isfinite(per_second)) {
            result.kind = Kind::rate;
            result.requests_per_second = per_second;
        }
    }
    if (const Yaml* ramp = node.find(table.ramp)) {
        read_table(*ramp, keys::ramp, result);
        const double most = std::max(result.requests_per_second, result.to_requests_per_second);
        if (most < slowest_rate || most > fastest_rate)
            ramp->fail("rates of at least 0 wanted, one of them from 1e-6 to 1e9");
    }
    const LoadSearch& search = result.search;
    if (search.from && search.to && *search.from >= *search.to) node.fail("`from` is below `to`");
    if (const Yaml* speed = node.find(table.speed); speed != nullptr && result.kind != Kind::trace)
        speed->fail("speed goes with `rate: timestamps`");
    if (const Yaml* burstiness = node.find(table.burstiness);
        burstiness != nullptr && result.kind != Kind::rate && result.kind != Kind::ramp &&
        result.kind != Kind::largest_rate)
        burstiness->fail("burstiness goes with a finite rate, a ramp or largest_rate");
    return result;
}

}  // namespace

Workload read_workload(const Yaml& node) {
    const auto& table = keys::workload;
    Workload result;
    AllErrors errors;
    errors.in([&] {
        if (const Yaml* dataset = node.find(table.dataset)) result.dataset = read_dataset(*dataset);
    });
    errors.in([&] { read_table(node, table, result); });
    errors.in([&] {
        if (const Yaml* arrival = node.find(table.arrival)) result.arrival = read_arrival(*arrival);
    });
    if (result.name.empty()) errors.in([&] { node.fail("a workload needs a name ('workload:')"); });
    errors.throw_any();
    return result;
}

}  // namespace servetune
