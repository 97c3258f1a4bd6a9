# Runs at installation, after the documents are installed: links to files of the clone that are not installed become mere
# text, and example_bump.c lies beside its page.

if(NOT IS_ABSOLUTE "${cmt_documents}")
  set(cmt_documents "${CMAKE_INSTALL_PREFIX}/${cmt_documents}")
endif()
set(documents "$ENV{DESTDIR}${cmt_documents}")
foreach(page doc/questions.md doc/tutorials/production.md doc/tutorials/allocator.md)
  file(READ "${documents}/${page}" text)
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)+(preload|man)/[^)]*\\)" "\\1" text "${text}")
  string(REPLACE "](../../cmtreplay/example_bump.c)" "](example_bump.c)" text "${text}")
  file(WRITE "${documents}/${page}" "${text}")
endforeach()
