# Installs this build to a prefix, moves the prefix, and uses it from outside: tools by PATH, the library through CMake and
# through pkg-config.

if [ -n "${CMT_SANITIZE:-}" ]; then
  echo "skipped: a library with sanitizers cannot be linked into a program without"
  exit 77
fi

cmake --install "$BUILD" --prefix "$PWD/first" >install.log
mv first prefix                       # nothing may remember where it was installed
prefix=$PWD/prefix

fail() { echo "install: $*" >&2; exit 1; }
for file in lib/libcmttrace.so lib/libcmttrace-pools.so lib/libcmt.a lib/libcmt.so lib/libcmt.so.1 include/cmt/reader.h lib/cmake/cmt/cmt-config.cmake lib/pkgconfig/cmt.pc \
            share/man/man1/trace2cmt.1 share/man/man5/cmt.5 share/doc/cmt/README.md share/doc/cmt/LICENSE \
            share/doc/cmt/doc/figures.md share/doc/cmt/doc/architecture.md share/doc/cmt/format-spec/cmt.md \
            share/doc/cmt/format-spec/text.md share/doc/cmt/doc/api.md \
            share/bash-completion/completions/lifetimes share/zsh/site-functions/_lifetimes share/fish/vendor_completions.d/lifetimes.fish; do
  [ -f "$prefix/$file" ] || fail "$file is missing"
done
# Documents refer to each other, and tutorials to their programs.
while IFS=: read -r page link; do
  link=${link#](}
  [ -e "${page%/*}/${link%[)#]}" ] || fail "$page refers to ${link%[)#]}, which is not installed"
done < <(grep -roE --include='*.md' '\]\(([.][.]/)*[A-Za-z][^): #]*[)#]' "$prefix/share/doc/cmt")
! grep -rlI -e "$PWD/first" -e "$BUILD" "$prefix" || fail "a file names the place where it was built"

version=$(sed -n 's/^Version: //p' "$prefix/lib/pkgconfig/cmt.pc")
for tool in cmt trace2cmt cmtreplay lifetimes overhead cmtreport cmttrace; do
  [ "$("$prefix/bin/$tool" --version)" = "$tool $version" ] || fail "$tool --version does not say $tool $version"
done

# A program that is recorded, encoded and replayed by what was installed alone; the tracer's own encoder is found too.
export PATH=$prefix/bin:/usr/bin:/bin
for form in trace cmt; do
  CMTTRACE_OUT=bash.$form LD_PRELOAD=$prefix/lib/libcmttrace.so bash -c 'x=1; echo $x' >/dev/null
  trace2cmt -s bash.$form | grep '^malloc(' >calls || fail "the tracer recorded nothing in bash.$form"
done
cmttrace -o launched.cmt -- bash -c 'x=1; exit 3' 2>line || [ $? = 3 ] || fail "cmttrace did not pass the status on"
trace2cmt -s launched.cmt | grep '^malloc(' >calls || fail "cmttrace recorded nothing: $(cat line)"
mkdir "$prefix/preload"; echo stray >"$prefix/preload/libcmttrace.so"  # as a folder /usr/preload would be
cmttrace -o launched.cmt -- bash -c 'x=1; exit 3' 2>line || [ $? = 3 ] || fail "cmttrace did not pass the status on"
! grep -i preload line || fail "cmttrace loads what is in $prefix/preload: $(cat line)"
rm -r "$prefix/preload"
{ cmttrace --recover=nowhere 2>&1 || true; } | grep -q 'nowhere: No such file' || fail "cmttrace does not find the collector"
"$prefix/bin/cmt" info bash.cmt >info && [ -s info ] || fail "cmt does not find trace2cmt"
mkdir fake; printf '#!/bin/sh\necho "man $*"\n' >fake/man; chmod +x fake/man
[ "$(PATH=$PWD/fake:$PATH cmt help who)" = "man $prefix/bin/../share/man/man1/lifetimes.1" ] || fail "cmt help shows no page"
cmtreplay --runs=1 bash.cmt >table
[ -s table ] || fail "cmtreplay wrote no table"

printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' >two.trace

# Neither what the library is built with nor what its tests need may be asked of a consumer; nor, by CMake, pkg-config.
for without in none PkgConfig; do
  cmake -G Ninja -S "$SOURCE/tests/install/consumer" -B "cmake_$without" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_DISABLE_FIND_PACKAGE_{tsl-robin-map,doctest,Boost,$without}=ON >cmake.log 2>&1 ||
    { cat cmake.log; fail "find_package(cmt) failed"; }
  cmake --build "cmake_$without" >build.log || { cat build.log; fail "the consumer did not build through CMake"; }
  [ "$("cmake_$without/consumer" two.trace)" = "2 events" ] || fail "the consumer built through CMake is wrong"
done

# The shared library exports the API, and of the standard library nothing.
strays=$(nm -DC --defined-only "$prefix/lib/libcmt.so.1" | cut -d ' ' -f 3- | grep -vE '^((typeinfo|typeinfo name|vtable) for )?cmt::|LIBCMT_1$' || true)
[ -z "$strays" ] || fail "libcmt.so exports $strays"
nm -DC --defined-only "$prefix/lib/libcmt.so.1" | grep 'cmt::Reader::read()' >/dev/null || fail "libcmt.so does not export the API"
strays=$(nm -DC --defined-only "$prefix/lib/libcmt.so.1" | grep -E 'cmt::(text|format|heap|trace)::' || true)
[ -z "$strays" ] || fail "libcmt.so exports what is not in its headers: $strays"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
g++ -std=c++20 "$SOURCE/tests/install/consumer/consumer.cpp" -o through_pkg_config $(pkg-config --cflags --libs cmt)
ldd through_pkg_config | grep "$prefix/lib/libcmt.so.1" >/dev/null || fail "the consumer is not linked with libcmt.so.1"
[ "$(./through_pkg_config two.trace)" = "2 events" ] || fail "the consumer built through pkg-config is wrong"
[ "$(./through_pkg_config bash.cmt)" = "$(trace2cmt -s bash.cmt | grep -vc '^#') events" ] || fail "the consumer misreads a .cmt"

# The first program of doc/api.md, unchanged.
awk '/^```cpp/ { code = 1; next } /^```/ { code = 0 } code' "$SOURCE/doc/api.md" >example.cpp
g++ -std=c++20 -Wall -Wextra -Werror example.cpp -o example $(pkg-config --cflags cmt) -l:libcmt.a -L"$prefix/lib" -lzstd -pthread
[ "$(./example two.trace)" = "8 bytes" ] || fail "the first program of doc/api.md is wrong"
