# How every target is compiled, and functions for the kinds of targets: parts, tools, unit tests, script tests.

include(CheckCXXSourceCompiles)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS program_options)
find_package(tsl-robin-map REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(BZip2 REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_path(CMT_PROTOZERO_INCLUDE_DIR protozero/pbf_builder.hpp REQUIRED)  # headers alone (Debian: libprotozero-dev)
pkg_check_modules(sqlite REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(elfutils REQUIRED IMPORTED_TARGET libdw>=0.188 libelf)
include(cmake/libiberty.cmake)
if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  find_package(doctest QUIET)
  if(NOT doctest_FOUND)
    message(STATUS "No tests are built: doctest is not installed (script/bootstrap --test installs it)")
    set(BUILD_TESTING OFF)
  endif()
endif()

# cmt_either(NAME TARGET): the library cmt_NAME. In programs with the property CMT_STATIC it is libNAME.a, in others TARGET.
set(CMT_HAS_STATIC ON)
function(cmt_either name target)
  find_library(CMT_STATIC_${name} lib${name}.a)
  add_library(cmt_${name} INTERFACE)
  set(library ${target})
  if(CMT_STATIC_${name})
    add_library(cmt_static_${name} STATIC IMPORTED)
    set_target_properties(cmt_static_${name} PROPERTIES IMPORTED_LOCATION ${CMT_STATIC_${name}})
    set(library "$<IF:$<BOOL:$<TARGET_PROPERTY:CMT_STATIC>>,cmt_static_${name},${target}>")
  elseif(CMT_PORTABLE)
    message(FATAL_ERROR "CMT_PORTABLE needs lib${name}.a")
  else()
    set(CMT_HAS_STATIC OFF PARENT_SCOPE)
  endif()
  target_link_libraries(cmt_${name} INTERFACE "${library}")
endfunction()
cmt_either(z ZLIB::ZLIB)
cmt_either(lzma LibLZMA::LibLZMA)
cmt_either(bz2 BZip2::BZip2)
cmt_either(boost_program_options Boost::program_options)
get_target_property(zstd_shared PkgConfig::zstd INTERFACE_LINK_LIBRARIES)
cmt_either(zstd "${zstd_shared}")
set_target_properties(PkgConfig::zstd PROPERTIES INTERFACE_LINK_LIBRARIES cmt_zstd)
if(CMT_PORTABLE)  # a start is no faster without these
  cmt_either(sqlite3 "")
  cmt_either(dw "")
  cmt_either(elf "")
  set_target_properties(cmt_static_sqlite3 PROPERTIES INTERFACE_LINK_LIBRARIES m)
  set_target_properties(cmt_static_elf PROPERTIES INTERFACE_LINK_LIBRARIES "cmt_static_z;cmt_static_zstd")
  set_target_properties(cmt_static_dw PROPERTIES INTERFACE_LINK_LIBRARIES "cmt_static_elf;cmt_static_lzma;cmt_static_bz2")
  set_target_properties(PkgConfig::sqlite PROPERTIES INTERFACE_LINK_LIBRARIES cmt_sqlite3)
  set_target_properties(PkgConfig::elfutils PROPERTIES INTERFACE_LINK_LIBRARIES cmt_dw)
endif()

# A static program whose threads are those of libc itself: before 2.34 they were in a library apart.
set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
check_cxx_source_compiles("#include <thread>
  #if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 34)
  #error
  #endif
  int main() { std::thread([] {}).join(); }" CMT_LINKS_STATIC)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

# cmt_starts_fast(TARGET [WITHOUT_LIBC]): links a program with static libraries where they are installed. Half of the start
# of a small program is the dynamic linking of libstdc++ and its kin. WITHOUT_LIBC: libc is static
# too, where it can be, and no shared library of the program is in C++.
function(cmt_starts_fast target)
  cmake_parse_arguments(start "WITHOUT_LIBC" "" "" ${ARGN})
  if(CMT_SANITIZE OR NOT CMT_FAST_START OR NOT (CMT_HAS_STATIC OR start_WITHOUT_LIBC))
    return()
  endif()
  if(CMT_HAS_STATIC AND CMT_LINKS_STATIC AND start_WITHOUT_LIBC)
    target_link_options(${target} PRIVATE -static-pie)
  else()
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--as-needed)
  endif()
  set_target_properties(${target} PROPERTIES CMT_STATIC ${CMT_HAS_STATIC})
endfunction()

if(CMT_CCACHE)
  find_program(CMT_CCACHE_PROGRAM ccache)
endif()
if(CMT_CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMT_CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMT_CCACHE_PROGRAM})
endif()
if(CMT_TIDY)
  # clang does not know all of GCC's options, and has sized deallocation off by default.
  set(CMAKE_CXX_CLANG_TIDY clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-error
    --extra-arg=-fsized-deallocation)
endif()

add_library(cmt_warnings INTERFACE)
target_compile_options(cmt_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string's operator+ that are not there (its bug 105329).
  target_compile_options(cmt_warnings INTERFACE -Wno-restrict)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)  # and GCC 11 reads beyond a string_view in its find()
    target_compile_options(cmt_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>)
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 17)
  # std::stable_sort of libstdc++ 12 calls a function that is deprecated.
  target_compile_options(cmt_warnings INTERFACE -Wno-deprecated-declarations)
endif()
if(CMT_WARNINGS_AS_ERRORS)
  target_compile_options(cmt_warnings INTERFACE -Werror)
endif()

# In a unity build an object has up to 40 sources, and the linker takes it whole. Sections for each function and variable
# let it drop what a program does not use.
if(NOT CMT_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections;-fdata-sections>")
  add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:LINKER:--gc-sections>")
endif()

add_library(cmt_sanitize INTERFACE)
if(CMT_SANITIZE)
  # Any finding of a sanitizer ends the program, undefined behaviour too.
  target_compile_options(cmt_sanitize INTERFACE -fsanitize=${CMT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cmt_sanitize INTERFACE -fsanitize=${CMT_SANITIZE})
endif()

# cmt_unoptimised_with_sanitizers(TARGET): with sanitizers the target is compiled with -O0, which takes half of the time. For
# targets that use little processor time in the tests.
function(cmt_unoptimised_with_sanitizers target)
  if(CMT_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

if(CMT_FUZZ)
  target_compile_options(cmt_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()

# cmt_copy_unsanitized(FILE...): copies files that are built without sanitizers from CMT_UNSANITIZED_BUILD to this build.
if(CMT_UNSANITIZED_BUILD AND NOT EXISTS ${CMT_UNSANITIZED_BUILD}/preload/libcmttrace.so)
  message(FATAL_ERROR "${CMT_UNSANITIZED_BUILD} is to be built first: cmake --workflow --preset dev")
endif()
function(cmt_copy_unsanitized)
  foreach(file ${ARGN})
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/${file} DEPENDS ${CMT_UNSANITIZED_BUILD}/${file}
      COMMAND ${CMAKE_COMMAND} -E copy ${CMT_UNSANITIZED_BUILD}/${file} ${PROJECT_BINARY_DIR}/${file})
    string(REPLACE "/" "_" target copy_${file})
    add_custom_target(${target} ALL DEPENDS ${PROJECT_BINARY_DIR}/${file})
  endforeach()
endfunction()

# cmt_parts(NAME SOURCES... [LIBRARIES LIBRARY...]): the static library NAME_parts, which a program is made of but for main().
# Its unit tests link it too, so that nothing is compiled twice.
function(cmt_parts name)
  cmake_parse_arguments(part "" "" "LIBRARIES" ${ARGN})
  add_library(${name}_parts STATIC ${part_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}_parts PUBLIC cmt::cmt ${part_LIBRARIES} PRIVATE cmt_warnings cmt_sanitize)
  target_include_directories(${name}_parts PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name}_parts PUBLIC CMT_VERSION="${PROJECT_VERSION}")
endfunction()

# cmt_tool(NAME LIBRARY): an installed command-line program, whose folder's main.cpp is among its parts.
function(cmt_tool name parts)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/toolkit/command/main.cpp)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  target_compile_definitions(${name} PRIVATE CMT_MAIN=${folder}_main)
  target_link_libraries(${name} PRIVATE ${parts} cmt_warnings cmt_sanitize)
  if(CMT_PORTABLE)
    cmt_starts_fast(${name})
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  set_property(GLOBAL APPEND PROPERTY CMT_TOOLS ${name})
endfunction()

# cmt_unit_tests(NAME LIBRARY [THREADS] SOURCES... [ARGUMENTS ARGUMENT...]): the doctest cases that sit beside the code of a
# library. THREADS: some have several threads; only those are built with the thread sanitizer.
function(cmt_unit_tests name library)
  cmake_parse_arguments(test "THREADS" "" "ARGUMENTS" ${ARGN})
  if(BUILD_TESTING AND (test_THREADS OR NOT CMT_SANITIZE STREQUAL "thread"))
    add_executable(${name} ${test_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE ${library} cmt_doctest_main cmt_warnings cmt_sanitize)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    set_target_properties(${name} PROPERTIES CXX_CLANG_TIDY "")
    if(CMT_SANITIZE AND NOT CMT_DAILY)
      target_compile_definitions(${name} PRIVATE CMT_SAMPLED_PLACES)  # tests/sampled_places.h
    endif()
    target_compile_options(${name} PRIVATE -O0)  # doctest's macros are half of what optimising costs
    add_test(NAME ${name} COMMAND ${name} ${test_ARGUMENTS})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900)
  endif()
endfunction()

# cmt_tool_of_folder(NAME [THREADS] [LIBRARIES LIBRARY...] [ARGUMENTS ARGUMENT...] [WITHOUT REGEX]): the tool of this folder.
# Its sources are all files below, except those whose paths match REGEX, and folders with a CMakeLists.txt of their own. Its
# unit tests get the arguments.
function(cmt_tool_of_folder name)
  cmake_parse_arguments(tool "THREADS" "WITHOUT" "LIBRARIES;ARGUMENTS" ${ARGN})
  set(threads "")
  if(tool_THREADS)
    set(threads THREADS)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  if(tool_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${tool_WITHOUT}")
  endif()
  file(GLOB apart */CMakeLists.txt)
  foreach(list_file ${apart})
    cmake_path(GET list_file PARENT_PATH folder)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  cmt_parts(${name} ${sources} LIBRARIES cmt_toolkit ${tool_LIBRARIES})
  cmt_tool(${name} ${name}_parts)
  if(tests)
    cmt_unit_tests(${name}_unit_test ${name}_parts ${threads} ${tests} ARGUMENTS ${tool_ARGUMENTS})
  endif()
endfunction()

# cmt_page_part(NAME FILE): sets NAME to the file's text and NAME_digest to its SHA-256. The content policy of pages contains
# the digest. If the file is not installed, both are of an empty text.
function(cmt_page_part name path)
  set(text "")
  if(EXISTS ${path})
    file(READ ${path} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endif()
  string(SHA256 digest "${text}")
  set(${name} "${text}" PARENT_SCOPE)
  set(${name}_digest ${digest} PARENT_SCOPE)
endfunction()

# cmt_script_test(NAME SCRIPT [DAILY] [SANITIZERS address|thread...] [DAILY_SANITIZERS address|thread...] [COST SECONDS]): a
# shell script that exits 0 if all is well, 77 if it is skipped. The build is in $BUILD, the sources in $SOURCE, and the script
# runs in an empty folder of its own. A build with sanitizers runs only the scripts that name one of them. Scripts that are
# DAILY, and those under DAILY_SANITIZERS, run with CMT_DAILY only. ctest starts tests of a high COST first.
function(cmt_script_test name script)
  cmake_parse_arguments(test "DAILY" "COST" "SANITIZERS;DAILY_SANITIZERS" ${ARGN})
  if(CMT_DAILY)
    list(APPEND test_SANITIZERS ${test_DAILY_SANITIZERS})
  elseif(test_DAILY)
    return()
  endif()
  string(REPLACE "," "|" sanitizers "${CMT_SANITIZE}")
  if(BUILD_TESTING AND (NOT CMT_SANITIZE OR "${test_SANITIZERS}" MATCHES "${sanitizers}"))
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/run-script ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${name})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900
      ENVIRONMENT "BUILD=${PROJECT_BINARY_DIR};SOURCE=${PROJECT_SOURCE_DIR};CMT_SANITIZE=${CMT_SANITIZE};CMT_DAILY=$<$<BOOL:${CMT_DAILY}>:1>")
    if(test_COST)
      set_tests_properties(${name} PROPERTIES COST ${test_COST})
    endif()
  endif()
endfunction()
