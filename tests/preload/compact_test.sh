# A name that ends in .cmt: the same events, encoded by the collector, unnoticed by the program.

. "$SOURCE/tests/waiting.sh"
programs=$BUILD/tests/preload
failed=0
complain() { echo "$*" >&2; failed=1; }
traced() { LD_PRELOAD=$TRACER CMTTRACE_OUT=${out:-t.cmt} "$@"; }
text() { trace2cmt --to=text "$1" >"${1%.cmt}.trace"; }
# await NAME SIZE: until NAME.cmt has the end of its trace, and a block of that size.
await() { until_true "text $1.cmt && grep -q '^#cmt end=' $1.trace && grep -q 'malloc($2)' $1.trace"; }
check() { /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" "$@" >/dev/null || failed=1; }

traced "$programs/exchange" stated
text t.cmt
"$BUILD/tests/preload/exchange_check" t.trace stated

traced "$programs/children" lonely || complain "the program noticed the collector: $?"
for how in closefrom close_range loop; do
  rm -f mine
  out=$how.cmt traced "$programs/children" closes $how || complain "closes $how: $?"
  text $how.cmt
  grep -q 'malloc(50003)' $how.trace || complain "closes $how: the end is missing"
done
out=v.%p.cmt traced "$programs/children" vforks || complain "vforks: $?"
[ "$(ls v.*.cmt | wc -l)" = 3 ] || complain "vforks: $(ls v.*)"
out=f.%p.cmt traced "$programs/children" forks || complain "forks: $?"
[ "$(ls f.*.cmt | wc -l)" = 3 ] || complain "forks: $(ls f.*)"
for file in v.*.cmt f.*.cmt; do text "$file"; check "${file%.cmt}.trace"; done

# The trace of a killed program has all its events too, and ends. The collector may take a moment longer than the
# program, which did not live to wait for it.
status=0
out=killed.cmt traced "$programs/endings" kill 2>err || status=$?
[ $status = 137 ] || complain "kill: $status"
await killed 60002
tail -n 1 killed.trace | grep -qx '#cmt end=complete.*' || complain "killed: $(tail -n 1 killed.trace)"

out=e.cmt traced "$programs/endings" execv || status=$?
await e 60008
check e.trace

# Its output is not held open by anybody: this would wait for ever.
words=$(traced bash -c 'echo out; echo err >&2' 2>&1)
[ "$words" = $'out\nerr' ] || complain "output: $words"

# Without a collector the program goes on, with one line about it.
rm -f t.* stated
CMTTRACE_COLLECTOR=/nonexistent traced "$programs/calls" all 2>err || complain "no collector: $?"
[ "$(cat err)" = "libcmttrace: cannot start the collector: No such file or directory; the program goes on untraced" ] || complain "said: $(cat err)"
CMTTRACE_COLLECTOR=/bin/false traced "$programs/exchange" stated 2>err || complain "a collector that ends: $?"
[ "$(cat err)" = "libcmttrace: the collector has ended; the program goes on untraced" ] || complain "said: $(cat err)"
[ "$failed" = 0 ]
