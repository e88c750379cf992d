// SPDX-License-Identifier: Apache-2.0
// Which results of a document can be held against each other.
#include "results/workloads.hpp"
#include "support/test.hpp"

#include "study_file/audit_context.hpp"

using namespace servetune;

namespace {

PublishedResult a_run(double requests, double input, double output) {
    PublishedResult run;
    run.result.successful_requests = requests;
    run.result.input_tokens = requests * input;
    run.result.output_tokens = requests * output;
    return run;
}
PublishedResult labelled(PublishedResult run, const std::string& label) {
    run.labels.push_back(label);
    return run;
}
PublishedResult capped(PublishedResult run, double in_flight) {
    run.result.maximum_concurrency = in_flight;
    return run;
}
using Groups = std::vector<std::size_t>;

}  // namespace

TEST_CASE("comparable runs: without a label only the same requests, sent in the same way") {
    const auto groups = [](const std::vector<PublishedResult>& runs) {
        return comparable_runs(runs);
    };
    CHECK(groups({}).empty());
    const PublishedResult short_ones = a_run(100, 512, 128);
    CHECK(groups({short_ones, a_run(100, 512, 120)}) == Groups{0, 0});  // answers that ended
    CHECK(groups({short_ones, a_run(100, 600, 128)}) == Groups{0, 1});
    CHECK(groups({short_ones, a_run(100, 512, 512)}) == Groups{0, 1});
    CHECK(groups({short_ones, a_run(50, 512, 128)}) == Groups{0, 1});
    CHECK(groups({capped(short_ones, 1), capped(short_ones, 16), capped(short_ones, 1)}) ==
          Groups{0, 1, 0});
    PublishedResult slower = short_ones, faster = short_ones;
    slower.result.requested_rate_per_second = 0.5;
    faster.result.requested_rate_per_second = 0.7;
    CHECK(groups({slower, faster}) == Groups{0, 1});
    PublishedResult lost = a_run(60, 300, 128);
    lost.result.requested_requests = 100;
    CHECK(groups({short_ones, lost}) ==
          Groups{0, 1});  // 300 tokens: of other requests, or of the short ones
    lost.result.input_tokens = 60 * 450;
    CHECK(groups({short_ones, lost}) == Groups{0, 0});
}

TEST_CASE("comparable runs: a label is of a load where all under it may be one") {
    const PublishedResult whole = labelled(a_run(100, 512, 128), "high load");
    CHECK(comparable_runs(std::vector{whole, labelled(a_run(200, 512, 128), "high load")}) ==
          Groups{0, 0});
    PublishedResult lost = labelled(a_run(60, 100, 128), "high load");
    lost.result.requested_requests = 100;
    CHECK(comparable_runs(std::vector{whole, lost}) == Groups{0, 0});
    CHECK(comparable_runs(std::vector{capped(whole, 1),
                                      capped(labelled(a_run(800, 512, 128), "high load"), 16)}) ==
          Groups{0, 1});
}
