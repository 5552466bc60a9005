# SPDX-License-Identifier: Apache-2.0
# Compiler switches, libraries and the generated protocol code.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

option(KR_TESTS "build the tests" ON)
option(KR_FUZZ "build the fuzzers (clang)" OFF)
set(KR_SANITIZE "" CACHE STRING "value of -fsanitize")

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Wformat=2 -Wvla -Wstrict-prototypes
                    -Wmissing-prototypes -Wno-sign-conversion
                    -Wno-missing-field-initializers -Werror)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-format-truncation) # cutting is what snprintf is used for
else()
  add_compile_options(-Wno-string-conversion) # KR_ASSERT(!"what went wrong")
endif()
add_compile_definitions(_GNU_SOURCE KR_VERSION="${PROJECT_VERSION}")
if(KR_SANITIZE)
  add_compile_options(-fsanitize=${KR_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KR_SANITIZE})
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # The checks that are woven in make these warnings see paths that do not exist.
    add_compile_options(-Wno-nonnull -Wno-maybe-uninitialized)
  endif()
else()
  # Hardening that the sanitizers cannot live with.
  add_compile_options(-D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection
                      -fcf-protection=full -fno-strict-aliasing)
  add_link_options(-pie -Wl,-z,relro,-z,now,-z,noexecstack)
endif()

find_package(PkgConfig REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2>=1.52)
pkg_check_modules(PROTOBUFC REQUIRED IMPORTED_TARGET libprotobuf-c>=1.4)
pkg_check_modules(JSONC REQUIRED IMPORTED_TARGET json-c>=0.16)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares>=1.18)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.5)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib>=1.2.11)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.40)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash>=0.8)
find_path(LIBEV_INCLUDE_DIR ev.h REQUIRED)
find_library(LIBEV_LIBRARY ev REQUIRED)
add_library(PkgConfig::LIBEV INTERFACE IMPORTED)
target_include_directories(PkgConfig::LIBEV INTERFACE ${LIBEV_INCLUDE_DIR})
target_link_libraries(PkgConfig::LIBEV INTERFACE ${LIBEV_LIBRARY} m)
