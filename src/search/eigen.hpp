// SPDX-License-Identifier: Apache-2.0
#pragma once

// Eigen, as everything here includes it.

// g++ 12 takes its own intrinsics of AVX-512 for uninitialized (GCC bug 105593), which
// -march=native shows.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Cholesky>
#include <Eigen/Core>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
