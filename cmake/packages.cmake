# Debian packages, made by cpack (script/package): a component of `cmake --install` each.
#
#   cmt-tools    the programs, the tracer, manual pages, completions, documents ("cmt" is another package of Debian)
#   cmt-corpus   the traces of cmtreplay --suite
#
#   libcmt0      the shared library; 0 is its SOVERSION
#   libcmt-dev   headers, static library, CMake package and pkg-config file
#
# dpkg-shlibdeps finds the libraries that each needs.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cmt)
set(CPACK_PACKAGE_VENDOR "The cmt authors")
# The packages name their builder as the maintainer. Without a name, the address is one that cannot exist (RFC 2606).
set(maintainer "cmt local build <nobody@cmt.invalid>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CMT_MAINTAINER "${maintainer}" CACHE STRING "NAME <ADDRESS> in the packages; by default that of DEBFULLNAME and DEBEMAIL")
set(CPACK_PACKAGE_CONTACT "${CMT_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tools corpus library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Adds what Debian requires in all packages and cmake --install does not provide: copyright, changelog, compressed pages.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)

# The loader's cache is renewed after the packages with a library where it looks.
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)

# cmt_package(COMPONENT NAME SECTION SUMMARY DESCRIPTION): describes the package of a component.
macro(cmt_package component name section summary description)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${component}_DESCRIPTION "${summary}\n${description}")
endmacro()

cmt_package(TOOLS cmt-tools devel "recorder and replayer of memory allocations"
  "Records what a program asks of malloc and its kin, from all threads and\nchildren, in well under a byte a call; shows where the memory goes and which\ncode asked for it; and replays the same calls on any allocator, to compare\ntheir time and memory.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "cmt-corpus, libjemalloc2, libmimalloc2.0")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "librsvg2-bin, libdebuginfod1, libtcmalloc-minimal4")

cmt_package(CORPUS cmt-corpus devel "recorded memory allocations of real programs"
  "Traces of compilers, a build, interpreters, databases, servers under load and a\nvideo encoder, for cmtreplay --suite: it compares allocators on all of them.")
set(CPACK_DEBIAN_CORPUS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_CORPUS_PACKAGE_ENHANCES cmt-tools)

cmt_package(LIBRARY libcmt0 libs "reader and writer of traces of memory allocations"
  "A C++ library that reads and writes the traces of cmt-tools, as text and in its\ncompact form: sequentially, from any event on, or with several threads.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

cmt_package(DEVELOPMENT libcmt-dev libdevel "reader and writer of traces of memory allocations - headers"
  "Headers, static library, CMake package and pkg-config file of libcmt, and\ncmttrace.h, by which a program sets marks in its own trace.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libcmt0 (= ${PROJECT_VERSION}-1), libzstd-dev")

# The date of the changelog: that of the last commit (SOURCE_DATE_EPOCH), else today.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/release_date.cmake)
file(WRITE ${PROJECT_BINARY_DIR}/release_date.cmake "set(CMT_RELEASE_DATE \"${date}\")\n")

include(CPack)
