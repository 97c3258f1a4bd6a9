# A toolchain for arm64 on another machine: Debian's cross compiler, and a folder with the headers and libraries of arm64
# (CMT_ARM64_ROOT), which bench/arm64 makes. qemu's user emulation runs the programs.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMT_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-root CACHE PATH "Headers and libraries of arm64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMT_ARM64_ROOT)
cmake_path(NORMAL_PATH CMT_ARM64_ROOT)

set(triple aarch64-linux-gnu)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triple})
set(CMAKE_SYSROOT ${CMT_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMT_ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMT_ARM64_ROOT}/usr/lib/${triple}/pkgconfig:${CMT_ARM64_ROOT}/usr/share/pkgconfig)

find_program(CMT_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(CMT_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${CMT_QEMU} -L ${CMT_ARM64_ROOT})
endif()
