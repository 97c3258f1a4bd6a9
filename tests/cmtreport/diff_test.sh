# Checks cmtreport --diff: its text, JSON and page, and that it refuses wrong input.

failed=0
complain() { echo "$*" >&2; failed=1; }
. "$SOURCE/tests/cmtreport/two_builds.sh"
trace2cmt <after.trace >after.cmt || complain "trace2cmt: $?"

cmtreport --diff=before.trace after.cmt >text 2>err || complain "--diff: $? $(cat err)"
tr -s ' \n' ' ' <text >line
grep -q '^before: before.trace: 4,200 events$' text && grep -q '^after:  after.cmt: 4,000 events$' text || complain "the traces: $(cat text)"
grep -q '^allocated  *244 KiB  *190 KiB  *-53.7 KiB  *-22.0 %$' text || complain "the totals: $(cat text)"
grep -q '^peak  *138 KiB  *171 KiB  *+33.2 KiB  *+2[0-9.]* %$' text || complain "the peak: $(cat text)"
grep -q ' 2. +34.2 KiB live at the end, of push push has 34.2 KiB more live at the end (+35.0 %), 100.0 % of all changes of bytes live at the end; +34.2 KiB live at the peak, +34.2 KiB allocated' line || complain "push: $(cat text)"
grep -q ' 1. -97.7 KiB allocated, of old old allocates 97.7 KiB less (gone), [0-9.]* % of all changes of bytes allocated' line || complain "old: $(cat text)"
! grep -q load text || complain "load has not changed: $(cat text)"
awk 'length($0) > 80 { exit 1 }' text && [ "$(wc -l <text)" -le 23 ] || complain "more than a screen: $(cat text)"

# The JSON: the findings' figures, the differences, and figures by node whose sums are the totals.
cmtreport --diff=before.trace --json after.cmt >json || complain "--json: $?"
python3 - json <<'END' || complain "the JSON is wrong"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == "cmt.diff_report/1" and report["name"] == "before.trace to after.cmt"
assert report["by_function"]["schema"] == report["by_size"]["schema"] == "cmt.difference/1"
for side in ("before", "after"):
    for measure, columns in report["figures"].items():
        assert sum(columns[side]) == report["total"][side][measure], (side, measure)
push = report["findings"][1]
assert (push["function"], push["measure"], push["before"], push["after"]) == ("push", "leaked_bytes", 100000, 135000), push
by_name = {each["name"]: each for each in report["by_function"]["contributors"]}
assert by_name["old"]["status"] == "gone" and by_name["push"]["change"] == 35000, by_name
names = report["frames"]["function"]
chains = set()
for node in range(len(report["nodes"]["frame"])):
    chain, at = [], node
    while at != 0:
        chain.insert(0, names[report["nodes"]["frame"][at]])
        at = report["nodes"]["parent"][at]
    chains.add(".".join(chain))
assert "main.parse.push" in chains, chains
END

# If one trace has no stacks, changes are by size. A trace does not differ from itself. --focus and --skip choose functions.
sed 's/ stack=[0-9]*$//; /^#\(module\|frame\|name\|node\)/d' before.trace >plain.trace
cmtreport --diff=plain.trace after.cmt >text || complain "without stacks: $?"
grep -q '^    blocks of 128 - 1[0-9]* bytes have 1[0-9]* KiB more live at the end (new)' text || complain "by size: $(cat text)"
cmtreport --diff=after.cmt after.cmt >text
grep -q '^no difference$' text || complain "a trace and itself: $(cat text)"
cmtreport --diff=before.trace --focus=old after.cmt >text && ! grep -q push text || complain "--focus: $(cat text)"
cmtreport --diff=before.trace --skip='^push$' after.cmt >text && grep -q ' 2. +34.2 KiB  live at the end, of parse' text || complain "--skip: $(cat text)"
head -c $(($(wc -c <after.cmt) / 2)) after.cmt >short.cmt
cmtreport --diff=before.trace short.cmt >text 2>err || complain "a trace that breaks off: $?"
grep -q 'short.cmt breaks off: what it lacks is not compared' text || complain "a trace that breaks off: $(cat text)"
cmtreport --diff=- after.cmt <before.trace >text
grep -q '^before: -: 4,200 events$' text || complain "standard input: $(cat text)"

cmtreport --diff=before.trace -o page.html after.cmt 2>/dev/null || complain "-o: $?"
grep -q 'id="report"' page.html && ! grep -q '<img src=x' page.html || complain "the page"

# refused STATUS MESSAGE ARGUMENT...
refused() {
  local expected=$1 message=$2 status=0; shift 2
  cmtreport "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$expected" ] && [ ! -s out ] && grep -qF -- "$message" err || complain "$*: $status: $(cat out err)"
}
refused 2 '--diff compares two traces: --diff=BEFORE and one AFTER, not 2' --diff=before.trace after.cmt after.cmt
refused 2 '--diff needs two traces' --diff=- -
refused 2 'one AFTER, not 0' --diff=-
refused 2 'one AFTER, not 0' --diff=before.trace
refused 2 '--diff' --diff= after.cmt
for option in overhead=x replay=x watch=x pages; do refused 2 "--${option%=x}" --diff=before.trace --$option after.cmt; done
refused 2 '--json' --diff=before.trace -o - --json after.cmt
refused 1 "plain.trace: call stacks were not recorded (needed by --focus)" --diff=plain.trace --focus=x after.cmt
refused 1 'missing.cmt: No such file' --diff=missing.cmt after.cmt
refused 1 'missing.cmt: No such file' --diff=before.trace missing.cmt
refused 1 'No such file' --diff=before.trace -o missing/page.html after.cmt
refused 2 'before.trace' --diff=before.trace -o before.trace after.cmt
exit $failed
