# No tool writes a name with characters that a terminal obeys: controls of ASCII and of Unicode, and those that turn the
# direction of writing. The names are in traces, or of files and processes.

failed=0
complain() { echo "$*" >&2; failed=1; }

obeyed='[\x00-\x08\x0b-\x1f\x7f]|(^|[\x00-\x7f])[\x80-\xbf]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]'
hostile=$(printf 'a\033[31mb\033]0;c\007\302\233\233d\342\200\256e\342\201\246f\177')

# quiet STATUS COMMAND...: it ends with the status, says something, and nothing of it is obeyed.
quiet() {
  local expected=$1 status=0; shift
  "$@" </dev/null >out 2>&1 || status=$?
  [ "$status" = "$expected" ] || complain "$*: exit $status: $(cat -v out)"
  [ -s out ] || complain "$*: says nothing"
  sed -i "s/\r$//" out  # of CSV
  ! LC_ALL=C grep -qP "$obeyed" out || complain "$*: $(LC_ALL=C grep -P "$obeyed" out | head -n 3 | cat -v)"
}

escaped='a\x1b[31mb\x1b]0;c\x07\xc2\x9b\x9bd\xe2\x80\xaee\xe2\x81\xa6f\x7f'
cat >"$hostile.trace" <<END
#cmt text=1
#cmt program="$escaped"
malloc(8) = 1000<1>
mark("$escaped")
thread_name("$escaped") thread=1
malloc(16) = 2000<2> thread=1
#cmt end=complete
END
trace2cmt <"$hostile.trace" >"$hostile.cmt" || complain "trace2cmt: $?"
printf '#cmt text=1\nmalloc(8) = 1000<1>\nmark("%s")\nfree(1000<1>)  # %s\n#cmt end=complete\n' "$hostile" "$hostile" >raw.trace

for file in "$hostile.trace" "$hostile.cmt" raw.trace; do
  for form in text csv; do quiet 0 trace2cmt --to=$form "$file"; done
  quiet 0 trace2cmt --info "$file"
  quiet 0 trace2cmt --info --json "$file"
  quiet 0 trace2cmt --verify "$file"
  for tool in lifetimes overhead; do
    quiet 0 $tool "$file"
    for form in summary csv json; do quiet 0 $tool --$form "$file"; done
    $tool --plot="$tool.svg" "$file" || complain "$tool --plot: $?"
    quiet 0 cat $tool.svg
  done
  for form in text json; do quiet 0 cmtreport --$form "$file"; done
  quiet 0 cmtreplay --runs=1 --alloc=null "$file"
  quiet 0 cmtreplay --runs=1 --alloc=null --json "$file"
done

# In call stacks: of modules, functions and files, in the forms for other viewers too.
cat >stacks.trace <<END
#cmt text=1
#cmt program="$escaped"
#cmt command="$escaped"
#module 1 begin=1000 end=9000 bias=1000 path="$escaped"
#frame 1 module=1 address=1010
#name 1 function="$escaped" file="$escaped" line=30
#node 1 parent=0 frame=1
malloc(8) = 1000<1> stack=1
#cmt end=complete
END
for option in --by=function --by=caller --by=line --by=library --folded --speedscope=-; do quiet 0 lifetimes $option stacks.trace; done
lifetimes --pprof=stacks.pb.gz stacks.trace 2>/dev/null || complain "lifetimes --pprof: $?"
quiet 0 python3 "$SOURCE/tests/analysis/read_pprof.py" stacks.pb.gz
quiet 0 trace2cmt --to=heaptrack stacks.trace

# The text form loses nothing of a label.
trace2cmt --text "$hostile.cmt" | cmp - "$hostile.trace" || complain "the text form is another one"
trace2cmt raw.trace | trace2cmt --text | grep -qxF "mark(\"$escaped\")" || complain "the label is another one"

# Messages: of a file, of a line, and of wrong use.
printf 'malloc(8) = %s\n' "$hostile" >wrong.trace
for tool in trace2cmt lifetimes overhead cmtreport cmtreplay; do
  quiet 1 $tool "no $hostile"
  quiet 2 $tool "--$hostile"
done
for tool in lifetimes overhead cmtreport; do quiet 1 $tool --strict wrong.trace; done
quiet 1 trace2cmt --strict wrong.trace
quiet 1 cmtreplay --alloc="./$hostile.so" "$hostile.cmt"
cp "$BUILD/cmtreplay/libexample_bump.so" "$hostile.so"
for how in '--runs=5 --alloc=libc' '--runs=1 --trim-at=end' '--runs=2 --command=true' --verify; do
  quiet 0 cmtreplay $how --alloc="./$hostile.so" "$hostile.cmt"
done
line=$(printf 'a\nb.so')  # an end of a line makes no line
cp "$hostile.so" "$line"
cmtreplay --runs=1 --alloc="./$line" "$hostile.cmt" 2>/dev/null | grep -q '^\./a b\.so ' || complain "a line in the name of an allocator"
quiet 1 cmtwatch show --at=0s "no $hostile"
quiet 2 cmtwatch "$hostile"
quiet 127 cmttrace -- "./no $hostile"

# A process and a mapping with such names.
printf '1000-2000 rw-p 00000000 00:00 0 /%s\nRss: 4 kB\nPss: 4 kB\n' "$hostile" >smaps
cmtwatch import --name="$hostile" -o recording.cmtw smaps || complain "import: $?"
for show in "show --at=0s" "show -v --at=0s" "show --json --at=0s" peak "peak --json" "export --json"; do
  quiet 0 cmtwatch $show recording.cmtw
done
quiet 0 cmtwatch compare "$hostile:recording.cmtw"

exit $failed
