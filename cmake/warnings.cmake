# SPDX-License-Identifier: Apache-2.0
# Private to our own targets: whoever uses the library keeps his own.
set(SERVETUNE_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
if(SERVETUNE_WARNINGS_AS_ERRORS)
  list(APPEND SERVETUNE_WARNINGS -Werror)
endif()
