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

// The library frees what a program allocates through these headers, and the other way round. Eigen
// allocates in another way under AVX (-march=native) and under the address sanitizer, except with
// this definition.
static_assert(EIGEN_MAX_ALIGN_BYTES == 64,
              "compile with -DEIGEN_MAX_ALIGN_BYTES=64, as servetune's library is: CMake does where you link servetune::optimizer, "
              "and so does `pkg-config --cflags servetune`");
