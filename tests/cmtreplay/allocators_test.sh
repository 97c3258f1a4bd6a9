# Every packaged allocator that is installed runs, and the JSON has all figures of each.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 10000 > t.trace
options=(--alloc=libc)
for name in jemalloc tcmalloc mimalloc tbb scudo; do
  if cmtreplay --alloc=$name --runs=1 /dev/null > /dev/null 2> words; then
    options+=(--alloc=$name)
  else
    grep -qxE "cmtreplay: $name: not installed; (the loader knows none of .*|no compiler here brings it along)" words
    echo "skipped: $(cat words)"
  fi
done
echo "${options[@]}"
cmtreplay "${options[@]}" --runs=3 --json t.trace > all.json 2> words
cmtreplay "${options[@]}" --runs=1 t.trace > table 2> /dev/null
grep -q '^allocator  *time  *95 %  *ratio  *CPU  *kernel' table
sed -n $((${#options[@]} + 3))p table | grep -q '^(null) '
cmtreplay --alloc=all --runs=1 --csv t.trace > all.csv 2> /dev/null
cmtreplay --help | grep -qx "Installed here: $(tail -n +2 all.csv | cut -d , -f 1 | head -n -1 | paste -sd , | sed 's/,/, /g')"
/usr/bin/python3 - "${options[@]}" << 'END'
import json, sys
with open("all.json") as file:
    text = file.read()
assert text.startswith('{\n  "schema": "cmt.replay/1"') and "NaN" not in text
report = json.loads(text)
names = [option.removeprefix("--alloc=") for option in sys.argv[1:]]
assert [result["name"] for result in report["allocators"]] == names
trace = report["trace"]
assert trace["events"] == 10000
assert trace["calls"] + trace["failed_calls"] + trace["other_events"] <= 10000
assert trace["failed_calls"] > 0 and trace["unknown_blocks"] > 0 and trace["other_events"] > 0
for result in report["allocators"]:
    assert result["death"] is None
    for figure in ("wall_ns", "cpu_ns", "minor_faults", "major_faults"):
        samples = result[figure]["samples"]
        assert len(samples) == 3
        assert result[figure]["median"] == sorted(samples)[1]
        assert result[figure]["min"] == min(samples) and result[figure]["max"] == max(samples)
    assert result["wall_ns"]["min"] > 0
    # As C allows, Scudo refuses an aligned_alloc whose size is no multiple of the alignment.
    assert result["refused_calls"]["max"] == 0 or result["name"] == "scudo"
    # Blocks are touched, so their memory is resident. No allocator needs ten times the requested bytes.
    assert trace["peak_live_bytes"] / 4 < result["peak_resident_bytes"] < trace["peak_live_bytes"] * 10
    assert result["peak_resident_bytes"] >= max(mark["resident_bytes"] for mark in result["marks"])
    assert any(mark["working_set_pages"] for mark in result["marks"] if mark["working_set_pages"] is not None) or \
        all(mark["working_set_pages"] is None for mark in result["marks"])
    if result["name"] != "libc":
        assert "libc.so" not in result["library"]
    else:
        assert "libc.so" in result["library"]
import csv
with open("all.csv") as file:
    rows = list(csv.DictReader(file))
assert [row["allocator"] for row in rows] == names + ["null"]
for row in rows:
    assert row["runs"] == "1" and row["death_event"] == "" and int(row["wall_ns_median"]) > 0
    assert row["wall_ns_min"] == row["wall_ns_median"] == row["wall_ns_max"]
    assert int(row["peak_live_bytes"]) == trace["peak_live_bytes"]
END
