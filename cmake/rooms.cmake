# SPDX-License-Identifier: Apache-2.0
# kr_room(NAME DIR deps...): one library per room, named kr_NAME, of all C files in its folder.
function(kr_room name dir)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.c)
  add_library(kr_${name} STATIC ${sources})
  target_include_directories(kr_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/lib)
  target_link_libraries(kr_${name} PUBLIC ${ARGN})
endfunction()

# kr_program(NAME DIR deps...): a library of the folder's files but main.c (tests link it), and the
# program itself.
function(kr_program name dir)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.c)
  list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/${dir}/main.c)
  add_library(kr_${dir} STATIC ${sources})
  target_include_directories(kr_${dir} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/lib)
  target_link_libraries(kr_${dir} PUBLIC ${ARGN} Threads::Threads)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/${dir}/main.c)
  target_link_libraries(${name} PRIVATE kr_${dir})
endfunction()

# The protocol: C by protoc-c into the build folder, a library without our warnings.
set(KR_PROTO_DIR ${CMAKE_BINARY_DIR}/generated)
set(KR_PROTO_FILE kuberelay/v1/kuberelay)
find_program(PROTOC_C NAMES protoc-c REQUIRED)
file(MAKE_DIRECTORY ${KR_PROTO_DIR})
add_custom_command(
  OUTPUT ${KR_PROTO_DIR}/${KR_PROTO_FILE}.pb-c.c ${KR_PROTO_DIR}/${KR_PROTO_FILE}.pb-c.h
  COMMAND ${PROTOC_C} --c_out=${KR_PROTO_DIR} -I${CMAKE_SOURCE_DIR}/proto
          ${CMAKE_SOURCE_DIR}/proto/${KR_PROTO_FILE}.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/proto/${KR_PROTO_FILE}.proto
  VERBATIM)
add_library(kr_proto STATIC ${KR_PROTO_DIR}/${KR_PROTO_FILE}.pb-c.c)
target_include_directories(kr_proto SYSTEM PUBLIC ${KR_PROTO_DIR})
target_compile_options(kr_proto PRIVATE -w)
target_link_libraries(kr_proto PUBLIC PkgConfig::PROTOBUFC)
