// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which certificate authorities a connection over https trusts.

#include <functional>
#include <optional>
#include <string>

namespace servetune {

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
