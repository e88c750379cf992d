# SPDX-License-Identifier: Apache-2.0
# CMake toolchain of scripts/package: static programs for Linux, on any distribution. PACKAGE_ARCH (x86_64 or aarch64) and
# PACKAGE_ROOT, the folder of tools, headers and libraries, come from its environment, so that CMake's own tries see them too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{PACKAGE_ARCH})
set(tools $ENV{PACKAGE_ROOT}/$ENV{PACKAGE_ARCH}/tools)
set(CMAKE_C_COMPILER ${tools}/cc)
set(CMAKE_CXX_COMPILER ${tools}/c++)
set(CMAKE_AR ${tools}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${tools}/ranlib CACHE FILEPATH "")
set(CMAKE_FIND_ROOT_PATH $ENV{PACKAGE_ROOT}/$ENV{PACKAGE_ARCH}/libraries $ENV{PACKAGE_ROOT}/headers/usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(BUILD_SHARED_LIBS OFF)
# Paths of this machine stay out of the programs: two builds in different folders give the same bytes.
set(CMAKE_C_FLAGS_INIT "-g0 -ffile-prefix-map=$ENV{PACKAGE_ROOT}=/package -ffile-prefix-map=$ENV{PACKAGE_SOURCE}=/servetune")
# fmt 10's header of times does not compile with its checks at compile time and clang 22.
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -DFMT_CONSTEVAL=")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# musl gives threads 128 KiB of stack unless the program says more; regular expressions and JSON need what glibc gives.
set(libraries $ENV{PACKAGE_ROOT}/$ENV{PACKAGE_ARCH}/libraries/lib)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -s -Wl,-z,stack-size=8388608 -L${libraries}")
set(CMAKE_CXX_STANDARD_LIBRARIES_INIT ${libraries}/mimalloc.o)  # of C++ alone: it throws

