// SPDX-License-Identifier: Apache-2.0
// The page for a browser: what stands in it for good studies, large ones and failed ones, and that
// text of others stays text. What it looks like is checked in a browser
// (tests/integration/html_page_test.cpp).
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "report/chart.hpp"
#include "report/document.hpp"
#include "report/report_view.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "trial/metric_text.hpp"

#include <nlohmann/json.hpp>

#include <cctype>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string page_study =
    "study: page\nmodel: org/m\nengine: vllm\nworkloads: [{workload: chat, dataset: {kind: random, "
    "input_tokens: 8, output_tokens: 8}}, "
    "{workload: long, dataset: {kind: random, input_tokens: 80, output_tokens: 8}}]\n"
    "objective: {maximize: total_tokens_per_second, limits: [ttft_p95 < 500ms]}\nothers: "
    "default\nstrategy: exhaustive\n"
    "space: {max_num_seqs: {choice: [64, 128, 256], ordered: true, default: 64}, kv_cache_dtype: "
    "{choice: [engine, fp8]}}\n"
    "evaluator: deploy\n";

struct PageStudy {
    explicit PageStudy(const std::string& text = page_study)
        : setup(set_up(load_study(folder.write("study.yaml", text), shipped_catalogue),
                       folder.path() / "out")) {}

    /// One measurement of every configuration; the n-th gives `rate(n)`, nothing where that is 0.
    template <class Rate>
    std::vector<Trial> trials(std::size_t count, const Rate& rate) const {
        std::vector<Trial> result;
        const auto size = std::size_t(setup.problem->feasible.size());
        for (std::size_t i = 0; i < count; ++i) {
            Trial trial{i,
                        i == 0 ? setup.problem->space.default_configuration()
                               : setup.problem->feasible.at(double(i % size)),
                        "", 0, "why"};
            trial.started_at = 100.0 * double(i);
            trial.told_at = *trial.started_at + 60;
            const double value = rate(i);
            if (value > 0) {
                Metrics metrics;
                for (const char* workload : {"", "@chat", "@long"}) {
                    metrics[std::string("total_tokens_per_second") + workload] = {value};
                    metrics[std::string("time_to_first_token_p95_seconds") + workload] = {
                        0.4 + value / 1e5};
                }
                trial.outcome = Measurement{metrics, {}};
            } else
                trial.outcome = Failure{
                    FailureKind::out_of_memory, "CUDA out of memory", "", {"line one", "line two"}};
            result.push_back(std::move(trial));
        }
        return result;
    }

    TemporaryFolder folder;
    StudySetup setup;
};

/// The data element of a page.
nlohmann::json data_in(const std::string& page) {
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const auto from = page.find(begin);
    REQUIRE(from != std::string::npos);
    const auto to = page.find("</script>", from);
    return nlohmann::json::parse(page.substr(from + begin.size(), to - from - begin.size()));
}

std::size_t times_in(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

/// Every element that is opened is closed, in order; what is wrong, else nothing.
std::string unbalanced(const std::string& page) {
    const std::set<std::string> empty{"meta", "link", "input", "br", "wbr"};
    std::vector<std::string> open;
    for (auto at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
        const bool closes = page.compare(at + 1, 1, "/") == 0;
        const std::size_t name_at = at + (closes ? 2 : 1);
        std::size_t name_end = name_at;
        while (std::isalnum(static_cast<unsigned char>(page[name_end])) != 0) ++name_end;
        const std::string name = page.substr(name_at, name_end - name_at);
        if (page.compare(at, 2, "<!") != 0 && name.empty())
            return "a '<' that begins nothing: " + page.substr(at, 40);
        char quote = 0;
        std::size_t end = name_end;
        for (; end < page.size() && (quote != 0 || page[end] != '>'); ++end)
            if (quote != 0) quote = page[end] == quote ? '\0' : quote;
            else if (page[end] == '"') quote = '"';
        const bool alone = page[end - 1] == '/';
        at = end;
        if (closes) {
            if (open.empty() || open.back() != name)
                return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
            open.pop_back();
        } else if (!name.empty() && !alone && !empty.contains(name)) {
            open.push_back(name);
            if (name == "script" || name == "style") at = page.find("</" + name + ">", at);
        }
    }
    return open.empty() ? "" : "<" + open.back() + "> stays open";
}

}  // namespace

TEST_CASE("page: verdict, command, gains by workload, limits as columns, data") {
    const PageStudy study(page_study + "decision: published\n");
    const auto trials = study.trials(6, [](std::size_t i) { return 1000.0 + 100 * double(i); });
    const std::string page = html_report(study.setup, trials, "trials_spent");
    const Headline headline = headline_of(study.setup, trials);
    REQUIRE(headline.conclusion == Conclusion::recommended);
    CHECK(page.starts_with("<!doctype html>\n<html lang=\"en\">"));
    CHECK(has(page, "<strong>" + replaced(headline.title, " %", "&nbsp;%") + "</strong> ("));
    // Both figures of the verdict stand before what leads elsewhere.
    const auto after = page.find("</svg></td><td>1500</td>");
    CHECK(page.find("</svg></td><td>1000</td>") < after);
    CHECK(after < page.find("<a "));
    CHECK(has(page, "<pre id=\"command\" tabindex=\"0\" aria-label=\"the command to serve\">" +
                        html_text(headline.command) + "</pre>"));
    for (const char* workload : {">chat</td>", ">long</td>", ">all together</td>"})
        CHECK(has(page, workload));
    CHECK(has(page, "<th scope=\"col\">ttft_p95 &lt; 500ms</th>"));
    for (const char* id :
         {"gains", "search", "trade-offs", "configurations", "audit", "certain", "words"})
        CHECK(has(page, "<h2 id=\"" + std::string(id) + "\">"));
    CHECK(times_in(page, "<li><a href=\"#") + 3 ==
          times_in(page, "<h2 id="));  // all but verdict, glossary and data are in the contents
    CHECK(unbalanced(page).empty());
    const nlohmann::json data = data_in(page);
    CHECK(data["configurations"].size() == 6);
    CHECK(data["titles"] == nlohmann::json{"total tokens/s", "TTFT p95 (ms)"});
    CHECK(data["configurations"][0]["verdict"] == "recommended");
    CHECK(data["configurations"][0]["values"][0] == 1500);
    CHECK(data["report"]["verdict"] == "recommended");
    CHECK(html_report(study.setup, trials, "trials_spent") == page);
}

TEST_CASE("page: nothing is fetched from anywhere") {
    const PageStudy study;
    const std::string page = html_report(
        study.setup, study.trials(6, [](std::size_t i) { return 1000.0 + double(i); }), "");
    for (const char* way : {"src=", "href=\"http", "href=\"//", "url(", "@import", "fetch(",
                            "XMLHttpRequest", "import(", "importScripts", "EventSource",
                            "WebSocket", "sendBeacon", "eval(", "new Function"}) {
        INFO(way);
        CHECK_FALSE(has(page, way));
    }
    // Only its own scripts and style run in it: nothing else is in its policy.
    CHECK(has(page, "content=\"default-src 'none'; img-src data:; style-src 'sha256-"));
    CHECK(times_in(page, "'sha256-") == 5);
    CHECK_FALSE(has(page, "unsafe"));
    CHECK_FALSE(has(page, " style=\""));
    for (const EmbeddedFile* file :
         {&page_css, &chart_js, &plane_js, &charts_js, &page_js, &live_js})
        for (const char* ending : {"</script", "</style", "<!--"})
            CHECK_FALSE(has(std::string(file->text), ending));
}

TEST_CASE("page: a study in which everything failed, and one that has not begun") {
    const PageStudy study;
    const auto failed = study.trials(6, [](std::size_t) { return 0.0; });
    const std::string page = html_report(study.setup, failed, "nothing_starts");
    CHECK(has(page, "<p><strong>Nothing can be recommended.</strong></p>"));
    CHECK(has(page, "<section class=\"brief verdict nothing_passes\""));
    CHECK(has(page, "<h3>out_of_memory: 6 trials</h3>"));
    CHECK(has(page, "<pre>line one\nline two\n</pre>"));
    CHECK_FALSE(has(page, "id=\"command\""));
    CHECK_FALSE(has(page, "nan"));
    CHECK_FALSE(has(page, "inf\""));
    CHECK(unbalanced(page).empty());
    CHECK(data_in(page)["configurations"].size() == 6);
    const std::string none = html_report(study.setup, {}, "");
    CHECK(has(none, "Nothing has been measured yet."));
    CHECK(unbalanced(none).empty());
}

TEST_CASE("headline: the default alone is not called better than what nobody has measured") {
    const PageStudy study;
    const auto rate = [](std::size_t) { return 1000.0; };
    CHECK(headline_of(study.setup, study.trials(1, rate)).reason ==
          "Nothing but the default has been measured yet.");
    CHECK(has(headline_of(study.setup, study.trials(2, rate)).reason, "Nothing measured gains"));
}

TEST_CASE("page: a server's page follows its events, and asks nobody else") {
    const PageStudy study;
    const auto trials = study.trials(6, [](std::size_t i) { return 1000.0 + double(i); });
    const std::string live = html_report(study.setup, trials, "", true, "1");
    CHECK(has(live, "; connect-src 'self'\">"));
    CHECK(has(live, "data-version=\"1\""));
    CHECK(has(live, std::string(live_js.text)));
    CHECK(times_in(live, "'sha256-") == 6);
    CHECK_FALSE(has(live, "src="));
    CHECK(unbalanced(live).empty());
}

TEST_CASE("page: each drawing has its data for the script, latencies at percentiles") {
    const PageStudy study(page_study + "decision: published\n");
    auto trials =
        study.trials(6, [](std::size_t i) { return i == 4 ? 0.0 : 1000.0 + 100 * double(i); });
    for (Trial& trial : trials) {
        if (trial.measurement() == nullptr) continue;
        Measurement more = *trial.measurement();
        more.metrics["time_to_first_token_p50_seconds"] = {0.2 + 0.01 * double(trial.id)};
        more.metrics["client_send_lag_p50_seconds"] = {0.1};
        more.metrics["client_send_lag_p99_seconds"] = {0.1};
        trial.outcome = std::move(more);
    }
    const std::string page = html_report(study.setup, trials, "trials_spent");
    CHECK(unbalanced(page).empty());
    for (const char* chart : {"path", "trade", "latency-0"})
        CHECK(times_in(page, "<figure data-chart=\"" + std::string(chart) + "\"") == 1);
    for (const char* label : {"Trial 4: ", "out_of_memory", "p50: 200 ms", "p50: 250 ms"})
        CHECK(has(page, label));
    const nlohmann::json data = data_in(page);
    CHECK(data["configurations"][0]["values"][0] == 1500);
}

TEST_CASE("page: five hundred trials stay a small page") {
    std::string text = replaced(page_study, "{choice: [64, 128, 256], ordered: true, default: 64}",
                                "{int: {low: 1, high: 300}, default: 1}");
    const PageStudy study(text);
    auto trials = study.trials(
        500, [](std::size_t i) { return i % 7 == 6 ? 0.0 : 1000.0 + double((i * 37) % 211); });
    for (Trial& trial : trials) {  // a hundred metrics, as a load test has
        if (trial.measurement() == nullptr) continue;
        Measurement more = *trial.measurement();
        for (int k = 0; k < 100; ++k)
            more.metrics["metric_number_" + std::to_string(k)] = {1.0 / 3 + k + double(trial.id)};
        trial.outcome = std::move(more);
    }
    const std::string page = html_report(study.setup, trials, "trials_spent");
    CHECK(page.size() < 2'000'000);
    CHECK(unbalanced(page).empty());
    CHECK(data_in(page)["report"]["trials"]["told"] == 500);
}

TEST_CASE("page: logs, names and findings of others stay text") {
    const std::string hostile =
        "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onfocus='alert(3)' &lt; "
        "\x1b]52;c;ZXZpbA==\x07 \xFF";
    const PageStudy study(replaced(page_study, "study: page\nmodel: org/m",
                                   "study: \"<b>page\"\nmodel: \"<img src=x "
                                   "onerror=alert(4)>\"\nnotes: [\"<script>alert(5)</script>\"]"));
    auto trials = study.trials(4, [](std::size_t i) { return 1000.0 + 100 * double(i); });
    trials[1].outcome = Failure{FailureKind::other, hostile, "", {hostile, "<!-- "}};
    Measurement odd = *trials[2].measurement();
    odd.validity = {Verdict::suspect, {{"<i>id", hostile, hostile, hostile}}};
    odd.metrics["<u>metric"] = {1};
    trials[2].outcome = odd;
    const std::string page = html_report(study.setup, trials, "<em>because");
    for (const char* live :
         {"<script>alert", "<img", "<b>", "<i>", "<u>", "<em>", "<!--", "\x1b", "\xFF"}) {
        INFO(live);
        CHECK_FALSE(has(page, live));
    }
    CHECK_FALSE(has(page.substr(0, page.find("id=\"data\"")), " onfocus='"));
    constexpr std::size_t scripts = 5;  // the data, and those of the page
    CHECK(times_in(page, "<script") == scripts);
    CHECK(times_in(page, "</script>") == scripts);
    CHECK(unbalanced(page).empty());
    CHECK(has(data_in(page)["report"]["failures"][0]["message"].get<std::string>(),
              "</script><script>alert(1)"));
}

TEST_CASE("page: titles of metrics, and which way is better") {
    CHECK(metric_title("time_to_first_token_p95_seconds@chat") == "TTFT p95, chat");
    CHECK(metric_title("total_tokens_per_second") == "total tokens/s");
    CHECK(metric_title("latency_mean_seconds") == "latency mean");
    const Objective objective({{"joules", Direction::minimize}}, {{"watts", false, 700}});
    CHECK(less_is_better(objective, "joules"));
    CHECK(less_is_better(objective, "watts"));
    CHECK_FALSE(less_is_better(objective, "answers"));
    CHECK(less_is_better({}, "time_per_output_token_mean_seconds"));
    CHECK_FALSE(less_is_better({}, "output_tokens_per_second"));
}
