# cpack runs this script in the staging folder of each package. It adds copyright and changelog, compresses the changelog and
# manual pages, and removes files that Debian has elsewhere. Compressed files contain no time, so that they are the same each
# time.

file(GLOB components RELATIVE ${CPACK_TEMPORARY_DIRECTORY} ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(component ${components})
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  if(name STREQUAL "" OR NOT IS_DIRECTORY ${root})
    continue()
  endif()
  set(documents ${root}/share/doc/${name})
  if(component STREQUAL "tools")  # cmake --install puts them below the name of the project
    file(RENAME ${root}/share/doc/cmt ${documents})
    file(REMOVE ${documents}/LICENSE)
    file(RENAME ${documents}/CHANGELOG.md ${documents}/changelog)
    execute_process(COMMAND gzip -9n ${documents}/changelog COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB pages ${root}/share/man/man*/*.[1-9])
    execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(MAKE_DIRECTORY ${documents})
  file(COPY_FILE ${CPACK_RESOURCE_FILE_LICENSE} ${documents}/copyright)
  file(WRITE ${documents}/changelog.Debian
    "cmt (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Release ${CPACK_PACKAGE_VERSION}.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${CMT_RELEASE_DATE}\n")
  execute_process(COMMAND gzip -9n ${documents}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
endforeach()
