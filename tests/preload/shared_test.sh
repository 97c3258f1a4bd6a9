# Short processes share a collector. Their traces are the same as with collectors of their own, also when the shared one
# is killed, stopped or refuses them.

. "$SOURCE/tests/behaviours.sh"
. "$SOURCE/tests/waiting.sh"
unset CMTTRACE_WAIT CMTTRACE_STATUS
mkdir -p temporary
export TMPDIR=$PWD/temporary PATH=$BUILD/tests/preload:$PATH

# In the command: the process of the shared collector, which is the launcher's first child.
cat >the_shared <<'EOF'
read -r first others </proc/"$1"/task/"$1"/children
read -r name </proc/"$first"/comm
case $name in cmttrace-col*) echo "$first" ;; *) exit 1 ;; esac
EOF
# A program with a supervisor has it as a child.
cat >supervisors <<'EOF'
read -r children </proc/$$/task/$$/children
echo "$children"
EOF
for at in 1 2 3 4 5 6; do echo "calls all; calls sized; sort --version"; done >work
status_of() { status=0; "$@" >out 2>err </dev/null || status=$?; }
# counts FILE: the program, allocations and events of each process, but for those that see whether the variable is set.
counts() { /usr/bin/python3 -c '
import csv, sys
for row in csv.DictReader(open(sys.argv[1])): print(row["program"], row["allocations"], row["events"], row["trace"] != "")' "$1" | grep -vE '^(env|sh) ' | LC_ALL=C sort; }

same_as_own() {
  status_of cmttrace -o alone/app.cmt --follow=yes -- env -u CMTTRACE_SHARED sh work
  [ "$status" = 0 ] || complain "alone: $status: $(cat err)"
  mv out alone/out
  status_of cmttrace -o with/app.cmt --follow=yes -- env sh work
  [ "$status" = 0 ] && cmp out alone/out || complain "shared: $status: $(cat err)"
  counts alone/app.processes.csv >alone/counts
  counts with/app.processes.csv >with/counts
  [ "$(wc -l <with/counts)" -ge 18 ] && diff alone/counts with/counts || complain 'other counts'
  for trace in with/*.cmt; do trace2cmt --verify "$trace" >verified || complain "$trace"; done
  [ "$(ls temporary)" = '' ] || complain "left: $(find temporary)"
}

# A process that has handed over its recording has no child that it does not know.
is_handed_over() {
  status_of cmttrace -o over/app.cmt -- sh supervisors
  [ "$(cat out)" = '' ] || complain "a child: $(cat out)"
  status_of cmttrace -o over/app.cmt -- env -u CMTTRACE_SHARED sh supervisors
  [ "$(cat out)" != '' ] || complain 'without the shared collector: no child'
}

# A process that is no longer short, and one that fills its ring at once.
long_ones() {
  status_of cmttrace -o long/app.cmt --calls -- perl -e '@x = map "x" x 300, 1..9; select undef, undef, undef, 0.3; @y = map "y" x 300, 1..70000'
  blocks=$(lifetimes --summary long/app.cmt | tr -d , | awk '$1 == "allocated" && !n++ {print $2}')
  [ "$status" = 0 ] && [ "$blocks" -gt 70000 ] && grep -q 'nothing was lost' err || complain "long: $blocks; $(cat err)"
  status_of cmttrace -o long/paused.cmt --paused -- sh -c true
  [ "$status" = 0 ] || complain "paused: $(cat err)"
}

# The kernel marks its end in each recording. The others start collectors of their own.
killed() {
  status_of cmttrace -o killed/app.cmt --follow=yes -- sh -c 'kill -9 $(sh the_shared $PPID) && exec sh work'
  cmp out alone/out || complain "killed: $status: $(cat out err)"
  counts killed/app.processes.csv | grep -E '^(calls|sort) ' >killed/counts
  grep -E '^(calls|sort) ' alone/counts | diff - killed/counts || complain 'killed: other counts'
  [ "$(ls temporary)" = '' ] || complain "left: $(find temporary)"
}

stopped() {
  status_of cmttrace -o stopped/app.cmt --follow=yes -- sh -c 'one=$(sh the_shared $PPID); kill -STOP $one; calls all; calls all; kill -CONT $one; calls all'
  [ "$status" = 0 ] && [ "$(counts stopped/app.processes.csv | grep -c "^$(grep ^calls alone/counts | head -n 1)\$")" = 3 ] ||
    complain "stopped: $status: $(cat err stopped/app.processes.csv)"
}

# Other settings, another view of the processes.
refused() {
  status_of cmttrace -o refused/app.cmt --follow=yes -- sh -c 'CMTTRACE_MAX_EVENTS=3 calls all; sh supervisors; CMTTRACE_MAX_EVENTS=900000 sh supervisors >own'
  [ "$(cat out)" = '' ] && [ -s own ] || complain "other settings: $(cat out own)"
  counts refused/app.processes.csv | grep -qxE 'calls [0-3] 3 True' || complain "other settings: $(counts refused/app.processes.csv)"
  if LD_PRELOAD= python3 "$with_filter" true; then
    status_of cmttrace -o refused/app.cmt -- python3 "$with_filter" sh supervisors
    [ "$status" = 0 ] && [ "$(cat out)" != '' ] || complain "a filter: $status: $(cat out err)"
    status_of python3 "$with_filter" cmttrace -o refused/app.cmt -- sh supervisors
    [ "$status" = 0 ] && [ "$(cat out)" = '' ] || complain "the filter of the launcher: $status: $(cat out err)"
  else
    echo 'skipped: filters of system calls: the kernel has none'
  fi
  if unshare -Urpf --mount-proc true 2>/dev/null; then
    status_of cmttrace -o refused/spaces.cmt --follow=yes -- unshare -Urpf --mount-proc sh -c 'calls all; exit 3'
    [ "$status" = 3 ] && counts refused/spaces.processes.csv | grep -F "$(grep ^calls alone/counts | head -n 1)" >here || complain "namespaces: $status: $(cat err)"
  else
    echo 'skipped: namespaces: this user may not make them'
  fi
  if unshare -UrTf --monotonic 1000000 true 2>/dev/null; then  # whose clock is ahead by 12 days
    status_of cmttrace -o refused/times.cmt --follow=yes -- unshare -UrTf --monotonic 1000000 sh -c 'calls all; exit 3'
    [ "$status" = 3 ] && [ "$(cut -d, -f2 refused/times.processes.csv | grep -c '^calls$')" = 1 ] &&
      awk -F, 'NR > 1 && ($3 > 1000 || $4 > 1000) { exit 1 }' refused/times.processes.csv ||
      complain "a time namespace: $status: $(cat err refused/times.processes.csv)"
    for trace in refused/times*.cmt; do trace2cmt --info "$trace" >/dev/null || complain "a time namespace: $trace"; done
  else
    echo 'skipped: time namespaces: this user may not make them'
  fi
}

# The collector of the others survives what one process sends.
forged() {
  export MAGIC SETTINGS
  MAGIC=$(sed -nE 's/^#define ring_magic "(.*)"$/\1/p' "$SOURCE/preload/protocol.h")
  SETTINGS=$(sed -nE 's/^ *X\([a-z_]+, "(CMTTRACE_[A-Z_]+)".*/\1/p' "$SOURCE/preload/settings_list.h" | tr '\n' ' ')
  status_of cmttrace -o forged/app.cmt --follow=no -- sh -c '
    LD_PRELOAD= /usr/bin/python3 "$SOURCE/tests/preload/checks/hand_over.py" || exit 4
    sh the_shared $PPID >still'
  [ "$status" = 0 ] && [ -s still ] && rm still || complain "forged: $status: $(cat err)"
}

# Programs that write over the memory that they share with the collector: the others have their traces.
overwritten() {
  status_of cmttrace -o overwritten/app.cmt --follow=yes -- sh -c '
    for seed in 1 2 3 4 5 6 7 8; do overwrites words $seed || :; calls all; done
    sh the_shared $PPID >still'
  [ -s still ] && [ "$(counts overwritten/app.processes.csv | grep -c "^$(grep ^calls alone/counts | head -n 1)\$")" = 8 ] ||
    complain "overwritten: $status: $(cat err overwritten/app.processes.csv)"
}

# A launcher that is killed leaves nothing, and programs go on being recorded.
launcher_killed() {
  cmttrace -o orphan/app.cmt -- sh -c 'echo $PPID >launcher; echo go >started; read -r go <goes; calls all' >out 2>err &
  until_true '[ -s started ]'
  kill -9 "$(cat launcher)"
  wait $! 2>/dev/null || true
  echo go >goes
  until_true '[ "$(ls temporary)" = "" ]'
  until_true 'trace2cmt --verify orphan/app.cmt'
}

with_filter=$SOURCE/tests/preload/checks/with_filter.py
mkdir alone with over long killed stopped refused forged overwritten orphan
mkfifo goes
export SOURCE
behaviour 'the traces are the same as with collectors of their own' same_as_own
behaviour 'a short process has no supervisor' is_handed_over
behaviour 'a process that is no longer short' long_ones
behaviour 'the shared collector is killed' killed
behaviour 'the shared collector is stopped' stopped
behaviour 'processes that it cannot serve' refused
behaviour 'forged recordings' forged
behaviour 'programs that write over their recordings' overwritten
behaviour 'the launcher is killed' launcher_killed
exit $failed
