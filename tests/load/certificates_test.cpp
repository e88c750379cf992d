// SPDX-License-Identifier: Apache-2.0
#include "load/http.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "support/test.hpp"

#include <map>
#include <set>

using namespace servetune;

namespace {

CertificateAuthorities authorities(const std::map<std::string, std::string>& environment,
                                   const std::set<std::string>& files,
                                   const std::string& built_in = "") {
    const auto variable = [&](const char* name) {
        const auto* row = entry_in(environment, name);
        return row == nullptr ? std::nullopt : std::optional(*row);
    };
    return certificate_authorities(
        variable, [&](const std::string& path) { return files.contains(path); }, built_in);
}

}  // namespace

TEST_CASE("certificates: an environment variable comes before the machine's bundle") {
    const std::set<std::string> files{"/etc/ssl/certs/ca-certificates.crt", "/built/in.pem"};
    CHECK(authorities({{"SSL_CERT_FILE", "/mine.pem"}}, files).file == "/mine.pem");
    CHECK(authorities({{"SSL_CERT_FILE", "/mine.pem"}, {"CURL_CA_BUNDLE", "/curl.pem"}}, files)
              .file == "/curl.pem");
    CHECK(authorities({{"SSL_CERT_DIR", "/certs"}}, files).folder == "/certs");
    CHECK(authorities({{"SSL_CERT_DIR", "/certs"}}, files).file.empty());
    CHECK(authorities({{"SSL_CERT_FILE", ""}}, files).file == "/etc/ssl/certs/ca-certificates.crt");
}

TEST_CASE("certificates: the bundle of each distribution is found, libcurl's own first") {
    for (const char* bundle :
         {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
          "/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
          "/etc/ssl/cert.pem"}) {
        CHECK(authorities({}, {bundle}).file == bundle);
        CHECK(authorities({}, {bundle, "/built/in.pem"}, "/built/in.pem").file.empty());
        CHECK(authorities({}, {bundle}, "/built/in.pem").file == bundle);
    }
    CHECK(authorities({}, {}).file.empty());
}
