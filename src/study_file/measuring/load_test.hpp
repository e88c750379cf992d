// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the kinds that load-test a server have in common.

#include "servetune/detail/deploy/measure_options.hpp"
#include "servetune/study_file.hpp"
#include "study_file/key_reader.hpp"

#include <string>

namespace servetune {

/// `trial_within`, `stall_timeout` and `warm_up`; `table`: of `attach` or `deploy`.
template <class Table>
void read_measure(const Yaml& node, const Table& table, MeasureOptions& options) {
    read(node, table.trial_within, options.trial_within_seconds);
    read(node, table.stall_timeout, options.load.stall_timeout_seconds);
    read(node, table.warm_up, options.warm_up_requests);
    read(node, table.give_up, options.give_up);
}
/// The key in the variable that `api_key_env` names; empty where it names none. Throws UsageError
/// where the variable is not set.
std::string key_from(const std::string& name, const StudyFile& file);
/// What the audit's physics need: models and hardware.
void add_facts(const StudyFile& file, MeasureOptions& options);
/// Throws ParseError for goals and limits that our own load test, real or simulated, does not
/// measure; a workload's own figure is `name@workload`. `objective`: where they stand in the file;
/// null: not known.
void check_objective_of_load_test(const StudyFile& file, const Yaml* objective = nullptr);

}  // namespace servetune
