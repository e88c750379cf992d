// SPDX-License-Identifier: Apache-2.0
// The page of a study in a real browser: no message of the console, nothing wider than a phone, and
// its program does what it offers. Debian's chromium; without it nothing is tested here.
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <unistd.h>
#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

namespace {

const fs::path browser = "/usr/bin/chromium";

bool has_browser() {
    if (access(browser.c_str(), X_OK) == 0) return true;
    WARN("skipped: there is no " << browser);
    return false;
}

/// A page of twelve configurations, two of which run out of memory with words that look like
/// markup.
fs::path page_of_study(const TemporaryFolder& folder) {
    std::string table =
        "max_num_seqs,kv_cache_dtype,status,total_tokens_per_second,time_to_first_token_p95_"
        "seconds,message\n";
    int n = 0;
    for (const char* seqs : {"64", "128", "256", "512", "1024", "2048"})
        for (const char* type : {"engine", "fp8"})
            table += std::string(seqs) + "," + type +
                     (++n % 6 == 0 ? ",out_of_memory,,,\"</script><script>document.title='taken'</"
                                     "script><img src=x>\"\n"
                                   : ",ok," + std::to_string(1000 + 37 * n) + "," +
                                         std::to_string(0.1 * n) + ",\n");
    folder.write("t.csv", table);
    const auto study = folder.write("study.yaml",
                                    "study: page\nmodel: m\nengine: vllm\nothers: "
                                    "default\nstrategy: exhaustive\nworkloads: [random]\n"
                                    "objective: {maximize: total_tokens_per_second, limits: "
                                    "[time_to_first_token_p95_seconds <= 900ms]}\n"
                                    "space: {max_num_seqs: {choice: [64, 128, 256, 512, 1024, "
                                    "2048], ordered: true, default: 64}, kv_cache_dtype: "
                                    "[engine, fp8]}\nevaluator: {replay: t.csv}\n");
    REQUIRE(autotune({"run", study.string(), "--quiet"}, folder.path()).code == 0);
    return folder.path() / "page/report.html";
}

/// What the browser makes of a page, and what it said meanwhile.
Ran shown_by_browser(const fs::path& page, const std::string& size, const TemporaryFolder& folder) {
    return ran({browser.string(), "--headless=new", "--no-sandbox", "--disable-gpu",
                "--enable-logging=stderr", "--v=0", "--window-size=" + size,
                "--user-data-dir=" + (folder.path() / "profile").string(),
                "--virtual-time-budget=3000", "--dump-dom", "file://" + page.string()},
               folder.path());
}

/// What `script`, run behind the page's own, returns.
nlohmann::json asked_of_page(const fs::path& page, const std::string& script,
                             const std::string& size, const TemporaryFolder& folder) {
    const std::string open = replaced(read_file(page), "Content-Security-Policy",
                                      "x-policy");  // which would refuse the script
    const std::string changed =
        replaced(open, "</body>",
                 "<script>document.body.dataset.answer = JSON.stringify((() => {" + script +
                     "})());</script></body>");
    const Ran shown = shown_by_browser(folder.write("asked.html", changed), size, folder);
    INFO(shown.err);
    CHECK(shown.code == 0);
    CHECK_FALSE(has(shown.err, "CONSOLE"));
    const std::string begin = "data-answer=\"";
    const auto from = shown.out.find(begin);
    REQUIRE(from != std::string::npos);
    std::string answer = shown.out.substr(
        from + begin.size(), shown.out.find('"', from + begin.size()) - from - begin.size());
    for (auto at = answer.find("&quot;"); at != std::string::npos; at = answer.find("&quot;"))
        answer.replace(at, 6, "\"");
    return nlohmann::json::parse(answer);
}

}  // namespace

TEST_CASE("page in a browser: no message of the console, and text of others runs nothing") {
    if (!has_browser()) return;
    const TemporaryFolder folder;
    const fs::path page = page_of_study(folder);
    const Ran shown = shown_by_browser(page, "1200,900", folder);
    INFO(shown.err);
    CHECK(shown.code == 0);
    CHECK_FALSE(has(shown.err, "CONSOLE"));
    CHECK(has(shown.out, "<html lang=\"en\" class=\"has-script\">"));
    CHECK(has(shown.out, "<title>page: m</title>"));
    CHECK_FALSE(has(shown.out, "<img"));
}

TEST_CASE("page in a browser: tables sort and filter, axes change, a row finds its mark") {
    if (!has_browser()) return;
    const TemporaryFolder folder;
    const nlohmann::json answer = asked_of_page(page_of_study(folder), R"js(
        const result = {};
        const first = () => document.querySelector('#results tbody tr').cells[0].textContent;
        const head = document.querySelectorAll('#results thead th')[1];
        result.best = first();
        head.querySelector('button').click();
        result.sort = head.getAttribute('aria-sort');
        result.worst = first();
        head.querySelector('button').click();
        result.again = first();
        const filter = document.getElementById('filter');
        filter.value = 'fp8';
        filter.dispatchEvent(new Event('input'));
        result.kept = Array.from(document.querySelectorAll('#results tbody tr')).filter((row) => !row.hidden).length;
        result.said = document.getElementById('shown').textContent;
        const trade = document.getElementById('chart-trade');
        const before = trade.getAttribute('aria-label');
        const x = document.getElementById('trade-x');
        x.value = document.getElementById('trade-y').value;
        x.dispatchEvent(new Event('change'));
        result.redrawn = before !== trade.getAttribute('aria-label');
        result.marks = trade.querySelectorAll('.mark:not([display])').length;
        document.querySelector('#results tbody tr').click();
        result.chosen = document.querySelectorAll('#chart-trade .mark.chosen').length;
        return result;
    )js",
                                                "1200,900", folder);
    INFO(answer.dump());
    CHECK(answer["sort"] == "ascending");
    CHECK(answer["best"] != answer["worst"]);
    CHECK(answer["again"] != answer["worst"]);
    CHECK(answer["kept"] == 6);
    CHECK(answer["said"] == "6 of 12 rows: with this text");
    CHECK(answer["redrawn"] == true);
    CHECK(answer["marks"] == 10);  // two gave no number
    CHECK(answer["chosen"] == 1);
}

TEST_CASE(
    "page in a browser: on a phone nothing but drawings and tables is wider, and text has contrast "
    "in light and dark") {
    if (!has_browser()) return;
    const TemporaryFolder folder;
    const fs::path page = page_of_study(folder);
    const char* const ask = R"js(
        const light = (color) => {
          const part = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
          const [r, g, b] = color.match(/[\d.]+/g).map(Number);
          return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
        };
        const style = getComputedStyle(document.documentElement);
        const probe = document.createElement('span');
        document.body.append(probe);
        const ratios = {};
        for (const ground of ['--ground', '--panel'])
          for (const name of ['--text', '--soft', '--accent', '--good', '--bad', '--warn']) {
            probe.style.color = style.getPropertyValue(name);
            const a = light(getComputedStyle(probe).color);
            probe.style.color = style.getPropertyValue(ground);
            const b = light(getComputedStyle(probe).color);
            ratios[name + ' on ' + ground] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          }
        return {ratios, wide: document.documentElement.scrollWidth, window: document.documentElement.clientWidth,
                unnamed: Array.from(document.querySelectorAll('svg')).filter((one) => !one.getAttribute('aria-label') &&
                                                                                            !one.closest('[aria-hidden=true]')).length,
                unlabelled: Array.from(document.querySelectorAll('input,select')).filter((one) => one.labels.length === 0).length};
    )js";
    const nlohmann::json answer =
        asked_of_page(page, ask, "500,900", folder);  // chromium's windows are no narrower
    INFO(answer.dump());
    CHECK(answer["wide"] == answer["window"]);
    CHECK(answer["unnamed"] == 0);
    CHECK(answer["unlabelled"] == 0);
    constexpr double enough = 4.5;  // WCAG 2.2, 1.4.3: contrast of text
    for (const auto& [name, ratio] : answer["ratios"].items()) {
        INFO(name);
        CHECK(ratio.get<double>() >= enough);
    }
    const std::string dark = read_file(page);
    const auto at = dark.find("@media (prefers-color-scheme:dark)");
    REQUIRE(at != std::string::npos);
    const fs::path forced = folder.write(
        "dark.html", replaced(dark, "@media (prefers-color-scheme:dark)", "@media all"));
    const nlohmann::json of_dark = asked_of_page(forced, ask, "500,900", folder);
    CHECK(of_dark["ratios"] != answer["ratios"]);
    for (const auto& [name, ratio] : of_dark["ratios"].items()) {
        INFO("dark: " << name);
        CHECK(ratio.get<double>() >= enough);
    }
}
