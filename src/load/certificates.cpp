// SPDX-License-Identifier: Apache-2.0
#include "certificates.hpp"

#include <curl/curl.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
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

}  // namespace

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

}  // namespace servetune
