# Finds libiberty, which demangles names of functions, as the target cmt_libiberty. Every distribution has it as a static
# library only, and some compile it without -fPIC. Then linking fails where programs are position-independent by default;
# so the check links a program.

include(CheckCXXSourceCompiles)

find_path(CMT_LIBERTY_INCLUDE_DIR demangle.h PATH_SUFFIXES libiberty)
find_library(CMT_LIBERTY iberty)
if(NOT CMT_LIBERTY_INCLUDE_DIR OR NOT CMT_LIBERTY)
  message(FATAL_ERROR "libiberty or its demangle.h is missing. Install libiberty-dev (Debian), binutils-devel (Fedora, openSUSE) or "
    "binutils (Arch); CMT_LIBERTY and CMT_LIBERTY_INCLUDE_DIR name another place")
endif()

set(CMAKE_REQUIRED_LIBRARIES ${CMT_LIBERTY})
check_cxx_source_compiles("
  extern \"C\" int rust_demangle_callback(const char*, int, void (*)(const char*, unsigned long, void*), void*);
  int main() { return rust_demangle_callback(\"_RNvC1a1f\", 0, nullptr, nullptr); }" CMT_LIBERTY_LINKS)
unset(CMAKE_REQUIRED_LIBRARIES)
if(NOT CMT_LIBERTY_LINKS)
  message(FATAL_ERROR "${CMT_LIBERTY} cannot be linked: it has no rust_demangle (before binutils 2.29), or is not compiled with "
    "-fPIC. CMakeFiles/CMakeError.log says which. For the latter, configure with -DCMAKE_EXE_LINKER_FLAGS=-no-pie")
endif()

add_library(cmt_libiberty INTERFACE)
target_include_directories(cmt_libiberty SYSTEM INTERFACE ${CMT_LIBERTY_INCLUDE_DIR})
target_link_libraries(cmt_libiberty INTERFACE ${CMT_LIBERTY})
