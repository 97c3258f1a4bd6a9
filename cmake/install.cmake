# Files that `cmake --install` installs in addition to the tools, which cmt_tool installs:
#
#   library           with its headers
#   CMake package     find_package(cmt), targets cmt::cmt and cmt::cmt_shared
#   pkg-config file   cmt
#   for users         completions, manual pages and documents
#
# All of them may be moved to another prefix afterwards. A component is a package of Debian (debian/rules).

include(CMakePackageConfigHelpers)
include(cmake/completions.cmake)

install(TARGETS cmt EXPORT cmt-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
if(TARGET cmt_shared)
  install(TARGETS cmt_shared EXPORT cmt-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    NAMELINK_COMPONENT development)
endif()
install(DIRECTORY libcmt/include/cmt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")

set(cmt_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cmt)
install(EXPORT cmt-targets NAMESPACE cmt:: DESTINATION ${cmt_package_dir} COMPONENT development)
configure_package_config_file(cmake/cmt-config.cmake.in ${PROJECT_BINARY_DIR}/cmt-config.cmake
  INSTALL_DESTINATION ${cmt_package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 the API may change with the minor version.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmt-config.cmake ${PROJECT_BINARY_DIR}/cmt-config-version.cmake
  DESTINATION ${cmt_package_dir} COMPONENT development)

file(RELATIVE_PATH cmt_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/cmt.pc.in ${PROJECT_BINARY_DIR}/cmt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

foreach(section 1 5)
  install(DIRECTORY man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT tools FILES_MATCHING PATTERN "*.${section}")
endforeach()
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(FILES python/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/python COMPONENT tools)
install(DIRECTORY doc/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/doc USE_SOURCE_PERMISSIONS COMPONENT tools)
install(FILES cmtreplay/example_bump.c DESTINATION ${CMAKE_INSTALL_DOCDIR}/doc/tutorials COMPONENT tools)
install(CODE "set(cmt_documents \"${CMAKE_INSTALL_DOCDIR}\")" COMPONENT tools)
install(SCRIPT cmake/installed_links.cmake COMPONENT tools)
install(DIRECTORY corpus/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cmt/corpus COMPONENT corpus
  FILES_MATCHING PATTERN "*.cmt" PATTERN "MANIFEST")
install(PROGRAMS cluster/slurm/submit DESTINATION ${CMAKE_INSTALL_DATADIR}/cmt/slurm COMPONENT tools)
install(FILES cluster/slurm/cells.sbatch DESTINATION ${CMAKE_INSTALL_DATADIR}/cmt/slurm COMPONENT tools)
install(DIRECTORY format-spec/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/format-spec COMPONENT tools FILES_MATCHING PATTERN "*.md")
install(DIRECTORY ci/github-action DESTINATION ${CMAKE_INSTALL_DATADIR}/cmt USE_SOURCE_PERMISSIONS COMPONENT tools
  PATTERN __pycache__ EXCLUDE)
install(DIRECTORY format-spec/reports/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cmt/schemas COMPONENT tools)
