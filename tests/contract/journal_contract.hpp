// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

#include "servetune/journal.hpp"

namespace servetune::test {

/// What every journal keeps: a trial is asked once, started any number of times, told once, and
/// comes back as it was.
inline void check_journal(Journal& journal) {
    Trial trial{0,
                Configuration({{"a", Unset{}},
                               {"b", true},
                               {"c", std::int64_t{-3}},
                               {"d", 0.1},
                               {"e", "text \"with\" quotes\nand lines"}}),
                "", 0xffffffffffffffffULL, "because"};
    trial.asked_at = 12.5;
    journal.asked(trial);
    CHECK(message_of<UsageError>([&] { journal.asked(trial); }) ==
          "trial 0 cannot be asked: the next id is 1");
    CHECK(message_of<UsageError>([&] { journal.started(7, 1); }) ==
          "there is no trial 7: 1 were asked");
    CHECK(message_of<UsageError>([&] { journal.interrupted(0, 1); }) == "trial 0 is not under way");
    journal.started(0, 13);
    journal.interrupted(0, 13.5);
    CHECK(journal.trials().front().unended_starts == 0);
    journal.started(0, 14);
    journal.started(0, 14.25);
    CHECK(journal.trials().front().unended_starts == 2);

    Measurement measurement{
        {{"total_tokens_per_second", {11768.22, 1.5}}, {"success_ratio", {1.0}}},
        {Verdict::suspect, {{"peak", "20132659", "5203", "time collapse"}}}};
    journal.told(0, measurement, 20);
    CHECK(message_of<UsageError>([&] { journal.told(0, measurement, 21); }) ==
          "trial 0 is already told");
    CHECK(message_of<UsageError>([&] { journal.started(0, 21); }) == "trial 0 is already told");

    Trial second{1, trial.configuration, "long_context", 5, "report"};
    journal.asked(second);
    journal.told(1, Failure{FailureKind::hung, "no token for 60 s", "trials/1/engine.log"}, 30);
    journal.asked({2, trial.configuration});

    const std::vector<Trial> trials = journal.trials();
    REQUIRE(trials.size() == 3);
    CHECK(trials[0].configuration == trial.configuration);
    CHECK(trials[0].configuration.fingerprint() == trial.configuration.fingerprint());
    CHECK(trials[0].seed == trial.seed);
    CHECK(trials[0].why == "because");
    CHECK(trials[0].asked_at == 12.5);
    CHECK(trials[0].started_at == 14.25);
    CHECK(trials[0].told_at == 20);
    REQUIRE(trials[0].measurement() != nullptr);
    CHECK(*trials[0].measurement() == measurement);
    CHECK(trials[1].workload == "long_context");
    REQUIRE(trials[1].failure() != nullptr);
    CHECK(*trials[1].failure() ==
          Failure{FailureKind::hung, "no token for 60 s", "trials/1/engine.log"});
    CHECK_FALSE(trials[2].told());
}

}  // namespace servetune::test
