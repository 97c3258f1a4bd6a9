# --to=csv: one row an event, in the form of RFC 4180, with the values of the text.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
. "$SOURCE/tests/trace2cmt/every_kind.sh"

trace2cmt --to=csv every_kind.trace >every_kind.csv
sed 's/$/\r/' >expected <<'END'
event,kind,thread,time_ns,size,count,alignment,tag,address,usable_size,old_tag,old_address,old_size,lifetime_events,lifetime_ns,label,pool_block
1,malloc,0,10,8,,,7,4096,24,,,,,,,
2,free,0,11,,,,,,,3,2304,,,,,
3,calloc,2,12,48,3,,8,8192,,,,,,,,
4,posix_memalign,0,13,128,,64,9,12288,,,,,,,,
5,operator_new,0,14,40,,32,10,16384,,,,,,,,
6,realloc,0,20,16,,,11,4352,,7,4096,8,5,10,,
7,malloc,0,,0,,,12,20480,,,,,,,,
8,free,0,,,,,,,,,,,,,,
9,malloc,0,,18446744073709551615,,,,,,,,,,,,
10,calloc,0,,,18446744073709551615,,,,,,,,,,,
11,realloc,0,,99999999999,,,,,,8,8192,48,,,,
12,realloc,0,,5,,,13,24576,,,,,,,,
13,realloc,0,,6,,,14,24832,,2,2048,,,,,
14,mark,0,,,,,,,,,,,,,"a, ""b""
c�",
15,mark,0,,,,,,,,,,,,,"",
16,sample,0,,4096,,,,,,,,,,,,
17,thread_name,2,,,,,,,,,,,,,"worker, 2",
18,free,2,30,,,,,,,8,8192,48,15,18,,
19,realloc,0,,0,,,,,,13,24576,5,7,,,
20,malloc,0,,4294967296,,,15,117440512,,,,,,,,
21,operator_delete_sized,0,44,40,,32,,,,10,16384,40,16,30,,
22,thread_exit,2,,,,,,,,,,,,,,
END
cmp expected every_kind.csv || complain "$(diff expected every_kind.csv)"

# The same from .cmt, and into a file.
trace2cmt -o every_kind.cmt every_kind.trace
trace2cmt --to=csv -o again.csv every_kind.cmt
cmp every_kind.csv again.csv || complain "from .cmt"
exit $failed
