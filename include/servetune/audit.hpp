// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/perf/model_spec.hpp"
#include "servetune/outcome.hpp"
#include "servetune/workload.hpp"

#include <optional>
#include <span>

namespace servetune {

/// How a tool defines its times.
///
/// vllm: TPOT = (latency - TTFT) / (tokens - 1) of each request, unweighted; ITL = all gaps between
/// chunks, pooled. guidellm: TPOT = latency / tokens, which holds the TTFT; ITL = (last - first
/// token) / (tokens - 1). Both weighted by tokens.
enum class Dialect { unknown, vllm, guidellm };

/// What is known of a measurement besides its figures. Everything is optional: what is not known is
/// not checked, and `not_checked` says so.
struct AuditContext {
    Dialect dialect = Dialect::unknown;
    std::optional<double> requested_requests{};  ///< how many were to be sent
    std::optional<double> concurrency_cap{};     ///< requests in flight at most
    bool closed_loop = false;  ///< a new request for each that ends, up to the cap
    std::optional<double>
        requested_rate_per_second{};  ///< of an open loop; absent: all at once, or not known
    bool rate_is_chosen =
        false;  ///< it is what is searched: that a server keeps up with it is no finding
    bool rate_is_intended =
        false;  ///< times at that rate are compared, not throughputs: then that is a note
    bool turns_wait_for_answers =
        false;  ///< conversations: their load is what the server makes of it
    std::optional<bool> equal_output_lengths{};  ///< every answer has the same number of tokens
    std::optional<double>
        asked_output_tokens{};        ///< mean, where the server refused or ignored `ignore_eos`
    double hidden_output_tokens = 0;  ///< of the output tokens: counted, and their text not sent
    std::string failures{};  ///< how requests failed, for a person; empty: not known, or none
    bool tokens_are_estimated = false;  ///< the server did not count the tokens of its answers
    std::optional<double> mean_input_tokens{};  ///< of the data set's prompts
    std::optional<bool>
        prefix_cache_intended{};  ///< may prompts be answered from a cache of earlier ones
    std::optional<ServedModel> served{};
    std::optional<HardwareSpec> hardware{};
    double devices = 1;             ///< accelerators that share the work of one step
    double servers = 1;             ///< that share the requests, each on as many
    bool command_is_known = false;  ///< of the server; else it may guess tokens
    std::optional<double> tokens_per_step{
        1};  ///< most that a stream can gain in one step; above 1: speculation; absent: not known
};

/// Checks the identities that every honest measurement satisfies, one result by itself. The verdict
/// is that of the gravest finding; a note alone leaves it sound, and a result without any identity
/// that could be checked is unchecked.
///
/// Definitions, tolerances, weights and their reasons: docs/explanation/measuring.md. Ids: window
/// decomposition hidden_decode chunks little order peak complete lengths counts load_bound client
/// client_stopped server physics sent_late rate. Never throws; O(1).
Validity audit(const BenchmarkResult& result, const AuditContext& context = {});

/// Results of one workload that are to be compared: the id equal_work, one validity for each. The
/// yardstick is the median of three or more, else the first.
std::vector<Validity> audit_together(std::span<const BenchmarkResult> results);

/// What a workload says: arrival, lengths, whether prompts are meant to share a cache. Not how many
/// requests were sent: a document may have been measured with another number.
void describe(AuditContext& context, const Workload& workload, const BenchmarkResult& result);

/// Adds findings to a validity and keeps the graver verdict, its findings first. A finding replaces
/// one of the same id that says nothing, as tables have them.
void add(Validity& to, const Validity& more);

/// An identity that was not checked, and what was missing for it.
struct NotChecked {
    std::string id;
    std::string reason;
};
std::vector<NotChecked> not_checked(const BenchmarkResult& result, const AuditContext& context);

}  // namespace servetune
