// SPDX-License-Identifier: Apache-2.0
#pragma once

// What libcurl needs to be told in the same way everywhere.

#include "servetune/load/load_generator.hpp"

#include <curl/curl.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace servetune {

struct CurlDeleter {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using EasyHandle = std::unique_ptr<CURL, CurlDeleter>;
using HeaderList = std::unique_ptr<curl_slist, CurlDeleter>;

/// The headers of every request to `endpoint`, its key among them.
HeaderList headers_for(const Endpoint& endpoint);

/// A handle for `endpoint` + `path`: HTTP/1.1, no redirects, no proxies, no signals, the endpoint's certificates. `headers` must outlive it.
/// Throws IoError when libcurl gives none, UsageError for a URL that is none.
EasyHandle handle_for(const Endpoint& endpoint, const std::string& path, const HeaderList& headers);

/// Why a transfer failed: libcurl's own words (`buffer` of CURLOPT_ERRORBUFFER, which may be empty) and the system's.
std::string transfer_error_text(CURL* easy, CURLcode code, const char* buffer);

/// A whole answer, or why there is none; a key never stands in it.
struct Reply {
    long status = 0;
    std::string body{};
    std::string error{};     ///< empty: an answer came
    std::string redirect{};  ///< where a redirect leads; it is not followed
};

/// What went wrong, to stand behind the name of what was asked: ": Could not resolve host: x" or " answers 401 (...): its message".
std::string trouble_text(const Reply& reply);
/// Asked some fifty times a second while an answer is waited for: true ends the waiting.
using GiveUp = std::function<bool()>;
Reply get(const Endpoint& endpoint, const std::string& path, double timeout_seconds, const GiveUp& give_up = {});
Reply post(const Endpoint& endpoint, const std::string& path, const std::string& body, double timeout_seconds, const GiveUp& give_up = {});

/// `text` with the endpoint's key blotted out.
std::string without_key(std::string text, const Endpoint& endpoint);

/// The sum over all labels of one metric in Prometheus' text format; nothing when it is not there.
std::optional<double> metric_in(std::string_view text, std::string_view metric);

/// The counters that `endpoint` names, as its server has them now; all absent when it does not tell.
ServerCounters read_counters(const Endpoint& endpoint);

/// after - before, where both are known.
ServerCounters difference(const ServerCounters& after, const ServerCounters& before);

}  // namespace servetune
