// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keys that several tables have, with one meaning wherever they stand: a table takes them by
// inheriting from what is here. search_spaces/FORMAT.md has them once.

#include "key_words.hpp"

namespace servetune::keys {

// Of engine files.

struct SinceKeys {
    Key since{"since", is::version, "first version that has it"};
};

struct UntilKeys {
    Key until{"until", is::version, "last version that has it"};
};

struct DestinationKeys {
    Key flag{"flag", is::text, "the flag; of a bool: passed when true"};
    Key off_flag{"off_flag", is::text, "of a bool: passed when false"};
    Key env{"env", is::variable, "an environment variable instead of a flag"};
    Key option{"option", is::dotted_path, "a place in the engine's options file instead of a flag"};
};

struct WhenKeys {
    Key when{"when", is::conditions, "parent -> value or values; all must hold, or it is left out"};
};

struct DocKeys {
    Key doc{"doc", is::text, "for people: what it does, what it trades"};
};

struct SourceKeys {
    Key source{"source", is::text, "where it was seen or checked, or how it was computed"};
};

struct BecauseKeys {
    Key because{"because", is::text, "why; shown when it happens"};
};

struct ArchitecturesKeys {
    Key architectures{"architectures", is::architecture_list,
                      "the chips that it runs on, and its figures are of (all)"};
};

// Of files with facts.

struct FactsKeys : SourceKeys {
    Key also{"also", is::list_of<is::text>, "other names of it", required};
};

// Of workloads and studies.

struct SeedKeys {
    Key seed{"seed", is::integer_from<0>,
             "of everything random in it (42 in a workload, 0 in a study)"};
};

struct OthersKeys {
    Key others{
        "others", is::one_of<others_words>,
        "parameters that `space` does not name (default where there is a `space`, else search)"};
};

struct LengthKeys {
    Key input_tokens{"input_tokens", is::integer_from<1>,
                     "per prompt; shared_prefix: behind the prefix; multi_turn: per turn"};
    Key output_tokens{"output_tokens", is::integer_from<1>,
                      "per answer; sharegpt, trace, prompts: instead of what the file says"};
};

struct LoadRangeKeys {
    Key from{"from", is::number_from<0>, "of a ramp: the first rate; of a search: the lowest load"};
    Key to{"to", is::number_from<0>,
           "of a ramp: the last rate; of a search: the highest load, tried first"};
};

// Of evaluators.

struct TableKeys {
    Key table{"table", is::file, "CSV: parameters, `status`, metrics"};
};

struct NoiseKeys {
    Key noise{"noise", is::share,
              "seeded noise of each measurement, as a coefficient of variation (0)"};
};

struct EnvironmentKeys {
    Key environment{"environment", is::variables, "of what is started, beside this program's own"};
};

struct ReadyWithinKeys {
    Key ready_within{"ready_within", is::positive_duration,
                     "after that the trial has failed: not_ready_in_time (20min)"};
};

struct TrialKeys {
    Key trial_within{"trial_within", is::positive_duration,
                     "start to end; a longer trial has failed: hung (2h)"};
};

struct ProcessKeys : EnvironmentKeys {
    Key stop_within{"stop_within", is::duration,
                    "for what was started to end once it was told (20s)"};
};

struct LoadTestKeys {
    Key api_key_env{"api_key_env", is::variable,
                    "the environment variable that holds the bearer token of our requests"};
    Key stall_timeout{"stall_timeout", is::positive_duration,
                      "a request without an event of its answer for so long has failed (300s)"};
    Key warm_up{"warm_up", is::integer_in<0, 1'000'000>,
                "requests before the first workload, at least; more until the server is steady "
                "(16; 0: none)"};
    Key give_up{
        "give_up", is::share,
        "a trial ends early once it is surely slower than the best by so much; 0: never (10%)"};
};

}  // namespace servetune::keys
