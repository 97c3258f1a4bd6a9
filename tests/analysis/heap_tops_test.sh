# Checks what overhead and cmtreport --pages report about blocks at the top of glibc's heaps.

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

behaviour "overhead names the block, its call, its age and what it keeps" names_the_block
behaviour "overhead counts the pages that the block keeps" counts_the_pages
behaviour "a text has the same answer as its .cmt" reads_text_alike
behaviour "of a pipe the event that made the block is not known" knows_less_of_a_pipe
behaviour "of places that are not those of glibc nothing is said" says_that_it_does_not_know
behaviour "cmtreport --pages has a finding" is_a_finding
exit $failed
