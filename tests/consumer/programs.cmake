# SPDX-License-Identifier: Apache-2.0
# Installs this build into a fresh prefix (once for all flags), builds the programs of tests/consumer/programs against it
# with -DCXX and -DFLAGS, and runs them.
set(prefix "${FOLDER}/prefix")
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
if(NOT KEEP_PREFIX)
  file(REMOVE_RECURSE "${FOLDER}")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
endif()
cmake_path(GET CXX FILENAME compiler)
string(MD5 way "${CXX} ${FLAGS}")
set(build "${FOLDER}/${compiler}-${way}")
run("${CMAKE_COMMAND}" -S "${SOURCE}/programs" -B "${build}" -G "${GENERATOR}" -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${FLAGS}" -DCMAKE_PREFIX_PATH=${prefix})
run("${CMAKE_COMMAND}" --build "${build}")
run("${CMAKE_CTEST_COMMAND}" --test-dir "${build}" --output-on-failure)
