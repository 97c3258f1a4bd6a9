# Events of pools: every form carries them or says that it leaves them out, and no tool adds their sums to malloc's.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }

cat >head.trace <<'END'
#cmt text=1
#module 1 begin=1000 end=9000 bias=1000 path=/opt/app
#frame 1 module=1 address=1010
#name 1 function=main file=app.cpp line=30
#node 1 parent=0 frame=1
END
cp head.trace plain.trace
cat >>plain.trace <<'END'
malloc(1000) = a000<1> time=10 stack=1
#frame 2 module=1 address=1020
#name 2 function=load file=db.py line=41
#node 2 parent=1 frame=2
malloc(50) = b000<2> thread=1 time=20 stack=2
free(a000<1>) time=90
#cmt end=complete
END
cp head.trace pools.trace
cat >>pools.trace <<'END'
pool_malloc(262144, "python arenas") = <1> time=5 stack=1
malloc(1000) = a000<1> time=10 stack=1
#frame 2 module=1 address=1020
#name 2 function=load file=db.py line=41
#node 2 parent=1 frame=2
pool_malloc(512, "python") = <2> time=11 stack=2
pool_malloc(24, "python") = <3> time=12 stack=1
mark("loaded") time=13
malloc(50) = b000<2> thread=1 time=20 stack=2
pool_free(<3>, "python") thread=1 time=30
pool_malloc(64, "python") = <4> thread=1 time=40 stack=2
pool_malloc(9, "cache") = <5> time=50
free(a000<1>) time=90
pool_free(<4>, "python") time=91
#cmt end=complete
END

# Both forms have all of it, and again.
trace2cmt --strict -o pools.cmt pools.trace
trace2cmt --strict --to=text pools.cmt | cmp - pools.trace || complain "text, .cmt, text"
trace2cmt --verify pools.cmt >out 2>&1 || complain "--verify: $(cat out)"
trace2cmt --to=text --slice=5:14 pools.cmt | sed '/^#/d' >out
diff -u - out <<'END' || complain "a slice"
malloc(1000) = a000<1> time=10 stack=1
mark("slice 5:14") time=13
malloc(50) = b000<2> thread=1 time=20 stack=2
pool_free(<3>, "python") thread=1 time=30
pool_malloc(64, "python") = <4> thread=1 time=40 stack=2
pool_malloc(9, "cache") = <5> time=50
free(a000<1>) time=90
pool_free(<4>, "python") time=91
END
trace2cmt --to=text --thread=0 pools.cmt | grep '^pool' >out
diff -u - out <<'END' || complain "the blocks of a thread"
pool_malloc(262144, "python arenas") = <1> time=5 stack=1
pool_malloc(512, "python") = <2> time=11 stack=2
pool_malloc(24, "python") = <3> time=12 stack=1
pool_free(<3>, "python") thread=1 time=30
pool_malloc(9, "cache") = <5> time=50
END
trace2cmt --to=text --anonymise pools.cmt | grep '^pool_malloc(9, "[0-9]*") = <5>' >/dev/null || complain "a pool's name is not anonymous"
trace2cmt --to=csv pools.cmt | grep -c ',"python"' >out
[ "$(cat out)" = 5 ] || complain "rows of CSV: $(cat out)"
trace2cmt --to=csv pools.cmt | tr -d '\r' | cut -d, -f1,2,16,17 | grep pool_ >out
diff -u - out <<'END' || complain "the blocks of pools in CSV"
event,kind,label,pool_block
1,pool_malloc,"python arenas",1
3,pool_malloc,"python",2
4,pool_malloc,"python",3
7,pool_free,"python",3
8,pool_malloc,"python",4
9,pool_malloc,"cache",5
11,pool_free,"python",4
END
for form in legacy rep heaptrack; do
  trace2cmt --to=$form -o out pools.cmt 2>err
  grep '7 events of pools: left out' err >/dev/null || complain "$form: $(cat err)"
done

# A number that is used again, and the end of a block that was not made, are no events.
printf 'pool_malloc(8, "p") = <2>\npool_malloc(8, "p") = <2>\npool_free(<3>, "p")\npool_free(<2>, "p")\n' >wrong.trace
trace2cmt --to=text wrong.trace 2>err | tr '\n' ' ' >out
[ "$(cat out)" = 'pool_malloc(8, "p") = <2> pool_free(<2>, "p") ' ] || complain "wrong numbers: $(cat out)"
trace2cmt --strict --to=text wrong.trace >out 2>err && complain "--strict takes wrong numbers"
grep '^trace2cmt: wrong.trace:2: ' err >/dev/null || complain "wrong numbers: $(cat err)"

# Each of several files has its own blocks. The free of a block that its file did not make is dropped.
printf '#cmt text=1\npool_free(<2>, "p")\npool_malloc(32, "p") = <3>\npool_free(<3>, "p")\n#cmt end=complete\n' >second.trace
printf '#cmt text=1\npool_malloc(8, "p") = <1>\npool_malloc(16, "p") = <2>\n#cmt end=complete\n' >first.trace
trace2cmt -o joined.cmt first.trace second.trace first.trace 2>err || complain "joined pools: $(cat err)"
trace2cmt --to=text joined.cmt | sed -n 's,^\(pool_[^"]*"p")\( = <.>\)*\).*,\1,p' | tr '\n' ' ' >out
[ "$(cat out)" = 'pool_malloc(8, "p") = <1> pool_malloc(16, "p") = <2> pool_malloc(32, "p") = <5> pool_free(<5>, "p") pool_malloc(8, "p") = <6> pool_malloc(16, "p") = <7> ' ] ||
  complain "joined pools: $(cat out)"
grep '1 repair: 1 free of no block dropped' err >/dev/null || complain "joined pools: $(cat err)"
status=0; trace2cmt --strict -o strict.cmt first.trace second.trace 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = 'trace2cmt: second.trace:2: ends a block that its file did not make' ] || complain "joined, --strict: $status, $(cat err)"

# The figures of malloc are those of the same trace without pools. The tools report what they leave out.
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); i = d["inputs"][0]; print(i["peak_live_bytes"], i["peak_live_blocks"], [(s["size_bytes_min"], s["allocated_blocks"], s["leaked_bytes"] if "leaked_bytes" in s else s["end_live_bytes"]) for s in d["sizes"]])' "$1"; }
lifetimes --json plain.trace >plain.json 2>err
lifetimes --json pools.cmt >pools.json 2>err
[ "$(json plain.json)" = "$(json pools.json)" ] || complain "sums of malloc: $(json plain.json) $(json pools.json)"
diff -u - err <<'END' || complain "what lifetimes leaves out"
lifetimes: pools.cmt: 5 events of pool python are not counted: 1 block with 512 bytes live at the end, at most 576 bytes; its arenas have 262,144 bytes, of which 0.2 % are in live blocks (--pool="python")
lifetimes: pools.cmt: 1 event of pool cache is not counted: 1 block with 9 bytes live at the end, at most 9 bytes (--pool="cache")
END
overhead --summary pools.cmt >out 2>err
grep -c 'not counted' err >out
[ "$(cat out)" = 2 ] || complain "what overhead leaves out: $(cat err)"
lifetimes --merge --json pools.json pools.json >merged.json 2>err || complain "--merge: $(cat err)"
lifetimes --by=function --json pools.cmt >by.json 2>err
overhead --json pools.cmt >overhead.json 2>err
cmtreport --json pools.cmt >report.json 2>err
python3 - <<'END' || complain "what the JSON leaves out"
import json
def read(name): return json.load(open(name + ".json"))
left_out = read("overhead")["pools_not_counted"]
assert left_out == [
    {"name": "python", "events": 5, "live_blocks": 1, "live_bytes": 512, "peak_live_bytes": 576, "arena_bytes": 262144},
    {"name": "cache", "events": 1, "live_blocks": 1, "live_bytes": 9, "peak_live_bytes": 9, "arena_bytes": None}], left_out
for part in read("pools")["inputs"] + read("merged")["inputs"] + [read("by")] + read("report")["processes"]:
    assert part["pools_not_counted"] == left_out, part
END
for tool in "lifetimes --summary" "lifetimes --by=function" overhead cmtreport; do
  $tool --json plain.trace 2>err | grep pools_not_counted >out && complain "$tool: pools of a trace without any"
done
cmtreport --text pools.cmt >out 2>err
grep '^cmtreport: pools.cmt: 5 events of pool python are not counted: ' err >/dev/null || complain "what cmtreport leaves out: $(cat err)"
cmtreplay --runs=1 --alloc=libc pools.cmt >out 2>&1 || complain "cmtreplay: $(cat out)"
grep '7 events of pools are not replayed' out >/dev/null || complain "what cmtreplay leaves out: $(cat out)"

# One pool instead of malloc.
for jobs in 1 2; do
  lifetimes --by=function --pool=python --csv --jobs=$jobs pools.cmt >out 2>err || complain "--by --pool: $(cat err)"
  python3 - out <<'END' || complain "functions of a pool: $(cat out)"
import csv, sys
rows = {row["function"] if "function" in row else list(row.values())[0]: row for row in csv.DictReader(open(sys.argv[1]))}
assert set(rows) == {"load", "main"}, rows.keys()
assert rows["load"]["allocated_bytes"] == "576" and rows["main"]["allocated_bytes"] == "24", rows
END
done
lifetimes --pool=python pools.cmt >out 2>err || complain "--pool: $(cat err)"
grep '^alive at the end  *1 ' out >/dev/null || complain "the summary of a pool: $(cat out)"
grep '^lifetimes: pools.cmt: 5 events of pool python: ' err >/dev/null || complain "the line of a pool: $(cat err)"
for jobs in 1 2; do
  overhead --pool=python --json --jobs=$jobs pools.cmt >out 2>err || complain "overhead --pool: $(cat err)"
  python3 - out <<'END' || complain "overhead --pool: $(cat out)"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == "cmt.pool_overhead/1" and report["pool"] == "python" and report["events"] == 6, report
assert report["peak_arena_bytes"] == 262144 and report["unknown_ends"] == 0, report
peak, holders, end = report["peak"], report["holders"], report["samples"][-1]
assert (peak["live_bytes"], peak["live_blocks"], peak["unused_bytes"], peak["event"]) == (576, 2, 261568, 5), peak
assert (end["live_bytes"], end["allocated_bytes"], end["unused_bytes"], end["old_bytes"]) == (512, 600, 261632, 0), end
assert holders["by_size"] == [[512, 1, 512]] and holders["by_age"] == [[64, 1, 512]], holders
END
  overhead --pool=python --by=function --at=peak --csv --jobs=$jobs pools.cmt >out 2>err || complain "overhead --by: $(cat err)"
  [ "$(cut -d, -f1-7 out)" = 'name,blocks,live_bytes,page_bytes,unused_bytes,sole_bytes,old_blocks
load,2,576,,,,0
main,0,0,,,,0' ] || complain "functions that hold a pool: $(cat out)"
done
overhead --pool=python --by=thread pools.cmt >out 2>err || complain "overhead --by: $(cat err)"
grep 'at event 6 (91 ns), the sample with the most unused bytes in arenas$' out >/dev/null || complain "the moment of a pool: $(cat out)"
grep '^  512 B in 1 block; 0.2 % of 256 KiB of arenas$' out >/dev/null || complain "the arenas of a pool: $(cat out)"
overhead --pool=cache pools.cmt >out 2>err || complain "overhead --pool: $(cat err)"
grep "not all of the pool's arenas were recorded" out >/dev/null || complain "a pool without arenas: $(cat out)"
overhead --pool=python --csv pools.cmt 2>err | tail -n 1 >out
[ "$(cat out)" = '6,91,512,1,600,262144,261632,0,0' ] || complain "samples of a pool: $(cat out)"
for option in --plot=a.svg --annotate --page-size=8K "--by=size --sort=pages"; do
  status=0
  overhead --pool=python $option pools.cmt >out 2>err || status=$?
  [ "$status $(grep -c '^overhead: ' err)" = '2 1' ] || complain "overhead --pool $option: exit $status, $(cat err)"
done
overhead --pool=ruby pools.cmt >out 2>err && complain "overhead: a pool that is not there"
cmtreport --pool="python arenas" --json pools.cmt >out 2>err || complain "cmtreport --pool: $(cat err)"
grep '"peak_live_bytes": 262144' out >/dev/null || complain "cmtreport --pool: other figures"
lifetimes --summary --pool=ruby pools.cmt >out 2>err && complain "a pool that is not there"
[ "$(cat err)" = 'lifetimes: pools.cmt: no events of pool ruby; the pools are python arenas, python, cache' ] || complain "a pool that is not there: $(cat err)"
status=0
lifetimes --annotate --pool=python pools.cmt >out 2>err || status=$?
[ $status = 2 ] || complain "--annotate --pool: exit $status"
# With many pools, the three with the highest peaks have a line each, and the others one together.
{ echo '#cmt text=1'; for i in $(seq 9); do echo "pool_malloc($((i * 10)), \"p$i\") = <$i>"; done; echo '#cmt end=complete'; } >many_pools.trace
lifetimes --summary many_pools.trace >out 2>err
[ "$(grep -c 'not counted' err)" = 4 ] && grep -q '1 event of pool p9 ' err && grep -q '6 events of 6 other pools are not counted (--pool)$' err ||
  complain "nine pools: $(cat err)"

exit $failed
