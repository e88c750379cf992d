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

/// What a server answers to a GET of `Endpoint::models_path`, in the form of OpenAI's interface:
/// `{"data": [{"id": NAME}, ...]}`.
struct ModelList {
    enum class State {
        listed,        ///< `names` has the models, perhaps none
        no_such_path,  ///< 404, 405, 501: this server has no list of models
        not_a_list,    ///< 200, with something else; `reply` has it
        no_answer      ///< no connection, or another status; `reply` has the reason
    } state = State::no_answer;
    std::vector<std::string> names{};
    Reply reply{};
};

/// Asks for the list once and waits `timeout_seconds` at most.
ModelList ask_for_models(const Endpoint& endpoint, double timeout_seconds,
                         const GiveUp& give_up = {});

/// A file of certificates, a folder of them, or both; empty: libcurl's own default.
struct CertificateAuthorities {
    std::string file{};
    std::string folder{};
};

/// The machine's authorities, as the program curl finds them: the environment variable
/// CURL_CA_BUNDLE; or else SSL_CERT_FILE and SSL_CERT_DIR; or else the first file that exists of
/// `built_in` and the places that distributions use. `variable` gives an environment variable,
/// `exists` tells whether a file is there. A file that a variable names need not exist: libcurl
/// then says that it does not.
CertificateAuthorities certificate_authorities(
    const std::function<std::optional<std::string>(const char*)>& variable,
    const std::function<bool(const std::string&)>& exists, const std::string& built_in);

/// The same for this process and its libcurl.
CertificateAuthorities certificate_authorities();

}  // namespace servetune
