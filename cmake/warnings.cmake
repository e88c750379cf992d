# SPDX-License-Identifier: Apache-2.0
# Private to our own targets: whoever uses the library keeps his own.
set(SERVETUNE_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND SERVETUNE_WARNINGS -Wno-restrict)  # false alarms on std::string + at -O2 and above (GCC bug 105651)
endif()
if(SERVETUNE_WARNINGS_AS_ERRORS)
  list(APPEND SERVETUNE_WARNINGS -Werror)
endif()
