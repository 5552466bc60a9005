# SPDX-License-Identifier: Apache-2.0
# The zstd dictionary of lib/wire/compress.c: written by a tool of our own from templates.
set(KR_DICTIONARY_DIR ${CMAKE_SOURCE_DIR}/lib/wire/dictionary)
# What is most common comes last, where it is cheapest to refer to.
set(KR_DICTIONARY_TEMPLATES
    ${KR_DICTIONARY_DIR}/cluster.template ${KR_DICTIONARY_DIR}/workloads.template
    ${KR_DICTIONARY_DIR}/pods.template ${KR_DICTIONARY_DIR}/slim_pods.template)
add_executable(make_dictionary ${KR_DICTIONARY_DIR}/make_dictionary.c ${KR_DICTIONARY_DIR}/render.c)
target_link_libraries(make_dictionary PRIVATE PkgConfig::ZSTD)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/generated/dictionary_1.c
  COMMAND make_dictionary ${CMAKE_BINARY_DIR}/generated/dictionary_1.c ${KR_DICTIONARY_TEMPLATES}
  DEPENDS make_dictionary ${KR_DICTIONARY_TEMPLATES}
  VERBATIM)
target_sources(kr_wire PRIVATE ${CMAKE_BINARY_DIR}/generated/dictionary_1.c)
# The head of a new dictionary, once templates have changed: its number must change with it.
add_custom_target(train_dictionary
  COMMAND make_dictionary --train ${KR_DICTIONARY_DIR}/head.h ${KR_DICTIONARY_TEMPLATES}
  VERBATIM)
