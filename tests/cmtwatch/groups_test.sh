# Memory that is charged to a control group and that no process maps: get, run, record, peak and export show it.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -rf proc cgroup ./*.db
is() { [ "$(ask "$1" "$2")" = "$3" ] || complain "$1: $2: $(ask "$1" "$2")"; }

# Version 2, on a made-up folder: a process of 12 KiB in a group of 197 MiB, of which 180 are in a tmpfs.
process 7 77 job
process 8 78 other
for pid in 7 8; do write proc/$pid/smaps_rollup "$(mapping 1000-8000 ---p '[rollup]' 20 12)"; done
write proc/7/comm job
group=cgroup/app.slice/job
mkdir -p $group
write proc/7/cgroup 0::/app.slice/job
write proc/8/cgroup 0::/
version_2() {  # version_2 CURRENT: the group's files
  write $group/memory.current "$1"
  write $group/memory.peak 207618048
  write $group/memory.max 536870912
  write $group/memory.swap.current 4096
  write $group/memory.stat 'anon 17825792
file 188743680
kernel 1048576
slab 524288
sock 8192
shmem 184549376'
  write $group/cgroup.procs '7
9'
}
version_2 206569472
line='control group /app.slice/job (version 2): 197 MiB, peak 198 MiB, limit 512 MiB: anon 17.0 MiB, file 180 MiB, shmem 176 MiB, kernel 1.00 MiB, slab 512 KiB, sock 8.00 KiB, swap 4.00 KiB; 197 MiB of it are not in the pss of 1 measured process of 2'
status_of cmtwatch get --root=proc --groups=cgroup 7
[ "$status" = 0 ] && [ "$(cat out)" = '12.0 KiB' ] && [ "$(cat err)" = "cmtwatch get: $line" ] ||
  complain "version 2: $status $(cat out err)"
status_of cmtwatch get --root=proc --groups=cgroup --only-peak --count=1 --bytes 7
[ "$(cat out err)" = 12288 ] || complain "a number alone: $(cat out err)"
cmtwatch get --root=proc --groups=cgroup --json 7 | jq -e '.samples[0].groups == [{path: "/app.slice/job", version: 2,
  current_bytes: 206569472, peak_bytes: 207618048, limit_bytes: 536870912, anon_bytes: 17825792, file_bytes: 188743680,
  shmem_bytes: 184549376, kernel_bytes: 1048576, slab_bytes: 524288, sock_bytes: 8192, swap_bytes: 4096, processes: 2,
  measured_processes: 1, measured_bytes: 12288, beyond_measured_bytes: 206557184}]' >/dev/null || complain "in JSON"
cmtwatch get --root=proc --groups=cgroup --csv 7 >csv
/usr/bin/python3 -c '
import csv
row, = csv.DictReader(open("csv"))
assert row["pss_bytes"] == "12288" and row["group_current_bytes"] == "206569472", row
assert row["group_shmem_bytes"] == "184549376" and row["group_measured_bytes"] == "12288", row' || complain "in CSV"
# Addresses are no memory in use.
cmtwatch get --root=proc --groups=cgroup --metric=vm --json 7 | jq -e '.samples[0].groups[0].beyond_measured_bytes == null' \
  >/dev/null || complain "addresses"
# Without a group, or in that of all processes, nothing is said.
for pid in 7 8; do
  status_of cmtwatch get --root=proc --groups=$([ $pid = 7 ] && echo nowhere || echo cgroup) $pid
  [ "$status" = 0 ] && [ ! -s err ] || complain "no group of $pid: $(cat err)"
done

# A recording has each moment's group.
cmtwatch record --root=proc --groups=cgroup -o r.db --count=1 7 8 >out 2>err || complain "recording: $?"
grep -qF "cmtwatch record: ${line/the pss/the memory}; at " err || complain "the end of a recording: $(cat err)"
version_2 4096
cmtwatch record --root=proc --groups=cgroup -o r.db --count=1 7 8 >out 2>err || complain "going on: $?"
is r.db 'select path, version, tick_id, current_bytes, shmem_bytes, measured_bytes, measured_processes from group_sample
  join control_group on id = group_id' '/app.slice/job|2|1|206569472|184549376|12288|1
/app.slice/job|2|2|4096|184549376|12288|1'
for how in peak 'peak --system' 'show --at=0'; do
  write proc/meminfo 'MemTotal: 1000 kB'
  cmtwatch $how r.db >text 2>err || true
  [ "$how" = 'peak --system' ] || grep -qx 'control group /app.slice/job (version 2): 201,728 KiB, .* pss of 1 measured process of 2' text ||
    complain "$how: $(cat text err)"
done
cmtwatch peak r.db --json | jq -e '.groups | length == 1 and .[0].path == "/app.slice/job"' >/dev/null || complain "a moment in JSON"
cmtwatch export --json r.db | jq -e '.columns.groups[1] == "current_bytes" and .groups[0].path == "/app.slice/job" and
  (.groups[0].samples | map(.[1])) == [206569472, 4096]' >/dev/null || complain "exported"
version_2 206569472
write proc/meminfo 'MemTotal: 1000 kB
MemAvailable: 1 kB'
cmtwatch record --root=proc --groups=cgroup -o r.db --count=1 7 >out 2>err
cmtwatch peak --system r.db | grep -q '^control group /app.slice/job (version 2): 201,728 KiB' ||
  complain "the machine's worst moment: $(cmtwatch peak --system r.db)"
cmtwatch record --root=proc --groups=cgroup -o none.db --measure=statm --count=1 7 >out 2>err
is none.db 'select count(*) from group_sample' 0
# A recording of cmt 0.1.0 has no such tables; it is read, and continued with them.
ask r.db 'drop table group_sample; drop table control_group'
cmtwatch peak r.db >text && ! grep -q 'control group' text && cmtwatch export --json r.db | jq -e '.groups == null' >/dev/null ||
  complain "an older recording: $(cat text)"
cmtwatch record --root=proc --groups=cgroup -o r.db --count=1 7 >out 2>err || complain "continuing an older recording: $(cat err)"
is r.db 'select count(*) from group_sample' 1

# A living group, of the version that this machine has: a process writes 32 MB to a tmpfs, and maps none of it.
made=''
for top in "/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)" "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)"; do
  [ -e "$top/memory.stat" ] && mkdir "$top/cmt_test_$$" 2>/dev/null || continue
  [ -e "$top/cmt_test_$$/memory.stat" ] && made=$top/cmt_test_$$ && break
  rmdir "$top/cmt_test_$$"
done
file=/dev/shm/cmt_test_$$
if [ -z "$made" ] || [ ! -w /dev/shm ]; then
  echo "a living group: skipped: no control group for memory can be made here"
  exit $failed
fi
trap 'status=$?; set +e; kill $writer 2>/dev/null; wait $writer 2>/dev/null; rm -f "$file"; rmdir "$made"; exit $status' EXIT
mkfifo go
/usr/bin/python3 -c '
import os, sys
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
with open(sys.argv[2], "wb") as file: file.write(b"x" * 32_000_000)
print("written", flush=True)
open("go").read()' "$made" "$file" >writer.out &
writer=$!
until_true '[ -s writer.out ] || ! kill -0 $writer'
cmtwatch get --json $writer >get.json
# The same figures by another reader, with other names in version 1.
stat() { awk -v key="$1" '$1 == key { print $2 }' "$made/memory.stat"; }
if [ -e "$made/memory.usage_in_bytes" ]; then version=1 shmem=$(stat total_shmem); else version=2 shmem=$(stat shmem); fi
jq -e --argjson version $version --argjson shmem "$shmem" '.samples[0].groups[0] | .version == $version and .shmem_bytes == $shmem and
  .shmem_bytes >= 32000000 and .current_bytes > .shmem_bytes and .peak_bytes >= .current_bytes and .processes == 1 and
  .measured_processes == 1 and .beyond_measured_bytes >= 20000000 and .measured_bytes < 25000000' get.json >/dev/null ||
  complain "a living group: $(cat get.json)"
# A command that goes to a group of its own is measured there.
cmtwatch run -o run.txt -- sh -c 'echo $$ >"$1/cgroup.procs"; exec true' sh "$made"
if grep -q 'VmHWM' run.txt && ! grep -q 'at least' run.txt; then
  grep -q "^control group [^ ]*cmt_test_$$ (version $version): .* at its first sample$" run.txt || complain "a command's group: $(cat run.txt)"
fi
: >go
wait $writer || complain "the writer: $?"
exit $failed
