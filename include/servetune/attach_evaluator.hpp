// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/deploy/measure_options.hpp"
#include "servetune/engine.hpp"
#include "servetune/evaluator.hpp"

namespace servetune {

/// Measures a server that somebody else runs: it is never started, ended or told to empty its
/// cache, and its flags stay what they are, so that a space of levels of load (`load_level`) is all
/// that can be searched. Before each trial it must answer and list the model; one that was started
/// anew meanwhile is Failure{crashed_under_load}, one that does not answer is the network's fault
/// or its owner's: tried again with a back-off, then `evaluate` throws IoError and the trial stays
/// open. One that wants another key (401, 403) will not serve by being asked again: `evaluate`
/// throws UsageError at once.
class AttachEvaluator : public Evaluator {
public:
    /// Which server, and how it is asked.
    struct Options {
        /// `http://127.0.0.1:8000`; a user and a password in it are sent and never shown
        std::string url{};
        std::string served_model{};  ///< the name that clients ask for; empty: the study's model
        std::string api_key{};  ///< sent as a bearer token; never in a log, a journal or a report
        double devices = 1;     ///< accelerators that it runs on, for the audit's physics
        MeasureOptions measure{};  ///< its machine is not ours to watch

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const;
    };

    /// `model`: what is served, for the audit's physics. Throws UsageError where the options cannot
    /// be: no url, control characters in the key.
    AttachEvaluator(Engine engine, std::string model, StudyWorkloads workloads, Options options);

    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override;

private:
    Engine engine_;
    std::string model_;
    StudyWorkloads workloads_;
    Options options_;
};

}  // namespace servetune
