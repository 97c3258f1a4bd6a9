# ci/github-action/gate.py: the same program passes, one more block fails and is named, and what differs is not judged.
cc -g -O0 -I"$SOURCE/preload" "$SOURCE/tests/ci/marked.c" -o marked
gate() { status=0; "$SOURCE/ci/github-action/gate.py" "$@" >report 2>words || status=$?; echo $status; }
complain() { echo "$1" >&2; cat report words >&2; exit 1; }
expect() {  # expect STATUS LINE ARGUMENT...
  local got
  got=$(gate "${@:3}")
  [ "$got" = "$1" ] || complain "${*:3}: $got instead of $1"
  cat report words | grep -F -x -- "$2" >line || complain "${*:3}: no line: $2"
}
same='### Allocations: 0 of 4 figures worse (allowed: allocations+0%,bytes+1%)'

expect 0 '### Allocations: recorded, and not judged: there is no baseline yet' --base=none --out=base -- ./marked 1000
[ "$(cd base && echo *)" = '1.cmt 2.cmt' ] || complain "two recordings"
expect 0 "$same" --base=base --out=head --summary=summary.md -- ./marked 1000
grep -F -x "$same" summary.md >line
expect 3 '- `parse a::b`: 1,000 → 1,001 allocations (+1), by `parse_line` (+1)' --base=base --out=head -- ./marked 1001
expect 3 '- `load`: 500 → 600 bytes (+100), by `parse_line` (+100)' --base=base --out=head -- ./marked 1000 6
expect 0 '- `load`: 5 → 4 allocations (-1)' --base=base --out=head -- ./marked 1000 4
expect 0 '### Allocations: 0 of 2 figures worse (allowed: allocations+0%)' --base=base --out=head '--allow=allocations+0' -- ./marked 1000
expect 0 '### Allocations: 0 of 4 figures worse (allowed: allocations+1%,bytes+1%)' --base=base --out=head \
  '--allow=allocations+1%, bytes+1%' -- ./marked 1010
# Not judged: other numbers in each run, on either side; gone; new.
expect 0 'Not judged, since the recordings of one side differ: `load`' --base=base --out=random -- ./marked 1000 turns
expect 0 'Not judged, since the recordings of one side differ: `load`' --base=random --out=head -- ./marked 1000 2000
expect 0 'Not judged, only in the baseline: `load`' --base=base --out=fewer -- ./marked 1000 none
expect 0 'Not judged, new: `load`' --base=fewer --out=head -- ./marked 1000
# Without marks: the program as a whole.
expect 0 '### Allocations: recorded, and not judged: there is no baseline yet' --out=plain -- ./marked 1000 plain
expect 3 '- `the program`: 1,000 → 1,001 allocations (+1), by `parse_line` (+1)' --base=plain --out=head -- ./marked 1001 plain
expect 1 "gate.py: lifetimes: head/1.cmt: has no marks (cmt_mark), and so no phases" --base=base --out=head -- ./marked 1 plain
# Errors.
expect 2 "gate.py: error: --allow: expected a list such as allocations+1%,peak+2%, of allocations, bytes, peak and leaks, not 'foo'" \
  --allow=foo --out=new -- ./marked 1
[ ! -e new ] || complain "a wrong --allow records"
expect 1 'gate.py: ./marked 1 fail: exit status 7' --out=head -- ./marked 1 fail
expect 1 'gate.py: ./missing: No such file or directory' --out=head -- ./missing
mkdir empty
expect 1 'gate.py: empty: no recordings (*.cmt)' --base=empty --out=head -- ./marked 1
expect 2 'gate.py: error: --runs: 2 or more, to find what differs from run to run' --out=head --runs=1 -- ./marked 1
expect 2 'gate.py: error: --out would replace the baseline' --base=base --out=./base -- ./marked 1
[ -e base/1.cmt ] || complain "the baseline is gone"
