// SPDX-License-Identifier: Apache-2.0
#include "base/kept_texts.hpp"
#include "base/url.hpp"
#include "knowledge.hpp"
#include "secrets.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "strategies.hpp"
#include "study_file/measuring/kind.hpp"
#include "study_readers.hpp"

namespace servetune {
namespace {

/// What a trial says goes to journal, log and report: without the secrets of the study.
class WithoutSecrets : public Evaluator {
public:
    WithoutSecrets(std::unique_ptr<Evaluator> inner, Redactor secrets)
        : inner_(std::move(inner)), secrets_(std::move(secrets)) {}

    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        return without_secrets_in_errors(secrets_, [&] {
            Outcome outcome = inner_->evaluate(configuration, context);
            if (auto* failure = std::get_if<Failure>(&outcome)) {
                failure->message = printable_line(secrets_(failure->message));
                for (std::string& line : failure->log_lines) line = secrets_(line);
            } else
                for (Finding& finding : std::get<Measurement>(outcome).validity.findings)
                    for (std::string* text : {&finding.left, &finding.right, &finding.cause})
                        *text = secrets_(*text);
            return outcome;
        });
    }
    [[nodiscard]] bool replicates_inform() const override { return inner_->replicates_inform(); }

private:
    std::unique_ptr<Evaluator> inner_;
    Redactor secrets_;
};

void check_strategy(const StudyFile& file) {
    const std::string& name = file.strategy.name;
    if (file.objective.several() && !strategy_kind(name).takes_several_goals)
        throw UsageError(file.source.file.string() + ": 'objective': the strategy " + name +
                         " compares one number, and there are several goals; these take several: " +
                         listed(strategies_for_several_goals()));
    if (!file.budget.when_not_worth_it) return;
    if (name != "bayesian")
        throw UsageError(file.source.file.string() +
                         ": 'budget.serves': only the strategy bayesian knows what is left to "
                         "gain, and this is " +
                         name);
    if (file.objective.several())
        throw UsageError(file.source.file.string() +
                         ": 'budget.serves': what a front gains has no worth in time; give one "
                         "goal or a budget of trials");
}

}  // namespace

std::map<std::string, std::string> StudySetup::environment() const {
    const MeasuringKind& kind = kind_of(file);
    if (kind.environment == nullptr) return {};
    Environment result = environment_now(kind.environment(file));
    for (auto& [name, text] : result) {
        Redactor of_address;
        if (text.find("://") != std::string::npos) add_user_info(of_address, text);
        text = printable_line(file.secrets(of_address(text)));
    }
    return result;
}

BayesianOptions StudySetup::bayesian_options() const {
    BayesianOptions options = file.strategy.bayesian;
    // A time alone says nothing of how many trials it is enough for: start and confirmation are
    // those of the usual budget, and then the search goes on.
    options.trials = file.budget.trials == trials_of_a_time ? Budget{}.trials : file.budget.trials;
    if (file.budget.when_not_worth_it) options.serves_seconds = file.budget.serves_seconds;
    options.beliefs = beliefs;
    options.suggestions = suggestions;
    options.learning.seed = file.seed;
    return options;
}

namespace {

StudySetup set_up_study(StudyFile& file, const std::filesystem::path& folder,
                        const RunHooks& hooks) {
    check_strategy(file);
    StudySetup setup;
    const MeasuringKind& kind = kind_of(file);
    kind.build(setup, file, folder, hooks);
    // Who measures elsewhere says by `noise_cv: 0` that a figure is exact.
    setup.problem->replicates_inform = setup.evaluator != nullptr
                                           ? setup.evaluator->replicates_inform()
                                           : file.decision.noise_cv > 0;
    if (kind.measures)
        setup.evaluator =
            std::make_unique<WithoutSecrets>(std::move(setup.evaluator), file.secrets);
    for (auto& neighbour : setup.neighbours)
        neighbour = std::make_unique<WithoutSecrets>(std::move(neighbour), file.secrets);
    if (file.strategy.name == "bayesian") {
        GatheredKnowledge knowledge = gather_knowledge(file, setup.problem->space, folder);
        setup.beliefs = std::move(knowledge.beliefs);
        setup.knowledge = std::move(knowledge.texts);
        setup.earlier = std::move(knowledge.earlier);
        file.warnings.insert(file.warnings.end(), knowledge.warnings.begin(),
                             knowledge.warnings.end());
        for (const std::filesystem::path& suggested : file.suggestions)
            for (Configuration& one :
                 read_suggestions(suggested, *file.composition, setup.problem->space))
                setup.suggestions->push_back(std::move(one));
    }
    setup.file = std::move(file);
    setup.strategy = strategy_kind(setup.file.strategy.name).make(setup);
    return setup;
}

}  // namespace

StudySetup set_up(StudyFile file, const std::filesystem::path& folder, const RunHooks& hooks) {
    Redactor secrets = file.secrets;
    const CollectSecrets collecting(secrets);
    const CollectSecrets into_the_file(file.secrets);
    Texts texts = file.source.files;
    const NoteTexts noting(texts, file.source.search_spaces);
    return without_secrets_in_errors(secrets, [&] {
        StudySetup setup = set_up_study(file, folder, hooks);
        setup.file.source.files = texts;
        return setup;
    });
}

}  // namespace servetune
