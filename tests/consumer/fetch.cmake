# SPDX-License-Identifier: Apache-2.0
# Builds and runs the project of tests/consumer/fetch, which gets servetune by FetchContent; an install of it has nothing of servetune.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
cmake_path(GET SOURCE PARENT_PATH tests)
cmake_path(GET tests PARENT_PATH repository)
run("${CMAKE_COMMAND}" -S "${SOURCE}/fetch" -B "${FOLDER}/build" -G "${GENERATOR}" -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${FLAGS}"
  "-DSERVETUNE=${repository}" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24)
run("${CMAKE_COMMAND}" --build "${FOLDER}/build")
run("${FOLDER}/build/tuner")
run("${CMAKE_COMMAND}" --install "${FOLDER}/build" --prefix "${FOLDER}/prefix")
file(GLOB_RECURSE installed "${FOLDER}/prefix/*")
if(installed)
  message(FATAL_ERROR "the project installs ${installed}")
endif()
