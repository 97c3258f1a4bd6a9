# Call stacks from recording to answer, of a program of which every allocation is known.

export DEBUGINFOD_URLS=
failed=0
complain() { echo "$*" >&2; failed=1; }

program=$BUILD/tests/symbols/allocating plugin=$BUILD/tests/symbols/allocating_plugin.so
cmttrace --stacks -o app.cmt -- "$program" "$plugin" 2>messages || complain "not recorded: $(cat messages)"
lifetimes --by=function --json app.cmt >report.json 2>messages || complain "$(cat messages)"
[ ! -s messages ] || complain "$(cat messages)"

# figures FUNCTION: blocks and bytes allocated, bytes at the end, temporary blocks, and blocks with callees.
figures() {
  jq -r --arg name "$1" '.contributors[] | select(.name == $name) | .self as $s |
    "\($s.allocated_blocks) \($s.allocated_bytes) \($s.leaked_bytes) \($s.temporary_blocks) \(.inclusive.allocated_blocks)"' report.json
}
expect() { local got; got=$(figures "$1"); [ "$got" = "$2" ] || complain "$1: $got, expected $2"; }
expect 'walk(int)' '50 800 800 0 50'
expect 'keep_inlined(unsigned long)' '10 2000 2000 0 10'
expect 'use_inlined()' '0 0 0 0 10'
expect 'temporary_blocks()' '200 6400 0 200 200'
expect 'resize()' '10 5500 1000 0 10'
expect 'keep_blocks' '5 15000 15000 0 5'
expect 'keep_in_plugin' '0 0 0 0 5'

# A vector's memory is charged to the function that fills it, or to a function of the vector that is not inlined.
jq -e '[.contributors[] | select(.name == "containers::fill_vector()")][0].inclusive.allocated_bytes == 2024' report.json >out ||
  complain "fill_vector: $(jq -c '.contributors[] | select(.name | contains("vector"))' report.json)"

# By library: what the plugin keeps, which is unloaded. By line: each of the known lines.
lifetimes --by=library --csv app.cmt | cut -d, -f1-3 | grep -qx 'allocating_plugin.so,5,15000' || complain "the plugin: $(lifetimes --by=library app.cmt)"
line=$(grep -n 'plugin_kept = malloc(3000)' "$SOURCE/tests/symbols/allocating_plugin.c")
lifetimes --by=line --csv app.cmt | cut -d, -f1-3 | grep -q "tests/symbols/allocating_plugin.c:${line%%:*},5,15000$" || complain "the line: $(lifetimes --by=line app.cmt)"
lifetimes --by=caller --min=0 --csv app.cmt | cut -d, -f1-3 >callers
grep -qx 'keep_blocks <- keep_in_plugin,5,15000' callers || complain "the caller: $(cat callers)"

# Folded stacks: recursion is there frame by frame, under main.
lifetimes --folded=blocks app.cmt >folded
awk '/;walk\(int\)/ { depth = gsub(/;walk\(int\)/, ""); if (depth > deepest) deepest = depth; ++lines } END { exit lines != 50 || deepest != 50 }' folded ||
  complain "recursion: $(grep -c walk folded) lines"
! grep '^\[cut' folded || complain "the process's entry calls the libraries' initialisers: their stacks are whole"
grep -q ';main;use_inlined();keep_inlined(unsigned long) 10$' folded || complain "inlined: $(grep inlined folded)"

# The names go into the file, and answer without the program.
trace2cmt --symbolise -s -o named.trace app.cmt 2>messages || complain "$(cat messages)"
lifetimes --by=function --json named.trace | jq '.name = "app.cmt"' | cmp -s - <(jq . report.json) || complain "named.trace: other functions"
# Modules that libc loads and unloads by itself, at addresses that others had.
status=0
cmttrace --stacks -o converting.cmt -- "$BUILD/tests/symbols/converting" 2>messages || status=$?
if [ $status = 77 ]; then
  echo "iconv: skipped: its modules are not installed"
else
  lifetimes --by=library --json converting.cmt 2>messages |
    jq -r '.contributors[] | select(.name | startswith("U")) | "\(.name) \(.self.allocated_blocks) \(.self.allocated_bytes)"' | sort >out
  printf '%s\n' 'UNICODE.so 10 40' 'UTF-16.so 10 80' 'UTF-32.so 10 80' | diff -u - out || complain "iconv: $(cat messages)"
fi
exit $failed
