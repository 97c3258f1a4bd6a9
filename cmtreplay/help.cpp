// The text of cmtreplay --help. A test compares its options with those that are read.
#include "cmtreplay/options.h"

namespace cmt::replay {

const char* const help_text = R"(Usage: cmtreplay [OPTION]... [FILE]...

Replays a trace (text, .cmt or legacy .cmt; standard input without FILE or for
-) on one or several allocators, each run in a fresh process, and shows the time
and memory that they took: a table on standard output, fastest first.

  --alloc=NAME   an allocator to replay on; may be given more than once, and
                 ratios are to the first that is not null and refused no call.
                 NAME is one of
                   libc      the C library's (the default)
                   null      returns addresses that are never touched: the cost
                             of the replay itself; always shown as the last line
                   jemalloc, tcmalloc, mimalloc, tbb, scudo
                             as packaged, if installed
                   a path    /opt/my.so, ./my.so, my.so in this folder
                   a soname  libjemalloc.so.2, found through the loader
                 settings of its environment may follow:
                   jemalloc,MALLOC_CONF=background_thread:true
  --prefix=P     call Pmalloc, Pfree, ... of libraries that have them, as
                 scalable_ or je_; missing calls are emulated
  --runs=N       timed runs of each allocator, 1 to 1000; else one to warm up,
                 and 10 or more, until the median is known to 1 % or the budget
                 is spent
  --budget=TIME  for the timed runs of an allocator: 2min; a number alone is
                 seconds (default 10s; 5s with --against; 1s with -v or
                 -o)
  --seed=N       seed of the order in which allocators take turns (default 1)
  --threads=1    replay all calls on one thread, in recorded order; else
                 (recorded) each thread's on its own, which starts and ends as
                 in the trace and waits only for other threads' blocks
  --order=strict one call at a time, in recorded order, on the recorded threads
  --pace=real    keep the recorded times; --pace=xN: N times as fast
  --clock=recorded
                 the allocator reads the recorded time of the current event, by
                 which it purges as in the program, at full speed; without this
                 option so in memory runs, where times were recorded and --pace
                 is not given; --clock=system: never
  --touch=WHAT   bytes of each block to write: none, the first, one in each page
                 with the first and the last (page, the default), or all; not of
                 large blocks of a trace that tells which of their pages were
                 touched, and when: these are written then, and no others
  --pin=LIST     run on these CPUs only: 0,2-3
  --timeout=TIME in which no call returns, after which an allocator counts as
                 hung: 2min; a number alone is seconds (default 60s)
  --force        replay also a trace that needs more memory than is available
  --prepared     keep the trace's operations in memory, 8 bytes for an event;
                 --stream: in a temporary file (in TMPDIR, else /var/tmp). Else
                 in memory if they take at most half of what is free
  --json         write JSON (schema cmt.replay/1): all samples, and memory at
                 100 marks along the trace
  --csv          write the table with plain numbers, a line for each allocator
  --plot=FILE    draw live and resident memory along the trace for all
                 allocators, how long calls took, and the tables, too; FILE ends
                 in .svg, .html (to zoom into), .png or .pdf
  --verify       check every call instead: alignment, overlap, contents, zeros,
                 usable size, NULL for impossible sizes; a line for each fault
  -v, --new-trace
                 write the trace as text with the addresses that this allocator
                 returned; the table then goes to standard error
  -o, --output=FILE
                 write that trace to FILE; .cmt if its name ends so, else text.
                 %a is the allocator's name, needed for several allocators

Many traces: with several FILEs, or folders of .cmt and .trace files, or one of
these options, every trace is run on every allocator, and with libc, to which
ratios are. Tables have traces as rows and allocators as columns, and geometric
means; --json writes schema cmt.board/1, --csv a line for each cell, or figure
of a gate; --plot also takes .md. A crash or a trace that cannot be replayed is
a cell with its reason. A line below the tables says what intervals are, and one
for each kind of warning in how many cells it is.

  --results=DIR  keep each cell (a trace on an allocator) as a file in DIR, and
                 do not run again what is there, by the same builds and options:
                 after Ctrl-C the same command goes on
  --suite[=quick|full]
                 the corpus of cmt (CMT_CORPUS, or as installed): ten timed runs
                 and three for memory; quick: the traces that are marked quick,
                 five runs and one for memory
  --scoreboard=DIR
                 show the cells of DIR, without running any; with traces also
                 which are missing. Where DIR has cells of several options, give
                 those of one set, as --runs=2
  --against=OLD  run OLD, another build, instead of libc: exit 3 if an --alloc
                 is worse with certainty, a line for each figure
  --baseline=OLD.json
                 the same by what --json wrote earlier (or a folder of cells):
                 memory, and time as its ratio to libc on the same processor
  --fail-if=LIST by how much figures may be worse, of time, peak, mean and
                 fragmentation: time+3%,peak+2%,fragmentation+1% by default;
                 exit 1 if one could not be judged; not with --results
  --tasks        list the cells with their numbers, for a cluster's scheduler
  --task=N, --task=N-M
                 run these cells only, into the folder of --results; no board

  -h, --help     show this help
  --version      show the version

Columns: time is the median of the timed runs, and 95 % the interval in which
the median lies with that confidence (bootstrap), or the range of fewer than six
runs; CPU is their processor time,
and kernel the part of it that the kernel took, mostly for pages that are
touched first; ns/call is the rest of CPU for a call; faults are page faults.
Resident memory is the allocator's own, from up to three separate runs: before
the first call, at the peak, its mean over the recorded time (over the events
where none was recorded), and at the end; fragmentation is resident over live
bytes where most are live. One that "purges by the clock" read the system's,
because no times were recorded, and may keep more memory than in the program.
Tables below show how long single calls took, one in 64, from separate runs, and
hardware counters where the machine has them. Calls that were refused when
recorded are left out. An allocator that refused others had less to do: it is
marked, and ranks behind.

Below the tables is a verdict on each pair of allocators: runs of the same round
are compared, and all verdicts on time together hold with 95 % (sign test,
corrected for the number of pairs). "9 % faster" takes 9 % less time. Peaks are
compared by their ranges over the memory runs, which have no confidence.

Examples:
  cmtreplay --alloc=libc --alloc=jemalloc --alloc=mimalloc app.cmt
  cmtreplay --verify --alloc=./mymalloc.so app.cmt
  cmtreplay --suite=quick --alloc=./mymalloc.so --plot=board.html

Exit status: 0 done, 1 an allocator or the trace could not be used, or an
allocator crashed or broke a promise; 2 wrong use; 3 the gate found something
worse.
)";

}  // namespace cmt::replay
