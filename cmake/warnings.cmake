# SPDX-License-Identifier: Apache-2.0
# Private to our own targets: whoever uses the library keeps his own.
set(SERVETUNE_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wnon-virtual-dtor -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND SERVETUNE_WARNINGS -Wno-restrict)  # false alarms on std::string + at -O2 and above (GCC bug 105651)
endif()
# A unity build puts the constants of one file before the locals of another: no shadow that anybody wrote.
if(NOT CMAKE_UNITY_BUILD)
  list(APPEND SERVETUNE_WARNINGS -Wshadow)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND SERVETUNE_WARNINGS -Wshadow=local)
endif()
if(SERVETUNE_WARNINGS_AS_ERRORS)
  list(APPEND SERVETUNE_WARNINGS -Werror)
endif()
