# Real programs: a trace has a line for every call that an independent shim, loaded after the tracer, counted.

here=$SOURCE/tests/preload/checks
counter=$BUILD/tests/preload/libcountmalloc.so

# counted NAME COMMAND...: traces the command in a folder of its own, and compares.
counted() {
  mkdir "$1"
  (cd "$1" && shift && COUNT_OUT=$PWD LD_PRELOAD="$TRACER $counter" "$@" >out)
  /usr/bin/python3 "$here/compare_counts.py" "$1"
}

counted bash bash -c 'for i in 1 2 3; do x=$(echo $i | cat); y+=($x); done; (exit 3) || echo ${y[@]}; ls / >/dev/null'
counted python /usr/bin/python3 -c 'import json, subprocess; print(len(json.dumps(list(range(9999))))); subprocess.run(["true"])'
counted exchange "$BUILD/tests/preload/exchange" stated
counted calls "$BUILD/tests/preload/calls" all

printf '#include <map>\n#include <string>\nstd::map<std::string, int> m;\nint main() { return m["a"]; }\n' >a.cpp
counted compiler g++ -O2 -o a ../a.cpp
ls compiler/cc1plus.*.trace >/dev/null

! command -v perl >/dev/null || counted perl perl -e 'my %h; $h{$_} = "x" x $_ for 1..999; print scalar(%h), `echo $$`'
! command -v git >/dev/null || counted git git init -q repository
if command -v sqlite3 >/dev/null; then
  counted sqlite sqlite3 :memory: 'create table t(x); insert into t values(1),(2); select sum(x) from t;'
fi
