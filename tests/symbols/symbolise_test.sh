# trace2cmt --symbolise writes names into the file; lifetimes takes them from there, or finds them itself.

program=$BUILD/tests/symbols/pie
export DEBUGINFOD_URLS=
failed=0
complain() { echo "$*" >&2; failed=1; }
refuses() { local want=$1 got; shift; got=$("$@" 2>&1 >/dev/null) && complain "$*: not refused"; [ "$(head -n 1 <<<"$got")" = "$want" ] || complain "$*: $got"; }

# A trace of the program's own addresses: each is a stack under the one before.
cp "$program" app
"$program" | awk -F'\t' -v path="$PWD/app" '
  $1 == "bias" {
    print "#cmt text=1"
    printf "#module 1 begin=%s end=ffffffffff00 bias=%s build_id=0123456789abcdef0123456789abcdef01234567 path=%s\n", $2, $2, path
    next
  }
  {
    printf "#frame %d module=1 address=%s%s\n#node %d parent=%d frame=%d\n", ++n, $2, $1 == "exact" ? " exact=1" : "", n, n - 1, n
    printf "malloc(%d) = %x<%d> stack=%d\n", n * 10, n * 4096, n, n
  }
  END { print "#cmt end=complete" }' >bare.trace

for form in text cmt; do
  trace2cmt --symbolise --to=$form -o named.$form bare.trace 2>messages
  [ "$(cat messages)" = "trace2cmt: of 7 frames without names 7 got a function, 6 a line" ] || complain "$form: $(cat messages)"
done
lifetimes --by=function --json bare.trace >looked_up.json
[ "$(jq -r '.contributors[].name' looked_up.json)" = "with_lambda()::{lambda}::operator()
plain_c
shapes::Box<int>::Box(int)
shapes::Box<int>::Box(int, int)
inner(char const*, int)
unsized_code
outer(int)
shapes::make_box()
with_lambda()" ] || complain "not these functions: $(jq -c '[.contributors[].name]' looked_up.json)"

# The same from the file's names, where the program is gone, and without a word about it.
mv app elsewhere
for form in text cmt; do
  lifetimes --by=function --json named.$form 2>messages | jq '.name = "bare.trace"' >from_file.json
  [ ! -s messages ] || complain "named.$form: $(cat messages)"
  jq . looked_up.json | cmp - from_file.json || complain "named.$form: other functions than by looking them up"
done
lifetimes --folded bare.trace >bare.folded 2>messages
[ "$(cat messages)" = "lifetimes: $PWD/app: No such file or directory; its functions are not named" ] || complain "gone: $(cat messages)"
grep -q '^app+0x[0-9a-f]* 10$' bare.folded || complain "without names: $(cat bare.folded)"

# Another program in its place.
cp "$(type -P jq)" app
lifetimes --by=library bare.trace 2>messages >table
grep -q "^lifetimes: $PWD/app: has changed since the recording (build id [0-9a-f]*, recorded 0123456789abcdef0123456789abcdef01234567); its functions are not named" messages ||
  complain "changed: $(cat messages)"
grep -q ' app$' table || complain "by library: $(cat table)"

# The program lies below another root folder, at the end of a symbolic link as it is there.
mkdir -p "tree$PWD"
cp "$program" tree/program
ln -s /program "tree$PWD/app"
trace2cmt --symbolise --root=tree -o rooted.trace bare.trace 2>messages
[ "$(cat messages)" = "trace2cmt: of 7 frames without names 7 got a function, 6 a line" ] || complain "--root: $(cat messages)"
ln -sf "$PWD/tree/program" "tree$PWD/app"  # outside
trace2cmt --symbolise --root=tree -o rooted.trace bare.trace 2>messages
grep -qx "trace2cmt: $PWD/app: No such file or directory; its functions are not named" messages || complain "--root, a link to the outside: $(cat messages)"
trace2cmt --symbolise --root=nowhere -o rooted.trace bare.trace 2>messages
grep -qx "trace2cmt: nowhere: No such file or directory; its functions are not named" messages || complain "--root=nowhere: $(cat messages)"

# Its separate debug file is still there.
lifetimes --by=line --debug-dir="$BUILD/tests/symbols/debug" bare.trace 2>messages | grep -q 'tests/symbols/sample.cpp:[0-9]* ' ||
  complain "debug file: $(cat messages)"
[ ! -s messages ] || complain "debug file: $(cat messages)"

# mtrace logs addresses less that of the program's begin in memory, and before glibc 2.35 whole ones.
fixed=$BUILD/tests/symbols/fixed
begin=$(readelf -lW "$fixed" | awk '$1 == "LOAD" { print $3; exit }')
"$fixed" | awk -F'\t' '$1 == "return"' >returns
[ $((begin)) != 0 ] && [ -s returns ] || complain "the program begins at $begin: $(cat returns)"
awk -F'\t' '{ print $3; if ($5 != "") print $5 }' returns | sort >known
n=0
for less in $begin 0; do
  while IFS=$'\t' read -r _ address _; do
    printf '@ %s:[0x%x] + 0x%x 0x8\n' "$fixed" $((0x$address - less)) $(((n += 1) * 4096))
  done <returns >fixed.log
  lifetimes --by=function --json fixed.log 2>messages | jq -r '.contributors[].name' | grep -vxF '[cut]' | sort >names
  diff known names || complain "mtrace, addresses less $less: $(cat messages)"
done

printf 'malloc(8) = 10<1>\n' >without.trace
refuses "trace2cmt: without.trace: call stacks were not recorded (needed by --symbolise)" trace2cmt --symbolise -s without.trace
trace2cmt -o without.cmt without.trace
trace2cmt --symbolise -s without.cmt >/dev/null 2>messages && complain "a .cmt without call stacks: exit 0"
[ "$(cat messages)" = "trace2cmt: without.cmt: call stacks were not recorded (needed by --symbolise)" ] || complain "a .cmt without call stacks: $(cat messages)"
refuses "lifetimes: without.trace: call stacks were not recorded (cmttrace records them, unless --calls is given)" lifetimes --by=function without.trace
refuses "lifetimes: without.trace: call stacks were not recorded (cmttrace records them, unless --calls is given)" lifetimes --folded without.trace
refuses "trace2cmt: --symbolise goes with --to=cmt, text or heaptrack: csv has no call stacks" trace2cmt --symbolise --to=csv bare.trace
refuses "trace2cmt: --anonymise does not go with --symbolise" trace2cmt --symbolise --anonymise -s bare.trace
refuses "trace2cmt: --debug-dir needs --symbolise" trace2cmt --debug-dir=x -s bare.trace
refuses "trace2cmt: --root needs --symbolise" trace2cmt --root=x -s bare.trace
exit $failed
