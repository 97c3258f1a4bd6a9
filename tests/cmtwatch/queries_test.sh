# Every query of the manual page answers, on a recording in which every figure is known.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -rf proc answers ./*.db ./*.sql

# Three moments: a heap grows, a thread starts, a second process comes, disks work.
moment() { cmtwatch record --root=proc -o q.db --all --count=1 || complain "recording: $?"; }
process 7 77 server
write proc/meminfo 'MemTotal: 1000 kB
MemAvailable: 500 kB'
write proc/diskstats '8 0 sda 1 0 10 0 1 0 20 0 0 5 5'
moment
process 8 88 client
write proc/8/oom_score 900
write proc/7/smaps "$(mapping 1000-3000 rw-p '[heap]' 80 70)
$(mapping 5000-8000 r--p '/with  blanks (deleted)' 12 5)
$(mapping 10000-20000 ---p '' 0 0)
$(mapping 20000-30000 rw-p '' 24 24)"
mkdir -p proc/7/task/9
echo '202 0x1 0x2ff00 0x7f00' >proc/7/task/9/syscall
write proc/7/stat '7 (server) S 1 0 0 0 -1 0 200 0 9 0 55 65 0 0 20 0 2 0 77 0 0'
write proc/7/io 'read_bytes: 104096
write_bytes: 9192'
write proc/meminfo 'MemTotal: 1000 kB
MemAvailable: 100 kB'
write proc/diskstats '8 0 sda 9 0 210 0 3 0 1020 0 0 50 50'
moment
write proc/7/smaps "$(mapping 1000-3000 rw-p '[heap]' 40 30)"
rm -r proc/8
write proc/meminfo 'MemTotal: 1000 kB
MemAvailable: 600 kB'
moment
# Sets a clock and a page size that are the same everywhere.
ask q.db "update tick set begin_ns = (id - 1) * 2000000000, end_ns = (id - 1) * 2000000000 + 1000000, cost_cpu_ns = 500000 * id"
ask q.db "update process_sample set resident_bytes = resident_bytes / (select value from about where key = 'page_bytes') * 4096"
ask q.db "update about set value = 100 where key = 'clock_ticks_per_second'"

# Writes each query of the page to a file.
awk '/^\.Bd -literal/ { begins = 1; next } /^\.Ed/ { file = "" }
  begins { begins = 0; if ($1 == "select" || $1 == "with") file = sprintf("%02d.sql", ++n) }
  file { gsub(/\\\(aq/, "\047"); gsub(/\\-/, "-"); print >file }' "$SOURCE/man/cmtwatch.1"
[ "$(ls ./*.sql | wc -l)" -ge 10 ] || complain "queries in the manual page: $(ls)"
for query in *.sql; do
  { echo "$query"; sqlite3 q.db <"$query" 2>&1 || complain "$query"; echo; } >>answers
  [ -n "$(sqlite3 q.db <"$query")" ] || complain "no answer: $(cat "$query")"
done
diff -u "$SOURCE/tests/cmtwatch/answers.txt" answers || complain "other answers than in answers.txt"
exit $failed
