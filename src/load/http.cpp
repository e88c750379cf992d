// SPDX-License-Identifier: Apache-2.0
#include "http.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "load/metrics_page.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

namespace servetune {
namespace {

/// Where distributions keep their bundle: Go looks there too, in this order
/// (https://github.com/golang/go, src/crypto/x509/root_linux.go).
constexpr std::array bundles{
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL 7 and later
    "/etc/ssl/cert.pem",                                  // Alpine
};

void append_header(HeaderList& list, const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw IoError("libcurl has no memory for a header");
    (void)list.release();
    list.reset(longer);
}

/// Of what is no load test: lists, counters, an answer of a few tokens.
constexpr std::size_t most_reply_bytes = 8U << 20U;

std::size_t write_to_string(char* bytes, std::size_t size, std::size_t count, void* into) {
    auto& text = *static_cast<std::string*>(into);
    if (text.size() + size * count > most_reply_bytes) return 0;
    text.append(bytes, size * count);
    return size * count;
}

/// As curl_easy_perform, which looks up only once a second.
CURLcode perform_until(CURL* easy, const GiveUp& give_up) {
    struct MultiDeleter {
        void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
    };
    const std::unique_ptr<CURLM, MultiDeleter> multi(curl_multi_init());
    if (!multi || curl_multi_add_handle(multi.get(), easy) != CURLM_OK) return CURLE_FAILED_INIT;
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    for (int running = 1; running > 0 && !give_up();) {
        if (curl_multi_perform(multi.get(), &running) != CURLM_OK) break;
        int messages = 0;
        if (running > 0) curl_multi_poll(multi.get(), nullptr, 0, 20, nullptr);
        else if (const CURLMsg* message = curl_multi_info_read(multi.get(), &messages))
            result = message->data.result;
    }
    curl_multi_remove_handle(multi.get(), easy);
    return result;
}

Reply perform(const Endpoint& endpoint, const EasyHandle& easy, double timeout_seconds,
              const GiveUp& give_up) {
    Reply reply;
    std::array<char, CURL_ERROR_SIZE> words{};
    curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, words.data());
    curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, write_to_string);
    curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &reply.body);
    curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_seconds * 1000));
    const CURLcode code =
        give_up ? perform_until(easy.get(), give_up) : curl_easy_perform(easy.get());
    const Redactor secrets = secrets_of(endpoint);
    if (code != CURLE_OK)
        reply.error = secrets(transfer_error_text(easy.get(), code, words.data()));
    if (code == CURLE_WRITE_ERROR)
        reply.error =
            "its answer has more than " + std::to_string(most_reply_bytes >> 20U) + " MiB";
    curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, nullptr);
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &reply.status);
    const char* redirect = nullptr;
    if (curl_easy_getinfo(easy.get(), CURLINFO_REDIRECT_URL, &redirect) == CURLE_OK &&
        redirect != nullptr)
        reply.redirect = secrets(redirect);
    if (!secrets.empty()) reply.body = secrets(reply.body);
    return reply;
}

/// The server's message, in one line, so that nothing of it looks like a line of ours: OpenAI's
/// error object, FastAPI's detail, or the beginning of what is there.
std::string message_of_body(const std::string& body) {
    constexpr std::size_t most = 500;
    const auto object = shallow_json<nlohmann::json>(body);
    if (object.is_object()) {
        const auto error = object.find("error");
        const auto& holder = error != object.end() && error->is_object() ? *error : object;
        for (const char* key : {"message", "detail", "error"})
            if (const auto found = holder.find(key); found != holder.end() && found->is_string())
                return printable_line(found->get<std::string>().substr(0, most));
    }
    return printable_line(body.substr(0, most));
}

std::string_view meaning_of(const Reply& reply) {
    if (reply.status == 401) return " (no API key, or a wrong one)";
    if (reply.status == 403) return " (access denied)";
    if (reply.status == 407) return " (a proxy wants to know who asks)";
    return "";
}

void trust_authorities(CURL* easy, const Endpoint& endpoint) {
    const CertificateAuthorities trusted =
        endpoint.certificates.empty() ? certificate_authorities()
                                      : CertificateAuthorities{.file = endpoint.certificates};
    if (!trusted.file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, trusted.file.c_str());
    if (!trusted.folder.empty()) curl_easy_setopt(easy, CURLOPT_CAPATH, trusted.folder.c_str());
}

constexpr std::array<std::pair<std::string_view, std::optional<double> ServerCounters::*>, 7>
    counter_fields{{{"prompt_tokens", &ServerCounters::input_tokens},
                    {"generated_tokens", &ServerCounters::output_tokens},
                    {"prefix_hit_tokens", &ServerCounters::prefix_hit_tokens},
                    {"requests", &ServerCounters::requests},
                    {"preemptions", &ServerCounters::preemptions},
                    {"drafted_tokens", &ServerCounters::drafted_tokens},
                    {"accepted_tokens", &ServerCounters::accepted_tokens}}};

}  // namespace

std::string transfer_error_text(CURL* easy, CURLcode code, const char* buffer) {
    std::string text = buffer != nullptr && *buffer != '\0' ? buffer : curl_easy_strerror(code);
    const auto says = [&](const char* words) {
        return contains(text, words);
    };  // OpenSSL's, Mbed TLS's
    if (says("wrong version number") || says("invalid SSL record"))
        text += " (TLS asked a server that speaks http: write http://)";
    long system = 0;
    const bool known =
        curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &system) == CURLE_OK && system != 0;
    if (known && code == CURLE_COULDNT_CONNECT)
        text += " (" + std::generic_category().message(static_cast<int>(system)) + ")";
    return text;
}

std::string trouble_text(const Reply& reply) {
    if (!reply.error.empty()) return ": " + reply.error;
    std::string text = " answers " + std::to_string(reply.status) + std::string(meaning_of(reply));
    if (!reply.redirect.empty())
        return text + ": a redirect to " + reply.redirect +
               ", which is not followed: give that address instead";
    const std::string message = message_of_body(reply.body);
    return text + (message.empty() ? "" : ": " + message);
}

std::string server_url(const std::string& address) {
    if (!address.starts_with("http://") && !address.starts_with("https://"))
        throw UsageError(
            "a server's address begins with http:// or https://, such as http://127.0.0.1:8000, "
            "got '" +
            without_user_info(address) + "'");
    std::string url = address;
    const auto without_slashes = [&] {
        while (url.ends_with('/')) url.pop_back();
    };
    without_slashes();
    for (const std::string_view path : {"/chat/completions", "/completions", "/models"})
        if (const std::string whole = "/v1" + std::string(path); url.ends_with(whole)) {
            url.resize(url.size() - path.size());
            break;
        }
    if (url.ends_with("/v1")) url.resize(url.size() - 3);
    without_slashes();
    return url;
}

HeaderList headers_for(const Endpoint& endpoint) {
    HeaderList list;
    append_header(list, "Content-Type: application/json");
    append_header(list, "Expect:");  // or libcurl waits for a "100 Continue" before large prompts
    check_header_text("the API key", endpoint.api_key);
    if (!endpoint.api_key.empty()) append_header(list, "Authorization: Bearer " + endpoint.api_key);
    for (const auto& [name, value] : endpoint.headers) {
        check_header_text("the name of a header", name);
        check_header_text("the header " + name, value);
        append_header(list, name + ": " + value);
    }
    return list;
}

EasyHandle handle_for(const Endpoint& endpoint, const std::string& path,
                      const HeaderList& headers) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    EasyHandle easy(curl_easy_init());
    if (!easy) throw IoError("libcurl gives no handle");
    const std::string base = server_url(endpoint.url);
    CURL* handle = easy.get();
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_URL, (base + path).c_str());
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION,
                     CURL_HTTP_VERSION_1_1);  // HTTP/2 would put all streams on one connection
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, 30'000L);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE,
                     8192L);  // of each connection; an event has some hundred bytes
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, endpoint.verify_certificate ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, endpoint.verify_certificate ? 2L : 0L);
    trust_authorities(handle, endpoint);
    return easy;
}

Reply get(const Endpoint& endpoint, const std::string& path, double timeout_seconds,
          const GiveUp& give_up) {
    const HeaderList headers = headers_for(endpoint);
    const EasyHandle easy = handle_for(endpoint, path, headers);
    curl_easy_setopt(easy.get(), CURLOPT_ACCEPT_ENCODING,
                     "");  // what it can unpack; the bound is on what comes out
    return perform(endpoint, easy, timeout_seconds, give_up);
}

Reply post(const Endpoint& endpoint, const std::string& path, const std::string& body,
           double timeout_seconds, const GiveUp& give_up) {
    const HeaderList headers = headers_for(endpoint);
    const EasyHandle easy = handle_for(endpoint, path, headers);
    curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    return perform(endpoint, easy, timeout_seconds, give_up);
}

Redactor secrets_of(const Endpoint& endpoint) {
    Redactor result;
    result.add(endpoint.api_key);
    for (const auto& [name, value] : endpoint.headers) {
        result.add(value);
        result.add(value.substr(
            std::min(value.size(), value.find(' ') + 1)));  // `Bearer KEY`: the key by itself too
    }
    add_user_info(result, endpoint.url);
    for (const auto* urls : {&endpoint.replicas, &endpoint.counted})
        for (const std::string& url : *urls) add_user_info(result, url);
    return result;
}

std::vector<std::string> bases_of(const Endpoint& endpoint) {
    std::vector<std::string> result{server_url(endpoint.url)};
    for (const std::string& url : endpoint.replicas) result.push_back(server_url(url));
    return result;
}

void check_header_text(const std::string& what, std::string_view text) {
    const auto control =
        find_if(text, [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7F'; });
    if (control == text.end()) return;
    throw UsageError(
        what + ": text without control characters wanted, got byte " +
        std::to_string(static_cast<int>(*control)) + " at place " +
        std::to_string(control - text.begin() + 1) + " of " + std::to_string(text.size()) +
        (*control == '\n' || *control == '\r' ? " (a line end; was it read from a file?)" : ""));
}

namespace {

ServerCounters counters_of_one(const Endpoint& endpoint) {
    ServerCounters result;
    const Reply reply = get(endpoint, endpoint.metrics_path, 5);
    if (reply.status != 200 || !reply.error.empty()) return result;
    for (const auto& [ours, theirs] : endpoint.counters)
        for (const auto& [name, field] : counter_fields)
            if (name == ours && !(result.*field)) result.*field = metric_in(reply.body, theirs);
    return result;
}

}  // namespace

ServerCounters read_counters(const Endpoint& endpoint) {
    if (endpoint.metrics_path.empty() || endpoint.counters.empty()) return {};
    std::vector<std::string> servers = endpoint.counted;
    if (servers.empty()) {
        servers = endpoint.replicas;
        servers.insert(servers.begin(), endpoint.url);
    }
    std::optional<ServerCounters> result;
    for (const std::string& url : servers) {
        Endpoint one = endpoint;
        one.url = url;
        const ServerCounters more = counters_of_one(one);
        if (!result) result = more;
        else
            for (const auto& [name, field] :
                 counter_fields)  // of a part of the servers a sum says nothing
                (*result).*field = (*result).*field && more.*field
                                       ? std::optional(*((*result).*field) + *(more.*field))
                                       : std::nullopt;
    }
    return result.value_or(ServerCounters{});
}

ServerCounters difference(const ServerCounters& after, const ServerCounters& before) {
    ServerCounters result;
    for (const auto& [name, field] : counter_fields)
        if (const auto& now = after.*field, &then = before.*field; now && then)
            result.*field = *now - *then;
    return result;
}

CertificateAuthorities certificate_authorities(
    const std::function<std::optional<std::string>(const char*)>& variable,
    const std::function<bool(const std::string&)>& exists, const std::string& built_in) {
    const auto given = [&](const char* name) { return variable(name).value_or(""); };
    if (std::string file = given("CURL_CA_BUNDLE"); !file.empty()) return {.file = std::move(file)};
    CertificateAuthorities result{.file = given("SSL_CERT_FILE"), .folder = given("SSL_CERT_DIR")};
    if (!result.file.empty() || !result.folder.empty() || (!built_in.empty() && exists(built_in)))
        return result;
    for (const char* bundle : bundles)
        if (exists(bundle)) return {.file = bundle};
    return result;
}

CertificateAuthorities certificate_authorities() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
        return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    };
    const auto exists = [](const std::string& path) {
        std::error_code unseen;
        return std::filesystem::exists(path, unseen);
    };
    const char* built_in = curl_version_info(CURLVERSION_NOW)->cainfo;
    return certificate_authorities(variable, exists, built_in != nullptr ? built_in : "");
}

ModelList ask_for_models(const Endpoint& endpoint, double timeout_seconds, const GiveUp& give_up) {
    using State = ModelList::State;
    ModelList result;
    result.reply = get(endpoint, endpoint.models_path, timeout_seconds, give_up);
    const long status = result.reply.status;
    if (!result.reply.error.empty()) return result;
    if (status == 404 || status == 405 || status == 501) result.state = State::no_such_path;
    if (status != 200) return result;
    result.state = State::not_a_list;
    const auto object = shallow_json<nlohmann::json>(result.reply.body);
    const auto data = object.is_object() ? object.find("data") : object.end();
    if (!object.is_object() || data == object.end() || !data->is_array()) return result;
    result.state = State::listed;
    for (const auto& model : *data)
        if (const auto id = model.is_object() ? model.find("id") : model.end();
            model.is_object() && id != model.end() && id->is_string())
            result.names.push_back(id->get<std::string>());
    return result;
}

}  // namespace servetune
