# Threads free and resize each other's blocks. Every allocator replays the same calls, in every order, prepared and
# streamed. Dependencies are counted. In a new trace no address is live twice.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_threads.py" $([ "${CMT_DAILY:-}" ] && echo 15000 || echo 5000) 4 > t.trace
calls=$(grep -cv thread_ t.trace)
lives=$(grep -c thread_start t.trace)
options=(--alloc=libc --alloc=null)
for name in jemalloc mimalloc tcmalloc tbb; do
  if cmtreplay --alloc=$name --runs=1 /dev/null > /dev/null 2>&1; then options+=(--alloc=$name); fi
done
for how in --prepared --stream '--order=strict --prepared' '--order=strict --stream' '--threads=1 --stream'; do
  case $how in *strict*) options=(--alloc=libc) ;; esac  # strict order is slow
  cmtreplay --alloc=null "${options[@]}" $how --runs=1 --json t.trace > report.json 2> words
  /usr/bin/python3 - "$how" "$calls" "$lives" << 'END'
import json, sys
how, calls, lives = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open("report.json") as file:
    report = json.load(file)
mode = report["mode"]
assert report["trace"]["calls"] == calls
assert mode["operations"] == ("spooled" if "stream" in how else "prepared")
assert mode["order"] == ("one_thread" if "threads" in how else "strict" if "strict" in how else "free")
if "threads" in how:
    assert mode["threads"] == mode["threads_at_once"] == 1 and mode["true_dependencies"] == 0
else:
    assert mode["threads"] == lives and mode["threads_at_once"] == 4
    # Blocks are freed on any of up to four threads.
    assert calls * 0.2 < mode["true_dependencies"] < calls * 0.5
if mode["order"] == "free":
    # There are at most as many slots as live blocks and frees of two epochs, and some for a realloc and four NULLs.
    assert mode["slots"] <= report["trace"]["peak_live_blocks"] + 2 * 4096 + 10, mode
    assert mode["false_dependencies"] >= calls // 4096
# The memory that the replay uses itself.
assert mode["replay_bytes"] <= 8 * (report["trace"]["peak_live_blocks"] + 2 * 4096) + (4 << 20), mode
for result in report["allocators"] + [report["baseline"]]:
    assert result["death"] is None and result["refused_calls"]["max"] == 0, result["name"]
    assert len(result["marks"]) == 100 and result["marks"][-1]["event"] == report["trace"]["events"]
    if mode["order"] != "free":
        assert result["block_waits"]["max"] == 0
    if result["library"] is None:
        assert result["peak_resident_bytes"] <= 64 * 1024, result["peak_resident_bytes"]
    else:
        assert result["peak_resident_bytes"] > report["trace"]["peak_live_bytes"] / 4
END
done
if test "$(nproc)" -lt 4; then
  cmtreplay --runs=1 t.trace 2>&1 > /dev/null | grep -qx 'cmtreplay: t.trace: up to 4 threads at once, more than CPUs: the times are not meaningful, and a peak depends on how threads overlap'
fi

cmtreplay -v --runs=1 t.trace > new.trace 2> words
/usr/bin/python3 "$SOURCE/tests/cmtreplay/check_new_trace.py" <(sed 's/ thread=0$//' t.trace) <(sed 's/ thread=0$//' new.trace)
