// SPDX-License-Identifier: Apache-2.0
#include "servetune/attach_evaluator.hpp"

#include "base/url.hpp"
#include "load/http.hpp"
#include "server_measurement.hpp"
#include "server_probe.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/error.hpp"

#include <utility>

namespace servetune {
namespace {

/// A server that is somebody else's, as it was when a trial began.
class AttachedServer : public Server {
public:
    AttachedServer(const Engine& engine, Endpoint endpoint, const std::stop_token& stop)
        : endpoint_(std::move(endpoint)),
          probe_(engine, endpoint_, [stop] { return stop.stop_requested(); }) {
        constexpr double first_answer_seconds = 60;  // it may be loaded by others
        const ProbeAnswer answer = probe_.ask(first_answer_seconds);
        if (answer.state == ProbeAnswer::State::not_allowed)
            throw UsageError(address() + ": " + answer.message);
        if (answer.state == ProbeAnswer::State::failed)
            failure_ = Failure{answer.kind, answer.message};
        else if (answer.state == ProbeAnswer::State::not_yet)
            failure_ = Failure{FailureKind::infrastructure,
                               address() + " does not serve: " + answer.message};
        else began_ = probe_.process_start_seconds();
    }

    [[nodiscard]] Endpoint endpoint() const override { return endpoint_; }
    [[nodiscard]] std::optional<Failure> died() const override { return failure_; }
    [[nodiscard]] std::optional<Failure> changed() const override {
        if (failure_) return failure_;
        if (const std::string why = probe_.why_not_listed(); !why.empty())
            return Failure{FailureKind::infrastructure,
                           address() + " does not serve any more: " + why};
        if (const auto now = probe_.process_start_seconds(); now && began_ && now != began_)
            return Failure{FailureKind::crashed_under_load,
                           address() + " was started anew while it was measured"};
        return std::nullopt;
    }
    bool reset_cache() override { return false; }
    [[nodiscard]] std::vector<std::string> not_in_force() const override { return {}; }
    [[nodiscard]] std::unique_ptr<MachineWatch> watch(
        MachineWatchOptions /*options*/) const override {
        return nullptr;
    }

private:
    [[nodiscard]] std::string address() const { return without_user_info(endpoint_.url); }

    Endpoint endpoint_;
    ServerProbe probe_;
    std::optional<Failure> failure_{};
    std::optional<double> began_{};
};

}  // namespace

AttachEvaluator::AttachEvaluator(Engine engine, std::string model, StudyWorkloads workloads,
                                 Options options)
    : engine_(std::move(engine)),
      model_(std::move(model)),
      workloads_(std::move(workloads)),
      options_(std::move(options)) {
    check_options("attaching", options_.why_invalid());
    check_options("attaching", workloads_.why_invalid());
    options_.url = server_url(options_.url);
    check_header_text("the API key", options_.api_key);
}

Outcome AttachEvaluator::evaluate(const Configuration& configuration,
                                  const EvaluationContext& context) {
    return with_retries(options_.measure, context, [&](std::size_t attempt) -> Outcome {
        ServerMeasurement measurement(options_.measure, workloads_, configuration, context,
                                      attempt);
        Endpoint endpoint = endpoint_of(
            engine_, options_.url, options_.served_model.empty() ? model_ : options_.served_model);
        endpoint.api_key = options_.api_key;
        AttachedServer server(engine_, std::move(endpoint), context.stop);
        if (context.stop.stop_requested())
            return Failure{FailureKind::cancelled, "stopped by the user"};
        if (auto failure = server.died()) return *failure;
        std::optional<Calibration> calibration;
        Outcome outcome = measurement.of(server, model_, options_.devices, calibration);
        if (auto* measured = std::get_if<Measurement>(&outcome))
            measured->metrics.insert(measurement.costs().begin(), measurement.costs().end());
        return outcome;
    });
}

std::string AttachEvaluator::Options::why_invalid() const {
    return OptionCheck()
        .that(!url.empty(), "url", "an address", "none")
        .part("measure", measure.why_invalid())
        .text();
}

}  // namespace servetune
