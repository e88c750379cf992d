// SPDX-License-Identifier: Apache-2.0
// A server over https, whose certificate an authority of our own has signed.
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <cstdint>
#include <memory>
#include <vector>

using namespace servetune::test;

namespace {

/// openssl's server, which answers /v1/models with two models.
class HttpsServer {
public:
    explicit HttpsServer(const TemporaryFolder& folder) : port_(free_port()) {
        const std::string key = "openssl req -newkey rsa:2048 -nodes -days 2 ";
        const std::string made =
            "cd " + folder.path().string() + " && exec >/dev/null 2>&1 && mkdir v1 && " + key +
            "-x509 -keyout own.key -out own.pem -subj '/CN=an authority' && " + key +
            "-keyout key.pem -out asked.pem -subj /CN=127.0.0.1 && "
            "printf 'subjectAltName=IP:127.0.0.1' >names && openssl x509 -req -in asked.pem -CA "
            "own.pem -CAkey own.key "
            "-CAcreateserial -days 2 -extfile names -out cert.pem";
        if (std::system(made.c_str()) != 0)
            throw std::runtime_error("openssl makes no certificates");  // NOLINT: a test
        folder.write("v1/models",
                     "HTTP/1.0 200 ok\r\nContent-Type: application/json\r\n\r\n"
                     R"({"object": "list", "data": [{"id": "one"}, {"id": "two"}]})");
        process_ = std::make_unique<ChildProcess>(
            std::vector<std::string>{"/usr/bin/env", "openssl", "s_server", "-quiet", "-HTTP",
                                     "-accept", "127.0.0.1:" + std::to_string(port_), "-cert",
                                     "cert.pem", "-key", "key.pem"},
            folder.path());
        if (!comes_true([&] {
                return std::system(("openssl s_client -connect 127.0.0.1:" +
                                    std::to_string(port_) +  // NOLINT: a test
                                    " </dev/null >/dev/null 2>&1")
                                       .c_str()) == 0;
            }))
            throw std::runtime_error("openssl's server does not answer: " + process_->err());
    }
    [[nodiscard]] std::string url(const std::string& scheme = "https") const {
        return scheme + "://127.0.0.1:" + std::to_string(port_);
    }

private:
    std::uint16_t port_;
    std::unique_ptr<ChildProcess> process_;
};

/// What `autotune bench` says with these variables and options.
std::string said(const std::vector<std::string>& variables, const std::string& url,
                 const std::vector<std::string>& options = {}) {
    const TemporaryFolder folder;
    std::vector<std::string> words{"/usr/bin/env",  "-u", "CURL_CA_BUNDLE", "-u",
                                   "SSL_CERT_FILE", "-u", "SSL_CERT_DIR"};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {SERVETUNE_PROGRAM, "bench", "--quiet", "--url", url});
    words.insert(words.end(), options.begin(), options.end());
    ChildProcess program(words, folder.path());
    CHECK(program.wait() != 0);
    return program.err();
}

}  // namespace

TEST_CASE(
    "https: an authority is trusted where an environment variable or an option names its "
    "certificate") {
    const TemporaryFolder folder;
    const HttpsServer server(folder);
    const std::string authority = (folder.path() / "own.pem").string();
    const auto answered = [](const std::string& text) {
        return has(text, "serves several models");
    };
    CHECK(answered(said({"SSL_CERT_FILE=" + authority}, server.url())));
    CHECK(answered(said({"CURL_CA_BUNDLE=" + authority}, server.url())));
    CHECK(answered(said({}, server.url(), {"--certificates", authority})));
    const std::string unknown = said({}, server.url());
    INFO(unknown);
    CHECK_FALSE(answered(unknown));
    CHECK(has(unknown, "ertificate"));
    const std::string missing = said({"SSL_CERT_FILE=/no/such.pem"}, server.url());
    INFO(missing);
    CHECK(has(missing, "/no/such.pem"));
}
