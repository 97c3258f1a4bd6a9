# Checks overhead --by, the holders of the pages, at several moments: with stacks, without stacks, and wrong use.

shopt -s lastpipe  # so that "... | same" sets `failed` here
failed=0
complain() { echo "$*" >&2; failed=1; }
same() { diff "$2" - >difference || complain "$1:
$(cat difference)"; }

# keep leaves one small block on each of three pages that fill has used; a plugin has a page of its own.
cat >app.trace <<'END'
#cmt text=1
#module 1 begin=1000 end=9000 bias=1000 path=/opt/app
#module 2 begin=20000 end=30000 bias=20000 build_id=0123 path=/opt/plugin.so
#frame 1 module=1 address=1010
#name 1 function=main file=app.cpp line=30
#frame 2 module=1 address=1020
#name 2 function=fill file=app.cpp line=10
#frame 3 module=1 address=1030
#name 3 function=malloc
#name 3 function=keep file=app.cpp line=20
#frame 4 module=2 address=20040
#name 4 function=grow<b>
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=1 frame=3
#node 4 parent=3 frame=4
malloc(96) = 10000<1> stack=3 time=10
malloc(4000) = 10060<2> stack=2 time=20
malloc(96) = 11000<3> stack=3 time=30
malloc(4000) = 11060<4> stack=2 time=40
malloc(96) = 12000<5> stack=3 time=50
malloc(4000) = 12060<6> stack=2 thread=1 time=60
mark("filled") time=70
free(10060<2>) time=80
free(11060<4>) time=90
free(12060<6>) time=100
malloc(2048) = 20000<7> stack=4 time=110
mark("done") time=120
#cmt end=complete
END
overhead --by=function app.trace 2>messages | same "by function" /dev/fd/3 3<<'END'
app.trace: at event 12 (120 ns), the sample with the most unused bytes on pages
  4 pages of 4.00 KiB: 2.28 KiB in 4 blocks of 2 stacks; unused 13.7 KiB
  old blocks: on 3 pages, pin 3, separable: 8.00 KiB

function            unused     pages      live  blocks  free without  old pages  pinned  separable  with callees
keep              11.7 KiB  12.0 KiB     288 B       3      12.0 KiB   12.0 KiB       3   11.7 KiB      13.7 KiB
grow<>            2.00 KiB  4.00 KiB  2.00 KiB       1      4.00 KiB        0 B       0        0 B      2.00 KiB
all, with 1 more  13.7 KiB  16.0 KiB  2.28 KiB       4      16.0 KiB   12.0 KiB       3   11.7 KiB      13.7 KiB

sorted by bytes of their pages that no block asked for; a page is shared evenly among its blocks

the largest stack of keep:
  malloc in app
  keep at app.cpp:20 in app
  main at app.cpp:30 in app
END
# --raw charges allocation functions; the outermost function is charged if all are such.
holders() { overhead --by=function --json "$@" app.trace 2>messages | jq -c '[.holders[] | [.name, .self.live_bytes, .self.sole_bytes, .inclusive.sole_bytes]]'; }
holders --raw | same "--raw" <(echo '[["malloc",288,12288,16384],["grow<b>",2048,4096,4096],["keep",0,0,16384],["main",0,0,16384]]')
holders --skip=keep --skip=grow | same "--skip" <(echo '[["main",2336,16384,16384]]')
holders --skip=. | same "--skip=." <(echo '[["main",2336,16384,16384]]')
# The sums are the summary's, of the same moment.
overhead --json app.trace 2>messages |
  jq -c '[.holders.event, .holders.pages * .page_size_bytes, ([.holders.by_size[][4]] | add),
          .samples[-1].old_pages * .page_size_bytes, .samples[-1].pinned_pages, .samples[-1].separable_pages]' >summary
overhead --by=line --json app.trace 2>messages |
  jq -c '.event as $event | [.holders[].self] |
         [$event, (map(.page_bytes) | add), (map(.unused_bytes) | add), (map(.old_page_bytes) | add),
          (map(.pinned_pages) | add), (map(.separable_bytes) | add / 4096 | floor)]' |
  diff summary - >difference || complain "sums: $(cat difference)"

# rows OPTION...: name, share of the pages, pages alone.
rows() {
  overhead --json "$@" app.trace 2>messages |
    jq -r '.holders[] | "\(.name) \(.self.page_bytes)/\(.inclusive.page_bytes) \(.self.sole_bytes)/\(.inclusive.sole_bytes)"'
}
for at in peak 6 65ns @filled; do
  rows --by=function --sort=pages --at=$at | same "--at=$at" /dev/fd/3 3<<'END'
fill 6144/6144 0/0
keep 6144/6144 0/0
main 0/12288 0/12288
END
done
rows --by=thread --at=6 --sort=pages | same "by thread" /dev/fd/3 3<<'END'
thread 0 10240/10240 8192/8192
thread 1 2048/2048 0/0
END
rows --by=phase | same "by phase" /dev/fd/3 3<<'END'
[before the first mark] 12288/12288 12288/12288
filled 4096/4096 4096/4096
END
rows --by=library --inclusive --sort=sole --top=1 | same "by library" /dev/fd/3 3<<'END'
app 12288/16384 12288/16384
END
rows --by=function --at=6 --focus=keep --skip=keep | same "--focus" /dev/fd/3 3<<'END'
main 6144/6144 0/0
END
rows --by=function --min=50% --sort=pinned | same "--min" /dev/fd/3 3<<'END'
keep 12288/16384 12288/16384
END
overhead --by=caller --csv app.trace 2>messages | cut -d, -f1-6,22 | same "callers as CSV" /dev/fd/3 3<<'END'
name,blocks,live_bytes,page_bytes,unused_bytes,sole_bytes,stack
keep,3,288,12288,12000,12288,main;keep;malloc
keep <- main,3,288,12288,12000,,
grow<b>,1,2048,4096,2048,4096,main;keep;malloc;grow<b>
grow<b> <- keep,1,2048,4096,2048,,
grow<b> <- keep <- main,1,2048,4096,2048,,
END

refused() {  # refused STATUS WORDS OPTION...
  local status=0 expected=$1 words=$2; shift 2
  overhead "$@" >out 2>err || status=$?
  [ "$status" = "$expected" ] && [ "$(grep -c '^overhead: ' err)" = 1 ] && grep -qF -- "$words" err || complain "$*: exit $status, $(cat err)"
}
sed '/^#module\|^#frame\|^#name\|^#node/d; s/ stack=[0-9]*//; s/ time=[0-9]*//' app.trace >plain.trace
overhead --by=size plain.trace >out 2>err || complain "--by=size without stacks: $(cat err)"
refused 1 'plain.trace: call stacks were not recorded' --by=line plain.trace
refused 1 'plain.trace: times were not recorded (needed by --at=5s)' --by=size --at=5s plain.trace
refused 1 'plain.trace: the trace has no mark "gone"; it has @filled, @done' --by=size --at=@gone plain.trace
refused 1 'the trace ends before --at=13' --by=size --at=13 plain.trace
sed 's/[0-9a-f]*</</' app.trace >tags.trace
refused 1 'a block without an address' --by=function tags.trace
refused 2 '--summary does not go with --by' --by=function --summary plain.trace
refused 2 '--at needs --by' --at=peak plain.trace
refused 2 '--focus is about call stacks: not with --by=size' --by=size --focus=a plain.trace
refused 2 '--at: expected' --by=size --at=never plain.trace
refused 2 '--sort: expected' --by=size --sort=peak plain.trace
refused 2 '--sort=sole does not go with --by=caller' --by=caller --sort=sole app.trace
refused 2 '--at=peak reads the trace twice' --by=size --at=peak <plain.trace
refused 1 'no.trace: No such file' --by=size --at=peak no.trace
exit $failed
