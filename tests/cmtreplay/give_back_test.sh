# Calls that give memory back are replayed if the allocator has them, or with --give-back=counterpart as the call that it
# has for the same purpose. The others are counted and reported.
{
  for tag in $(seq 2000); do echo "malloc(4000) = <$tag>"; done
  for tag in $(seq 1999); do echo "free(<$tag>)"; done
  echo 'mallopt("M_TRIM_THRESHOLD=100000000")'
  echo 'mallctl("arena.4096.purge")'
  echo 'mallctl("arenas.dirty_decay_ms=0")'
  echo 'mallctl("arena.0.reset")'
  echo 'malloc_trim(0)'
} > t.trace
for name in libc jemalloc mimalloc tcmalloc tbb; do
  if ! cmtreplay --alloc=$name --runs=1 /dev/null > /dev/null 2>&1; then continue; fi
  cmtreplay --give-back=counterpart --alloc=$name --runs=1 --json t.trace > report.json 2> words
  grep -qx "cmtreplay: t.trace: 1 call of mallopt or mallctl might do more than give memory back, and is not replayed" words
  /usr/bin/python3 - $name << 'END'
import json, sys
report = json.load(open("report.json"))
assert report["trace"]["give_back_calls"] == 4 and report["trace"]["give_back_left_out"] == 1
result = report["allocators"][0]
figure = lambda name: int(result[name]["median"])
expected = {"libc": (3, 1), "jemalloc": (3, 1), "mimalloc": (2, 2), "tcmalloc": (2, 2), "tbb": (2, 2)}[sys.argv[1]]
assert (figure("given_back"), figure("give_back_missing")) == expected, (figure("given_back"), figure("give_back_missing"))
assert figure("give_back_failed") == 0
# 8 MB were in use, and nearly all of it is given back (by mimalloc only after a while)
if sys.argv[1] in ("libc", "jemalloc"):
    assert result["end_resident_bytes"] < 3 << 20, result["end_resident_bytes"]
END
  case $name in
    libc | jemalloc) grep -qx "cmtreplay: $name: has no counterpart for 1 of 4 calls that give memory back" words ;;
    *) grep -qx "cmtreplay: $name: has no counterpart for 2 of 4 calls that give memory back" words ;;
  esac

  cmtreplay --alloc=$name --runs=1 --json t.trace > report.json 2> words
  /usr/bin/python3 - $name << 'END'
import json, sys
report = json.load(open("report.json"))
result = report["allocators"][0]
figure = lambda name: int(result[name]["median"])
found = figure("given_back"), figure("give_back_failed"), figure("give_back_missing")
assert found == {"libc": (2, 0, 2), "jemalloc": (2, 0, 2), "mimalloc": (0, 0, 4), "tcmalloc": (1, 0, 3), "tbb": (1, 0, 3)}[sys.argv[1]], found
assert report["mode"]["give_back"] == "preloaded"
END
  grep -qE "^cmtreplay: $name: does not have the functions of [234] of 4 calls that give memory back, so they do nothing, as in the program if it is preloaded; --give-back=counterpart makes its own calls instead\$" words
done
