// SPDX-License-Identifier: Apache-2.0
#pragma once

// What libcurl needs to be told in the same way everywhere.

#include "servetune/detail/base/redactor.hpp"
#include "servetune/detail/load/load_generator.hpp"

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

/// The headers of every request to `endpoint`, its key among them. Throws UsageError for control
/// characters in them.
HeaderList headers_for(const Endpoint& endpoint);

/// A handle for `endpoint` + `path`: HTTP/1.1, no redirects, no proxies, no signals, the endpoint's
/// certificates. `headers` must outlive it. Throws IoError when libcurl gives none, UsageError for
/// a URL that is none.
EasyHandle handle_for(const Endpoint& endpoint, const std::string& path, const HeaderList& headers);

/// Why a transfer failed: libcurl's own words (`buffer` of CURLOPT_ERRORBUFFER, which may be empty)
/// and the system's.
std::string transfer_error_text(CURL* easy, CURLcode code, const char* buffer);

/// A whole answer, or why there is none; secrets of the endpoint never stand in it.
struct Reply {
    long status = 0;
    std::string body{};
    std::string error{};     ///< empty: an answer came
    std::string redirect{};  ///< where a redirect leads; it is not followed
};

/// What went wrong, to stand behind the name of what was asked: ": Could not resolve host: x" or "
/// answers 401 (...): its message".
std::string trouble_text(const Reply& reply);
/// Asked some fifty times a second while an answer is waited for: true ends the waiting.
using GiveUp = std::function<bool()>;
Reply get(const Endpoint& endpoint, const std::string& path, double timeout_seconds,
          const GiveUp& give_up = {});
Reply post(const Endpoint& endpoint, const std::string& path, const std::string& body,
           double timeout_seconds, const GiveUp& give_up = {});
/// DELETE.
Reply delete_at(const Endpoint& endpoint, const std::string& path, double timeout_seconds);

/// What no message may have: the endpoint's key, the values of its headers, the password of its
/// URL.
Redactor secrets_of(const Endpoint& endpoint);

/// Throws UsageError, which calls the text `what` and does not show it, for control characters: one
/// line end, and the rest is another header.
void check_header_text(const std::string& what, std::string_view text);

/// The addresses of the endpoint's server and of its replicas, before any path (`server_url`).
std::vector<std::string> bases_of(const Endpoint& endpoint);

/// The counters that `endpoint` names, as its server has them now; all absent when it does not
/// tell.
ServerCounters read_counters(const Endpoint& endpoint);

/// after - before, where both are known.
ServerCounters difference(const ServerCounters& after, const ServerCounters& before);

}  // namespace servetune
