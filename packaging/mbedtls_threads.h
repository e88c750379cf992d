// SPDX-License-Identifier: Apache-2.0
// What Mbed TLS needs besides its defaults: requests run on several threads.
#define MBEDTLS_THREADING_C
#define MBEDTLS_THREADING_PTHREAD
