# Completions for bash, zsh and fish. Each tool prints them, from the table of options that it parses. Not where what is built
# does not run here: sanitized builds, which nobody installs, and cross builds without an emulator.

if(CMT_SANITIZE OR (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
  return()
endif()

# zsh of Debian reads the folder of its packages and, below /usr/local, that of everybody.
set(cmt_zsh_folder zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(cmt_zsh_folder zsh/vendor-completions)
endif()

get_property(tools GLOBAL PROPERTY CMT_TOOLS)
set(scripts "")
foreach(target ${tools})
  string(REPLACE "-launcher" "" tool ${target})
  set(folder ${PROJECT_BINARY_DIR}/completions)
  set(made ${folder}/bash/${tool} ${folder}/zsh/_${tool} ${folder}/fish/${tool}.fish)
  add_custom_command(OUTPUT ${made} DEPENDS ${target} VERBATIM
    COMMAND ${target} --completion=bash > ${folder}/bash/${tool}
    COMMAND ${target} --completion=zsh > ${folder}/zsh/_${tool}
    COMMAND ${target} --completion=fish > ${folder}/fish/${tool}.fish)
  list(APPEND scripts ${made})
  install(FILES ${folder}/bash/${tool} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
  install(FILES ${folder}/zsh/_${tool} DESTINATION ${CMAKE_INSTALL_DATADIR}/${cmt_zsh_folder} COMPONENT tools)
  install(FILES ${folder}/fish/${tool}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
endforeach()
foreach(shell bash zsh fish)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completions/${shell})
endforeach()
add_custom_target(completions ALL DEPENDS ${scripts})
