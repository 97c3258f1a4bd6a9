// The texts of cmtreplay --help and --help-all. Tests compare their options with those that are read.
#include "cmtreplay/options.h"

namespace cmt::replay {

const char* const help_text = R"(Usage: cmtreplay [OPTION]... [FILE]...

Replays a trace on one or several allocators, and shows the time and memory that
each took: a table, fastest first, with a verdict on each pair. The trace is
text, .cmt or the log of another tool. Without FILE, or for -, it is read from
standard input. man cmtreplay explains the tables.

  --alloc=NAME   allocators, separated by commas. NAME is one of
                   libc      the C library's (the default)
                   null      the cost of the replay itself
                   jemalloc, tcmalloc, mimalloc, tbb, scudo
                   all       libc and those that are installed
                   a path    /opt/my.so, ./my.so, my.so in this folder
                   a soname  libjemalloc.so.2, found through the loader
                 Settings of its environment may follow:
                   jemalloc,MALLOC_CONF=background_thread:true
  --verify       check every call instead: alignment, overlap, contents, zeros,
                 usable size, and calls that have to fail; a line for each fault
  -v             write the trace with the addresses that this allocator returned
  -o FILE        write that trace to FILE; %a is the allocator's name. A FILE in
                 .json, .csv, .svg, .html, .png or .pdf gets the report instead
  --json, --csv  write the figures in this form
  --plot=FILE    also draw memory along the trace, latencies and the tables
  --runs=N       timed runs of each allocator; by default 10 or more, until the
                 median is known to 1 % or --budget=TIME (10s) is spent
  --threads=1    replay all calls on one thread, in recorded order
  --pin=LIST     run on these CPUs only: 0,2-3
  --huge-pages=off  no transparent huge pages, whatever the machine's mode is
  --timeout=TIME give an allocator up as hanging if no call returns for TIME
  --tune         search the allocator and the settings that are best for FILE
                 within --tune-budget=TIME (10min)
  --command=CMD  run CMD itself with each allocator, beside the replay of FILE.
                 A server needs --load=CMD, and may need --ready and --stop
  --trim-at=end  what malloc_trim would give back, and what it would cost
  --same-program the FILEs are recordings of one command
  --suite=quick  replay recorded programs, the corpus of cmt; --suite: all of it
  --results=DIR  of several FILEs: keep what is done, and continue from there
  --against=OLD  compare with OLD, another build: exit 3 if it is worse

  --help-all     show all options
  -h, --help     show this help
  -V, --version  show the version

Examples:
  cmtreplay --alloc=all app.cmt
  cmtreplay --verify --alloc=./mymalloc.so app.cmt

Exit status: 0 done, 1 an allocator or the trace could not be used, or an
allocator broke a promise, 2 wrong use, 3 the gate found something worse.
)";

const char* const help_all_text = R"(Usage: cmtreplay [OPTION]... [FILE]...

Replays a trace on one or several allocators, and shows the time and memory that
each took: a table on standard output, fastest first. Each run is a fresh
process. The trace is text, .cmt, legacy .cmt or the log of another tool (man
trace2cmt lists them). Without FILE, or for -, it is read from standard input.

  --alloc=NAME   allocators to replay on, separated by commas. Ratios
                 compare with the first allocator that is not null and refused
                 no call. NAME is one of
                   libc      the C library's (the default)
                   null      returns addresses that are never touched: the cost
                             of the replay itself; always shown as the last line
                   jemalloc, tcmalloc, mimalloc, tbb, scudo
                             as packaged, if installed
                   all       libc and each of the line above that is installed
                   a path    /opt/my.so, ./my.so, my.so in this folder
                   a soname  libjemalloc.so.2, found through the loader
                 Settings of its environment may follow:
                   jemalloc,MALLOC_CONF=background_thread:true
  --prefix=P     call Pmalloc, Pfree, ... of libraries that have them, such as
                 scalable_ or je_; missing calls are emulated
  --runs=N       timed runs of each allocator, 1 to 1000. By default there is
                 one run to warm up, and then 10 or more: until the median is
                 known to 1 % or the budget is spent
  --budget=TIME  for the timed runs of an allocator: 2min (default 10s; 5s with
                 --against; 1s with -v or -o)
  --seed=N       seed of the order in which allocators take turns (default 1)
  --threads=1    replay all calls on one thread, in recorded order. By default
                 (recorded) each thread's calls are on a thread of its own. It
                 starts and ends as in the trace, and waits only for blocks of
                 other threads
  --order=strict one call at a time, in recorded order, on the recorded threads
  --pace=real    keep the recorded times; --pace=xN: N times as fast
  --clock=recorded
                 the allocator reads the recorded time of the current event,
                 less the time that the recording made threads wait. So it
                 purges as in the program, at full speed. By default it does so
                 in memory runs, if the trace has times and --pace is not given;
                 --clock=system: never
  --touch=WHAT   bytes of each block to write: none, first, page or all. page
                 is the default: a byte in each page, with the first and the
                 last byte of the block. Large blocks are an exception if the
                 trace has which of their pages were touched, and when: exactly
                 these are written at that point
  --give-back=WHAT
                 what calls of malloc_trim, mallopt and mallctl do. preloaded,
                 the default: they reach an allocator that exports these names,
                 as in a program. counterpart: they become the allocator's own
                 call of that purpose, such as mi_collect
  --pin=LIST     run on these CPUs only: 0,2-3
  --huge-pages=off
                 no transparent huge pages; by default (system) as the machine's
                 mode and the allocator have them
  --timeout=TIME give an allocator up as hanging if no call returns for TIME:
                 2min (default 60s), or a --command that runs for TIME
  --force        replay also a trace that needs more memory than is available
  --prepared     keep the trace's operations in memory, 8 bytes for an event. By
                 default they are in memory if they take at most half of what is
                 free
  --stream       keep them in a temporary file instead (in TMPDIR, else
                 /var/tmp)
  --json         write JSON (schema cmt.replay/1): all samples, and memory at
                 100 marks along the trace
  --csv          write the table with plain numbers, a line for each allocator
  --plot=FILE    also draw live and resident memory along the trace for all
                 allocators, how long calls took, and the tables. FILE ends in
                 .svg, .html (to zoom into), .png or .pdf
  --verify       check every call instead: alignment, overlap, contents, zeros,
                 usable size, calls that are refused now, and calls that have to
                 fail; a line for each fault
  --until=N      with --verify: stop in a debugger before event N. If there is a
                 fault, the last line of --verify is such a command
  -v, --new-trace
                 write the trace as text with the addresses that this allocator
                 returned; the table then goes to standard error
  -o, --output=FILE
                 write that trace to FILE: as .cmt if its name ends so, else as
                 text; %a is the allocator's name, needed for several of them.
                 A FILE in .json, .csv, .svg, .html, .png or .pdf gets the
                 report instead, as --json, --csv and --plot write it. With -v
                 the trace then goes to standard output
  --color=auto|always|never
                 print headings on standard output in bold. auto, the default:
                 on a terminal, unless NO_COLOR is set

A search for settings, on one trace or on several:

  --tune[=AIM]   try allocators, by default all that are installed, and their
                 settings. Print those that are best in time, peak or mean, and
                 what to set: a line for a shell, for systemd and for a
                 Dockerfile. AIM, by default both, is
                   memory  the least peak within 2 % of the default's time
                   time    the least time within 5 % of the default's peak
                   both    these two, and the least product of them within 5 %
                           of the default's peak and 7.1 % of its time

                 The default is the first --alloc, or libc. Settings that the
                 installed library ignores are listed. With --results the search
                 continues where it was interrupted. --tasks lists the cells of
                 the stage that is open. --json writes schema cmt.tune/1
  --tune-budget=TIME
                 for the search: 2min (default 10min); with --command 70 % of
                 it, and the rest for runs of CMD

The real program, beside the replay of its trace FILE, which may be left out:

  --command=CMD  run CMD with each allocator preloaded, --runs times (10), in
                 turn. Print wall and processor time, memory of all its
                 processes, page faults, and what the replay predicts. Runs that
                 fail, or have another output, are left out and reported. With
                 --tune the recommended settings are tried on CMD, and taken
                 back if it does not confirm them. --json writes schema
                 cmt.program/1
  --load=CMD     CMD of --command is a server: run this load on it, and stop it
  --ready=CMD    before the load, repeat this CMD until it succeeds
  --stop=SIGNAL  that ends the server: INT (default TERM)

Memory that is given back:

  --trim-at=PLACE
                 replay without and with calls of malloc_trim, or of the
                 allocator's counterpart, and print what they give and cost.
                 PLACE is
                   end          before the tear-down, or after the last event
                   'every 10s'  of the recorded time
                   a label      at each mark of this label
                 --json writes schema cmt.trims/1

Many traces: several FILEs, folders of .cmt and .trace files, or one of the
options below. Every trace is run on every allocator, and on libc, which ratios
are to. A trace on an allocator is a cell. Tables have traces as rows and
allocators as columns, and geometric means. Lines below the tables say what the
intervals are, and how many cells have each kind of warning. A crash, or a trace
that cannot be replayed, makes a cell with the reason. --json writes schema
cmt.board/1. --csv writes a line for each cell, or for each figure of a gate.
--plot also takes .md.

  --same-program the FILEs are recordings of one command and not cells: each is
                 replayed, and the spread over them is the verdict's interval.
                 --json writes schema cmt.same_program/1

  --results=DIR  keep each cell as a file in DIR, and do not run cells again
                 that are there, by the same builds and options: after Ctrl-C
                 the same command continues
  --suite[=quick|full]
                 the corpus of cmt (CMT_CORPUS, or as installed): ten timed runs
                 and three for memory; quick: the traces that are marked quick,
                 five runs and one for memory
  --scoreboard=DIR
                 show the cells of DIR, without running any; with traces, also
                 those that are missing. If DIR has cells of several sets of
                 options, give one set, such as --runs=2
  --against=OLD  run OLD, another build, instead of libc, as a gate: exit 3 if
                 an --alloc is worse with certainty, with a line for each figure
  --baseline=OLD.json
                 a gate against what --json wrote earlier, or against a folder
                 of cells: judges memory, and time by its ratio to libc on the
                 same processor
  --fail-if=LIST by how much figures may be worse: time, peak, mean and
                 fragmentation; time+3%,peak+2%,fragmentation+1% by default.
                 Exit 1 if a figure could not be judged. Cannot be given with
                 --results
  --tasks        list the cells with their numbers, for a cluster's scheduler
  --task=N, --task=N-M
                 run these cells only, into the folder of --results; no board

  -h, --help     show the options that most people need
  --help-all     show this help
  -V, --version  show the version

Examples:
  cmtreplay --alloc=libc,jemalloc,mimalloc app.cmt
  cmtreplay --verify --alloc=./mymalloc.so app.cmt
  cmtreplay --suite=quick --alloc=./mymalloc.so --plot=board.html

Exit status:
  0  done
  1  an allocator or the trace could not be used, or an allocator crashed or
     broke a promise
  2  wrong use
  3  the gate found something worse
)";

}  // namespace cmt::replay
