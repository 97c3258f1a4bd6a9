# Completions for bash, zsh and fish, which script/completions writes from each tool's --help. Absent from builds whose
# programs do not run here, which are cross builds without an emulator, from sanitized builds, which nobody installs, and
# from a machine without Python.

if(CMT_SANITIZE OR (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
  return()
endif()
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(STATUS "python3 is missing: the shells get no completions")
  return()
endif()

# zsh of Debian reads the folder of its packages and, below /usr/local, that of everybody.
set(cmt_zsh_folder zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(cmt_zsh_folder zsh/vendor-completions)
endif()

get_property(tools GLOBAL PROPERTY CMT_TOOLS)
set(script ${PROJECT_SOURCE_DIR}/script/completions)
set(folder ${PROJECT_BINARY_DIR}/completions)
set(all_made "")
foreach(target ${tools})
  string(REGEX REPLACE "-(driver|launcher)$" "" tool ${target})
  set(started "")
  if(tool STREQUAL cmt)  # its subcommands are the other tools; an emulator would not run them
    if(CMAKE_CROSSCOMPILING)
      continue()
    endif()
    set(started ${tools})
  endif()
  set(made ${folder}/bash/${tool} ${folder}/zsh/_${tool} ${folder}/fish/${tool}.fish)
  add_custom_command(OUTPUT ${made} DEPENDS ${target} ${started} ${script} VERBATIM
    COMMAND ${Python3_EXECUTABLE} ${script} ${folder} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${target}>)
  list(APPEND all_made ${made})
  install(FILES ${folder}/bash/${tool} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
  install(FILES ${folder}/zsh/_${tool} DESTINATION ${CMAKE_INSTALL_DATADIR}/${cmt_zsh_folder} COMPONENT tools)
  install(FILES ${folder}/fish/${tool}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
endforeach()
add_custom_target(completions ALL DEPENDS ${all_made})
