# cmtwatch export: all tables of a recording, row by row, as JSON.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -rf proc ./*.db
process 7 77 'first "quoted"'
process 8 78 second
write proc/meminfo 'MemTotal: 1000 kB'
write proc/diskstats '8 0 sda 11 2 30 4 5 6 70 8 0 90 91'
cmtwatch record --root=proc -o all.db --all --count=2 --interval=1ms --max-cost=100 || complain "recording: $?"
write proc/7/smaps "$(mapping 1000-3000 rw-p '[heap]' 16 15)
$(mapping ffffffffff600000-ffffffffff601000 --xp '[vsyscall]' 0 0)"
rm -r proc/8
cmtwatch record --root=proc -o all.db --all --count=2 --interval=1ms --max-cost=100 || complain "going on: $?"
sqlite3 all.db 'insert into counter_sample values (1, 1, 10, 20, null, 40, 50)'

# same FILE.json FILE.db: complains if one has a row that the other does not have.
cat >same.py <<'END_OF_PROGRAM'
import json, sqlite3, sys
exported = json.load(open(sys.argv[1]))
recording = sqlite3.connect(sys.argv[2])
columns = exported["columns"]

def rows(query, *values):
    return [list(row) for row in recording.execute(query, values)]

def check(kind, got, table, key="", *values):
    assert got == rows(f"select {', '.join(columns[kind])} from {table} {key} order by 1", *values), (kind, got)

assert exported["schema"] == "cmt.recording/1"
assert exported["about"] == dict(recording.execute("select key, value from about"))
check("ticks", exported["ticks"], "tick")
check("system", exported["system"], "system_sample")
names = dict(recording.execute("select text, id from name"))
for disk in exported["disks"]:
    check("disks", disk["samples"], "disk_sample", "where name_id = ?", names[disk["name"]])
kept = rows("select id, pid, start_ticks, parent_pid, name_id, command, first_tick, last_tick from process order by id")
assert len(kept) == len(exported["processes"])
for (process, *about, name, command, first, last), got in zip(kept, exported["processes"]):
    assert about == [got["pid"], got["start_ticks"], got["parent_pid"]]
    assert [name, command, first, last] == [names[got["name"]], got["command"], got["first_tick"], got["last_tick"]]
    check("samples", got["samples"], "process_sample", "where process_id = ?", process)
    check("counters", got["counters"], "counter_sample", "where process_id = ?", process)
    mappings = rows("select id, begin_address, end_address, permissions, name_id from mapping where process_id = ?", process)
    assert len(mappings) == len(got["mappings"])
    for (mapping, begin, end, permissions, name), one in zip(mappings, got["mappings"]):
        assert [begin % 2**64, end % 2**64] == [int(one["begin"], 16), int(one["end"], 16)]
        assert permissions == one["permissions"] and name == (one["name"] and names[one["name"]])
        check("changes", one["changes"], "mapping_change", "where mapping_id = ?", mapping)
for table, columns_of in [("tick", "ticks"), ("system_sample", "system"), ("disk_sample", "disks"), ("process_sample", "samples"),
                          ("counter_sample", "counters"), ("mapping_change", "changes")]:
    own = {row[1] for row in recording.execute(f"pragma table_info({table})")} - {"name_id", "process_id", "mapping_id"}
    assert own == set(columns[columns_of]), (table, own)
END_OF_PROGRAM
same() { /usr/bin/python3 same.py "$1" "$2" || complain "$1 is not what $2 holds: $(cat "$1")"; }

cmtwatch export --json all.db >all.json || complain "export: $?"
same all.json all.db
jq -e '(.processes | length) == 2 and .processes[0].counters == [[1, 10, 20, null, 40, 50]] and (.disks | length) == 1' all.json >/dev/null ||
  complain "export: $(cat all.json)"
cmtwatch compare --json all.db all.json | jq -e '.runs[0].bytes == .runs[1].bytes and .runs[0].time_ns == .runs[1].time_ns and
  (.runs[0].bytes | length) == 4' >/dev/null || complain "compare of both: $(cmtwatch compare all.db all.json)"
cmtwatch compare --color=always all.db all.json | grep -q $'^\e\\[1mrun .*\e\\[0m$' || complain "compare: no bold heading"
cmtwatch peak --color=always all.db | grep -q $'^\e\\[1m *pid .*\e\\[0m$' || complain "peak: no bold heading"
cmtwatch export --json -o file.json all.db && cmp -s file.json all.json || complain "-o"

# A recording larger than one write.
write proc/7/smaps "$(for i in $(seq 1000 1500); do mapping "$i"000-"$i"800 rw-p "/a/name/of/its/own/$i" 8 8; done)"
cmtwatch record --root=proc -o many.db --count=1 7 || complain "many mappings: $?"
cmtwatch export --json many.db >many.json || complain "export: $?"
[ "$(stat -c %s many.json)" -gt 100000 ] || complain "many mappings: $(stat -c %s many.json) bytes"
same many.json many.db

status_of cmtwatch export --json -o /dev/full all.db
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch export: /dev/full: No space left on device' ] || complain "a full disk: $status $(cat err)"
status_of cmtwatch export --json nowhere.db
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch export: nowhere.db: No such file or directory' ] || complain "nowhere: $status $(cat err)"
exit $failed
