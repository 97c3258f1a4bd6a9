# --prefix calls a library that lacks the plain names by its own. Missing calls are emulated, with a message.
library=$BUILD/tests/cmtreplay/libprefixed.so
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 5000 > t.trace
status=0
cmtreplay --alloc="$library" --runs=1 t.trace > out 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $library: has no malloc; .*; it has je_malloc: --prefix=je_" words
status=0
cmtreplay --alloc="$library" --prefix=other_ --runs=1 t.trace > out 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $library: has no malloc and no other_malloc" words

cmtreplay --alloc=libc --alloc="$library" --prefix=je_ --runs=1 --json t.trace > report.json 2> words
for call in calloc realloc posix_memalign; do grep -qx "cmtreplay: $library: has no $call; emulated" words; done
/usr/bin/python3 - "$library" << 'END'
import json, sys
libc, own = json.load(open("report.json"))["allocators"]
assert own["library"] == sys.argv[1] and own["prefix"] == "je_" and libc["prefix"] is None
assert "malloc" not in own["replaced_calls"] and "free" not in own["replaced_calls"], own["replaced_calls"]
assert {"calloc", "realloc", "aligned_alloc"} <= set(own["replaced_calls"]) and libc["replaced_calls"] == []
# It frees nothing, so its memory is the sum of all requests.
assert own["peak_resident_bytes"] > libc["peak_resident_bytes"] > 0
END
cmtreplay --verify --alloc="$library" --prefix=je_ t.trace > lines 2> words
grep -q ': no faults in 5,000 events' lines
for call in calloc realloc posix_memalign; do grep -qx "cmtreplay: $library: has no $call; emulated" words; done

# The calls may be in a dependency. The C library is one of every library, and does not count.
below=$BUILD/tests/cmtreplay/libprefixed_below.so
cmtreplay --alloc="$below" --prefix=je_ --runs=1 --json t.trace > report.json 2> words
grep -qx "cmtreplay: $below: has no calloc; emulated" words
jq -e --arg own "$library" '.allocators[0].library == $own and .allocators[0].prefix == "je_"' report.json > out
status=0
cmtreplay --alloc="$below" --runs=1 t.trace > out 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $below: has no malloc; .*; it needs $library, which has je_malloc: --prefix=je_" words
status=0
cmtreplay --alloc="$below" --prefix=__libc_ --runs=1 t.trace > out 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $below: has no malloc and no __libc_malloc" words

# A prefix that no library has is an error; one that some have is none.
bump=$BUILD/cmtreplay/libexample_bump.so
status=0
cmtreplay --alloc=libc --alloc="$bump" --prefix=other_ --runs=1 t.trace > out 2> words || status=$?
test $status = 1
test ! -s out
grep -qx "cmtreplay: --prefix=other_: libc, $bump have no other_malloc" words
cmtreplay --alloc="$bump" --alloc="$library" --prefix=je_ --runs=1 t.trace > out 2> words

# Packaged allocators work under their prefixed names.
for pair in jemalloc:je_ mimalloc:mi_ tcmalloc:tc_ libtbbmalloc.so.2:scalable_ tbb:scalable_ \
  libtbbmalloc_proxy.so.2:scalable_; do
  if cmtreplay --alloc=${pair%:*} --prefix=${pair#*:} --runs=1 --csv t.trace > out 2> words; then
    test "$(wc -l < out)" = 3
  else
    echo "skipped: $(tail -1 words)"
    tail -1 words | grep -qE 'not installed|cannot be loaded|has no malloc and no je_malloc|has no (je|mi|tc)_malloc$'
  fi
done
