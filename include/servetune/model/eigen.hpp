// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>

// The library frees what a program allocates through these headers, and the other way round. Eigen allocates in another
// way under AVX (-march=native) and under the address sanitizer, except with this definition.
static_assert(EIGEN_MAX_ALIGN_BYTES == 64,
              "compile with -DEIGEN_MAX_ALIGN_BYTES=64, as servetune's library is: CMake does where you link servetune::optimizer, "
              "and so does `pkg-config --cflags servetune`");
