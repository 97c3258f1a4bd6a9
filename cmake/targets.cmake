# How every target here is compiled, and the three kinds of targets that there are.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS program_options)
find_package(tsl-robin-map REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(BZip2 REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
pkg_check_modules(sqlite REQUIRED IMPORTED_TARGET sqlite3)
if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  find_package(doctest REQUIRED)
endif()

add_library(cmt_warnings INTERFACE)
target_compile_options(cmt_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string's operator+ that are not there (its bug 105329).
  target_compile_options(cmt_warnings INTERFACE -Wno-restrict)
endif()
if(CMT_WARNINGS_AS_ERRORS)
  target_compile_options(cmt_warnings INTERFACE -Werror)
endif()

add_library(cmt_sanitize INTERFACE)
if(CMT_SANITIZE)
  target_compile_options(cmt_sanitize INTERFACE -fsanitize=${CMT_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(cmt_sanitize INTERFACE -fsanitize=${CMT_SANITIZE})
endif()

if(CMT_FUZZ)
  target_compile_options(cmt_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()

# cmt_tool(NAME SOURCES...): a command-line program on libcmt, installed.
function(cmt_tool name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE cmt::cmt cmt_command cmt_warnings cmt_sanitize)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/libcmt)
  target_compile_definitions(${name} PRIVATE CMT_VERSION="${PROJECT_VERSION}")
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# cmt_unit_tests(NAME SOURCES...): the doctest cases that sit beside the code.
function(cmt_unit_tests name)
  if(BUILD_TESTING)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE cmt::cmt cmt_doctest_main cmt_warnings cmt_sanitize)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/libcmt)
    add_test(NAME ${name} COMMAND ${name})
  endif()
endfunction()

# cmt_script_test(NAME SCRIPT): a shell script that exits 0 where all is well, 77 where it is skipped. It finds what was
# built in $BUILD and the sources in $SOURCE, and runs in an empty folder of its own.
function(cmt_script_test name script)
  if(BUILD_TESTING)
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/run-script ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${name})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800
      ENVIRONMENT "BUILD=${PROJECT_BINARY_DIR};SOURCE=${PROJECT_SOURCE_DIR};CMT_SANITIZE=${CMT_SANITIZE}")
  endif()
endfunction()
