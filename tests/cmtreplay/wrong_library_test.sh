# A library that cannot be used is named in a message before anything runs.
refused() {
  local status=0
  cmtreplay --alloc=libc "--alloc=$1" --runs=1 /dev/null > out 2> words || status=$?
  test $status = 1
  test ! -s out
  test "$(wc -l < words)" = 1
  if ! grep -qx -- "cmtreplay: $2" words; then
    cat words
    return 1
  fi
}
none=$BUILD/tests/cmtreplay/libfaulty_none.so
at_load=$BUILD/tests/cmtreplay/libfaulty_at_load.so
echo 'not a library' > text.so
refused "$none" "$none: has no malloc; it would be that of .*libc.so.6"
refused "$at_load" "$at_load: ends a process that loads it: signal [0-9]* (.*)"
exits=$BUILD/tests/cmtreplay/libfaulty_exits.so
refused "$exits" "$exits: ends a process that loads it: exit status 0"
for status in 0 7; do EXIT_STATUS=$status refused "$exits" "$exits: ends a process that loads it: exit status $status"; done
refused ./missing.so './missing.so: cannot be loaded: cannot open shared object file'
refused missing.so 'missing.so: cannot be loaded: cannot open shared object file; known by name and installed: null, libc.*'
refused jemaloc 'jemaloc: cannot be loaded: cannot open shared object file; known by name and installed: null, libc.*'
if cmtreplay --alloc=jemalloc --runs=1 /dev/null > /dev/null 2>&1; then
  refused jemaloc '.* known by name and installed: .*, jemalloc.*'
fi
refused ./text.so './text.so: cannot be loaded: .*'
if cmtreplay --alloc=tbb --runs=1 /dev/null > /dev/null 2>&1; then
  refused libtbbmalloc.so.2 'libtbbmalloc.so.2: has no malloc; it would be that of .*libc.so.6; it has scalable_malloc: --prefix=scalable_'
fi
