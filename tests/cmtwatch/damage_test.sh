# Full disks, damaged files and processes that may not be read: each gives one clear line, and whole moments are kept.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -rf proc nobody ./*.db ./*.db-wal ./*.db-shm
process 7 77 patient

# refused COMMAND MESSAGE WORD...: exit 1 with one line.
refused() {
  local command=$1 message=$2; shift 2
  status_of cmtwatch "$command" "$@"
  [ "$status" = 1 ] && [ ! -s out ] && grep -qxE "cmtwatch $command: $message" err && [ "$(wc -l <err)" = 1 ] ||
    complain "cmtwatch $command $*: exit $status, $(cat out err)"
}

# A file that may not grow keeps the moments until then.
for i in $(seq 200); do mapping "$i"000-"$i"800 rw-p "/a/name/of/its/own/$i" 8 "$i"; done >many
write proc/7/smaps "$(cat many)"
status=0
( ulimit -f 400; cmtwatch record --root=proc -o full.db --interval=1ms --max-cost=100 --measure=mappings 7 2>err ) &
recorder=$!
for round in $(seq 1000); do
  sed "s/^Rss: .*/Rss: $round kB/" many >changed
  kill -0 $recorder 2>/dev/null || break
  write proc/7/smaps "$(cat changed)"
done
wait $recorder || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch record: full.db: File too large' ] || complain "a full disk: $status $(cat err)"
whole full.db
[ "$(ask full.db 'select count(*) from tick')" -ge 1 ] && cmtwatch peak full.db >out || complain "a full disk: nothing is left"

# A full disk does not end the recorded command; a line reports that it was not recorded.
status=0
rm -f command.err told done
( ulimit -f 400; cmtwatch record -o command.db --interval=1ms --max-cost=100 -- sh -c 'until [ -e told ]; do :; done; echo done >done' 2>command.err ) &
recorder=$!
until_true '[ -s command.err ]'
: >told
wait $recorder || status=$?
[ "$status" = 125 ] && [ "$(cat done)" = done ] && [ "$(cat command.err)" = 'cmtwatch record: command.db: File too large' ] ||
  complain "a command on a full disk: $status $(cat command.err)"

# A disk that is full altogether, if we may make a small one.
mkdir -p small
if unshare -rm mount -t tmpfs none small 2>/dev/null; then
  write proc/7/smaps "$(cat many)"
  status=0
  unshare -rm bash -eu -c 'mount -t tmpfs -o size=1m none small
    status=0
    cmtwatch record --root=proc -o small/disk.db --interval=1ms --max-cost=100 --measure=all 7 2>err || status=$?
    rm -f small/disk.db-shm
    cp small/disk.db* .
    exit $status' &
  recorder=$!
  for round in $(seq 5000); do
    sed "s/^Rss: .*/Rss: $round kB/" many >changed
    kill -0 $recorder 2>/dev/null || break
    write proc/7/smaps "$(cat changed)"
  done
  wait $recorder || status=$?
  [ "$status" = 1 ] && grep -qE '^cmtwatch record: small/disk.db: (No space left on device|database or disk is full)$' err ||
    complain "a small disk: $status $(cat err)"
  whole disk.db
  [ "$(moments disk.db)" -ge 1 ] || complain "a small disk: nothing is left"
else
  echo "a small disk: skipped: no mount namespaces here"
fi

# A damaged file is reported and never crashes cmtwatch: it is cut anywhere, or its header or pages in its middle are
# overwritten.
process 7 77 patient
write proc/7/smaps "$(cat many)"
cmtwatch record --root=proc -o good.db --count=3 --interval=1ms --max-cost=100 7 || complain "a good one: $?"
size=$(stat -c %s good.db)
head -c 0 good.db >empty.db
for command in peak show play export compare; do
  case $command in show) at=--at=0 ;; export) at=--json ;; *) at= ;; esac
  for length in 1 15 16 99 100 511 512 1023; do
    head -c $length good.db >cut.db
    status_of cmtwatch $command $at cut.db
    [ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^cmtwatch $command: cut.db: " err ||
      complain "$command of $length bytes: $status $(cat err)"
  done
  for length in 4096 8192 $((size / 2)) $((size - 4096)); do
    head -c $length good.db >cut.db
    status_of cmtwatch $command $at cut.db
    [ "$status" = 0 ] || { [ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^cmtwatch $command: cut.db: " err; } ||
      complain "$command of $length bytes: $status $(cat err)"
  done
  for page in $(seq 1 $((size / 4096 - 1))); do
    cp good.db hurt.db
    head -c 4096 /dev/zero | tr '\0' '\377' | dd of=hurt.db bs=4096 seek="$page" conv=notrunc 2>/dev/null
    status_of cmtwatch $command $at hurt.db
    [ "$status" = 0 ] || { [ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ]; } || complain "$command, page $page: $status $(cat err)"
  done
  { printf 'XXXXXXXXXXXXXXXX'; tail -c +17 good.db; } >head.db
  status_of cmtwatch $command $at head.db
  [ "$status" = 1 ] && grep -q "^cmtwatch $command: head.db: " err || complain "$command without a header: $status $(cat err)"
done
cp head.db before.db
refused record 'head.db: file is not a database' --root=proc -o head.db --count=1 7
cmp -s head.db before.db || complain "what is no database was written to"
sqlite3 good.db 'pragma user_version = 9'
refused peak 'good.db: a recording of version 9, which this cmtwatch does not know' good.db
refused record 'good.db: a recording of version 9, which this cmtwatch does not know' --root=proc -o good.db --count=1 7

# A reader at the end of the recording is no failure, and one file is left once it is done.
cmtwatch record --root=proc -o read.db --interval=1ms --max-cost=100 7 2>read.err &
recorder=$!
until_true '[ $(moments read.db) -ge 2 ]'
/usr/bin/python3 -c '
import os, signal, sqlite3, sys, time
def lives():
    try: return " Z " not in open("/proc/%s/stat" % sys.argv[1]).read()
    except (FileNotFoundError, ProcessLookupError): return False  # the shell has waited for it
reader = sqlite3.connect("read.db", timeout=60, isolation_level=None)
reader.execute("begin")
before = reader.execute("select count(*) from tick").fetchone()
os.kill(int(sys.argv[1]), signal.SIGINT)
while lives(): time.sleep(0.01)
assert reader.execute("select count(*) from tick").fetchone() == before
reader.execute("commit")' "$recorder" || complain "a reader was disturbed"
wait $recorder || complain "a reader makes recording fail: $? $(cat read.err)"
whole read.db
[ "$(ls read.db*)" = read.db ] || complain "a reader leaves $(ls read.db*)"

# Processes that have no memory to record.
refused record 'there is no process 2147483646' -o none.db 2147483646
[ ! -e none.db ] || complain "a recording of nobody was begun"
mkdir -p proc/8 proc/9
write proc/8/stat '8 (kworker/0:1) S 2 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0'
write proc/9/stat '9 (gone) Z 1 0 0 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0'
refused record '8 \(kworker/0:1\) is a kernel thread: .*' --root=proc -o none.db 8
refused record '9 \(gone\) has ended, .*' --root=proc -o none.db 9
cmtwatch record --root=proc -o all.db --all --count=2 --interval=1ms --max-cost=100 || complain "--all: $?"
[ "$(ask all.db 'select pid from process')" = 7 ] || complain "--all records who has no memory: $(ask all.db 'select pid from process')"

# Another user, and a /proc that hides others from him.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && unshare -m true 2>/dev/null; then
  sleep 1000 &
  sleeper=$!
  mkdir -p nobody hidden
  chmod 777 nobody
  as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }
  if as_nobody sh -c "cd nobody && cmtwatch --version" >/dev/null 2>&1; then
    as_nobody cmtwatch record --groups=/nowhere -o nobody/other.db --count=2 --interval=1ms --max-cost=100 $sleeper 2>err || complain "another's process: $?"
    [ "$(cat err)" = "cmtwatch record: the mappings of process $sleeper may not be read: its other figures are recorded" ] ||
      complain "another's process: $(cat err)"
    [ "$(ask nobody/other.db 'select count(*) from process_sample where resident_bytes > 0 and mappings_readable = 0')" = 2 ] ||
      complain "another's process: $(ask nobody/other.db 'select * from process_sample')"
    mkdir -m 555 -p nobody/sealed
    as_nobody cmtwatch record -o nobody/sealed/other.db --count=1 $sleeper 2>err && complain "a recording in a sealed folder"
    [ "$(cat err)" = 'cmtwatch record: nobody/sealed/other.db: Permission denied' ] || complain "a sealed folder: $(cat err)"
    for hidepid in 1 2; do
      unshare -m bash -c "mount -t proc -o hidepid=$hidepid proc /proc &&
        exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
          cmtwatch record -o nobody/hidden.db --count=1 $sleeper" 2>err && complain "hidepid=$hidepid: recorded" ||
        [ "$(cat err)" = "cmtwatch record: process $sleeper is hidden: /proc is mounted with hidepid" ] ||
        complain "hidepid=$hidepid: $(cat err)"
    done
  else
    echo "another user: skipped: he cannot run what was built"
  fi
  kill $sleeper
else
  echo "another user: skipped: that takes root"
fi
exit $failed
