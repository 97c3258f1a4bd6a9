# Checks what overhead and cmtreport --pages report about blocks at the top of glibc's heaps, and about the frees that
# raise its threshold for mappings.

. "$SOURCE/tests/behaviours.sh"

# 20,000 blocks of 100 bytes where glibc places them, made by "item". All are freed, but for the last, which "last" made.
heap() {  # heap FIRST_OFFSET DISTANCE
  printf '#%s\n' 'cmt text=1' 'module 1 begin=55d0c0000000 end=55d0c0005000 bias=55d0c0000000 loaded=0 path=/nowhere/app' \
    'frame 1 module=1 address=55d0c0001100' 'name 1 function=main file=app.c line=9' 'node 1 parent=0 frame=1' \
    'frame 2 module=1 address=55d0c0001200' 'name 2 function=item file=app.c line=3' 'node 2 parent=1 frame=2' \
    'frame 3 module=1 address=55d0c0001300' 'name 3 function=last file=app.c line=5' 'node 3 parent=1 frame=3'
  awk -v first="$1" -v distance="$2" 'BEGIN {
    for (i = 0; i < 20000; i++) {
      block[i] = sprintf("55d0c1%06x<%d>", first + i * distance, i + 1)
      printf "malloc(100) = %s time=%d stack=%d\n", block[i], i * 1000, i == 19999 ? 3 : 2
    }
    for (i = 0; i < 19999; i++) printf "free(%s) time=%d\n", block[i], 20000000 + i * 1000
  }'
  echo '#cmt end=complete'
}
heap 672 112 >glibc.trace
heap 0 112 >pages.trace
trace2cmt -o glibc.cmt glibc.trace

# The kept pages, counted by another way: pages with a freed block or the last one, without the first page of the heap.
kept=$(awk 'BEGIN { for (i = 0; i < 20000; i++) { at = 672 + i * 112; pages[int(at / 4096)]; pages[int((at + 99) / 4096)] }
  for (page in pages) count += page > 0; printf "%d", count * 4096 }')

names_the_block() {
  overhead --summary glibc.cmt >summary
  grep -A 1 '^heap ' summary | tail -n 1 | tr -s ' ' >row
  grep -qx 'main 100 B 2.14 MiB 1 block 55d0c1223030<20000> 100 0 B 20,000, 20.0 ms malloc in last, called by main' row ||
    complain "the block is not named: $(cat row)"
}

counts_the_pages() {
  overhead --json glibc.cmt >json
  python3 - "$kept" <<'END'
import json, sys
tops = json.load(open("json"))["heap_tops"]
block = tops["heaps"][0]["highest"][0]
assert tops["gives_back_bytes_max"] == int(sys.argv[1]), tops
assert (block["made_event"], block["made_time_ns"], block["functions"]) == (20000, 19999000, ["last", "main"]), block
END
}

reads_text_alike() {
  overhead --summary glibc.trace | tail -n +2 | diff - <(overhead --summary glibc.cmt | tail -n +2) || complain "text and .cmt differ"
}

knows_less_of_a_pipe() {
  overhead --summary <glibc.cmt >piped
  grep -q '^main .* not known  malloc$' piped || complain "$(tail -n 3 piped)"
}

says_that_it_does_not_know() {
  overhead --summary pages.trace >pages
  grep -qx "blocks at the top of heaps: not known: the places of the blocks are not those of glibc's heaps, or not from the start" pages ||
    complain "$(tail -n 1 pages)"
  cmtreport --pages pages.trace >report
  ! grep -q 'main heap' report || complain "a finding about a heap that is not known"
}

is_a_finding() {
  cmtreport --pages glibc.cmt | tr -s ' \n' ' ' >report
  grep -qF "at 40.0 ms up to 2.14 MiB of the main heap are free below its last block, and free() gives back only the end of a heap. last (called by main) made the block of 100 B, at 20.0 ms" report ||
    complain "no finding: $(cat report)"
  cmtreport --pages --json glibc.cmt >report.json
  grep -qF "\"all_gives_back_bytes_max\": $kept" report.json || complain "no figure"
}

# A block that has a mapping is freed, aligned ones too. Later blocks of that size come from the heap.
raised() {  # raised EVENTS...
  heap 672 112 | grep -v '^#cmt end'
  printf '%s\n' 'malloc(200000) = 7f5000000010<20001> time=40000000 stack=2' 'free(7f5000000010<20001>) time=41000000' \
    'aligned_alloc(64, 300000) = 7f5000000040<20002> time=42000000 stack=3' 'free(7f5000000040<20002>) time=43000000' "$@" \
    '#cmt end=complete'
}
in_heap=('malloc(1500000) = 55d0c1300010<20003>' 'malloc(150000) = 55d0c1500010<20004>' 'malloc(250000) = 55d0c1600020<20005>')
raised "${in_heap[@]:1}" | trace2cmt -o raised.cmt
raised "${in_heap[@]}" 'free(55d0c1300010<20003>)' >large.trace

names_the_raise() {
  overhead --summary raised.cmt | grep -A 4 M_MMAP_THRESHOLD | diff - <(cat <<'END'
glibc's threshold for mappings (M_MMAP_THRESHOLD): raised from 128 KiB to 296 KiB by 2 frees
  first: 195 KiB of item, called by main, freed 41.0 ms after the recording began
  last: 293 KiB of last, called by main, freed 43.0 ms after the recording began
  since then heaps, which keep freed memory, had 2 blocks of 128 KiB or more, at most 391 KiB live;
  MALLOC_MMAP_THRESHOLD_=131072 gives each of them a mapping of its own
END
  ) || complain "the raise is not named"
  overhead --json large.trace | grep -A 3 '"is_set"' | tr -d ' \n' | grep -qF '"is_set":false,"bytes":303056,"raises":2,' ||
    complain "a block of the heap raised the threshold"
  overhead --summary <raised.cmt | grep -q '  first: 195 KiB of an unknown call, freed 41.0 ms' || complain "no raise of a pipe"
}

knows_no_raise() {
  overhead --summary glibc.cmt | grep -qx "glibc's threshold for mappings (M_MMAP_THRESHOLD): never raised from 128 KiB" ||
    complain "a raise of small blocks"
  overhead --summary pages.trace | grep -q 'M_MMAP_THRESHOLD): not known: the places' || complain "a threshold of no glibc"
  raised 'malloc(150000) = 7f5000000010<20003>' >mapped.trace
  overhead --summary mapped.trace | grep -q 'M_MMAP_THRESHOLD): not known: blocks below' || complain "a threshold that was set"
  raised | sed 's/^malloc(200000)/mallopt("M_MMAP_THRESHOLD=131072")\n&/' >set.trace
  overhead --summary set.trace | grep -qx '.*M_MMAP_THRESHOLD): the program sets it with mallopt' ||
    complain "a threshold that the program set"
}

raise_is_a_finding() {
  raised $(for i in $(seq 20003 20100); do echo "malloc(150000)=$(printf %x $((0x55d0c2000010 + (i - 20003) * 155648)))<$i>"; done) |
    sed 's/)=/) = /' >many.trace
  cmtreport --pages many.trace | tr -s ' \n' ' ' >report
  grep -qF "threshold for mappings rose from 128 KiB to 296 KiB, first by 195 KiB of item, called by main, freed 41.0 ms after the recording began. Since then 98 blocks of 128 KiB or more, at most 14.0 MiB at once, came from its heaps" report ||
    complain "no finding: $(cat report)"
}

behaviour "overhead names the block, its call, its age and what it keeps" names_the_block
behaviour "overhead counts the pages that the block keeps" counts_the_pages
behaviour "a text has the same answer as its .cmt" reads_text_alike
behaviour "of a pipe the event that made the block is not known" knows_less_of_a_pipe
behaviour "of places that are not those of glibc nothing is said" says_that_it_does_not_know
behaviour "cmtreport --pages has a finding" is_a_finding
behaviour "overhead names the frees that raised glibc's threshold for mappings" names_the_raise
behaviour "it knows that the threshold was not raised, was set, or is not known" knows_no_raise
behaviour "cmtreport --pages has a finding about large blocks from heaps" raise_is_a_finding
exit $failed
