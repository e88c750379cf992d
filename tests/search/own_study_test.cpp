// SPDX-License-Identifier: Apache-2.0
// A study that owns its space, strategy and journal (StudySettings).
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/servetune.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

StudySettings small_settings() {
    return {.parameters = {choice("backend", {"a", "b"}),
                           integer("seqs", 64, 1024).log2().with_default(256), flag("cache"),
                           real("share", 0.5, 1).log().with_default(0.75)},
            .rules = {"seqs >= 128 or backend == 'a'"},
            .maximize = "tokens_per_second",
            .trials = 16};
}

double speed(const Configuration& c) {
    return 100 + double(c.integer("seqs")) / 10 + (c.text("backend") == "b" ? 20 : 0) +
           (c.flag("cache") ? 5 : 0) + 10 * c.number("share");
}

std::string text_shown(const Recommendation& result) {
    std::ostringstream out;
    out << result;
    return out.str();
}

}  // namespace

TEST_CASE("own study: it finds the best of a small space and says so in a line") {
    Study study(small_settings());
    const Recommendation result = study.optimize(speed);
    CHECK(study.trials().size() == 16);
    CHECK(study.trials().front().configuration == result.default_configuration);
    REQUIRE(result.conclusion == Conclusion::recommended);
    CHECK(result.recommended.integer("seqs") == 1024);
    CHECK(result.recommended.text("backend") == "b");
    const std::string text = text_shown(result);
    CHECK(text.find("backend = b") == 0);
    CHECK(has(text, " over the default"));
}

TEST_CASE("own study: what throws is a failed trial, and several metrics keep a limit") {
    StudySettings settings = small_settings();
    settings.maximize.clear();
    settings.minimize = "seconds";
    settings.limits = {"errors <= 3"};
    Study study(settings);
    const Recommendation result = study.optimize([](const Configuration& c) -> Metrics {
        if (c.flag("cache")) throw std::runtime_error("does not start");
        return {{"seconds", {1000 / speed(c)}}, {"errors", {c.text("backend") == "b" ? 5.0 : 0.0}}};
    });
    CHECK(result.recommended.text("backend") == "a");
    CHECK_FALSE(result.recommended.flag("cache"));
    std::size_t failed = 0;
    for (const Trial& trial : study.trials())
        if (trial.configuration.flag("cache")) {
            REQUIRE(trial.failure() != nullptr);
            CHECK(trial.failure()->message == "does not start");
            ++failed;
        }
    CHECK(failed > 0);
}

TEST_CASE("own study: a journal on disk is resumed, and refuses another study") {
    const TemporaryFolder folder;
    StudySettings settings = small_settings();
    settings.journal = (folder.path() / "tune").string();
    settings.trials = 6;
    std::size_t measured = 0;
    const auto counted = [&](const Configuration& c) {
        ++measured;
        return speed(c);
    };
    (void)Study(settings).optimize(counted);
    settings.trials = 9;
    Study resumed(settings);
    CHECK(resumed.trials().size() == 6);
    struct Seen : Observer {
        std::size_t before = 0;
        void resumed(std::span<const Trial> history) override { before = history.size(); }
    } seen;
    (void)resumed.optimize(counted, &seen);
    CHECK(measured == 9);
    CHECK(seen.before == 6);
}

TEST_CASE("own study: noise, least gain, strategy and deadline are settings, and trials are seen") {
    struct Seen : Observer {
        std::vector<std::uint64_t> trials{};
        void started(const Trial& trial) override { CHECK_FALSE(trial.told()); }
        void told(const Trial& trial, std::span<const Trial> history) override {
            CHECK(trial.told());
            CHECK(history.size() == trial.id + 1);
            trials.push_back(trial.id);
        }
    } seen;
    StudySettings settings = small_settings();
    settings.strategy = std::make_shared<Random>();
    settings.noise_cv = 0;
    settings.min_gain = 0.9;
    Study study(settings);
    const Recommendation result = study.optimize(speed, &seen);
    CHECK(result.conclusion == Conclusion::keep_default);  // no gain is so large
    CHECK(seen.trials.size() == study.trials().size());
    CHECK(study.trials()[1].why == "drawn at random");
    CHECK(study.problem().decision.noise_cv == 0);
    settings.deadline = 0.001;
    Study late(settings);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    (void)late.optimize(speed);
    CHECK(late.trials().empty());
    const TemporaryFolder folder;
    settings.journal = (folder.path() / "tune").string();
    { const Study first(settings); }
    settings.min_gain = 0.1;
    CHECK_THROWS_AS(Study(settings), UsageError);
}

TEST_CASE("own study: another space does not go on with a journal") {
    const TemporaryFolder folder;
    StudySettings settings = small_settings();
    settings.journal = (folder.path() / "tune").string();
    settings.trials = 2;
    (void)Study(settings).optimize(speed);
    StudySettings wider = settings;
    wider.parameters[1] = integer("seqs", 64, 2048).log2().with_default(256);
    CHECK_THROWS_AS(Study(wider), UsageError);
    StudySettings conditional = settings;
    conditional.parameters[2] = flag("cache").when("backend", {"b"});
    CHECK_THROWS_AS(Study(conditional), UsageError);
    StudySettings reseeded = settings;
    reseeded.seed = 1;
    CHECK_THROWS_AS(Study(reseeded), UsageError);
}

TEST_CASE("own study: settings that cannot be are refused") {
    StudySettings both = small_settings();
    both.minimize = "seconds";
    CHECK_THROWS_AS(Study(both), UsageError);
    StudySettings none = small_settings();
    none.maximize.clear();
    CHECK_THROWS_AS(Study(none), UsageError);
    StudySettings rule = small_settings();
    rule.rules = {"seqs >= nothing_known"};
    CHECK_THROWS_AS(Study(rule), SpaceError);
    CHECK_THROWS_AS((void)choice("backend", {"a"}).log2(), SpaceError);
    const Parameter seqs = integer("seqs", 1, 8);
    CHECK(seqs.with_default(3).default_value == Value(std::int64_t{3}));
    CHECK(seqs.default_value == Value(std::int64_t{1}));
    const Configuration configuration({{"seqs", Value(std::int64_t{8})}});
    CHECK_THROWS_AS(configuration.text("seqs"), UsageError);
    CHECK_THROWS_AS(configuration.flag("missing"), UsageError);
}
