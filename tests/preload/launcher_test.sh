# cmttrace: it records a command that does not notice it, and a line says what the trace has.

. "$SOURCE/tests/behaviours.sh"
. "$SOURCE/tests/waiting.sh"
unset CMTTRACE_WAIT CMTTRACE_STATUS  # it waits itself
mkdir -p -m 1777 temporary
mkfifo go
export TMPDIR=$PWD/temporary
status_of() { status=0; "$@" >out 2>err </dev/null || status=$?; }
find_collector=(perl -I"$SOURCE/tests/preload/checks" -Mcollector)

# The lines at the end agree with the trace. Call stacks and times are recorded, unless only calls are asked for.
lines_at_the_end() {
  status_of cmttrace -v -o app.cmt -- perl -e 'print "said\n"; exit 4'
  [ "$status" = 4 ] && [ "$(cat out)" = said ] || complain "exit 4: $status, $(cat out err)"
  peak=$(lifetimes --summary app.cmt | tr -d , | sed -nE 's/.*peak live: [0-9]+ blocks? ([0-9]+) bytes.*/\1/p' | awk '{printf "%.0f KiB", $1 / 1024}')
  blocks=$(lifetimes --summary app.cmt | awk '$1 == "allocated" && !blocks {blocks = $2} END {print blocks}')
  events=$(trace2cmt -s app.cmt | grep -c '^[a-z]')
  tr -d , <err >lines
  sed -n 1p lines | grep -qxE "cmttrace: app.cmt: ${blocks/,/} allocations by 1 thread peak $peak [0-9.]+ [KM]?i?B live at the end; [0-9.]+ [mun]?s; nothing was lost" ||
    complain "$blocks blocks, peak $peak, but: $(cat err)"
  sed -n 2p lines | grep -qxE "cmttrace: $events events in [0-9]+ bytes [0-9.]+ an event(; times to within [0-9.]+ [mu]s)?" || complain "$events events, but: $(cat err)"
  [ "$(sed -n '3,$p' err)" = 'cmttrace: next: cmtreport -o app.html app.cmt' ] || complain "the last line: $(cat err)"
  trace2cmt -s app.cmt >text
  grep -q ' stack=' text && grep -q ' time=' text || complain 'no call stacks, or no times'
  status_of cmttrace --calls -o "a b.cmt" -- perl -e 1
  [ "$(tail -n 1 err)" = "cmttrace: next: cmtreplay 'a b.cmt'" ] && [ "$(wc -l <err)" = 2 ] || complain "--calls: $(cat err)"
  ! trace2cmt -s 'a b.cmt' | grep -qE ' (stack|time)=' || complain '--calls has call stacks or times'
  CMTTRACE_STACKS=0 CMTTRACE_TIME=0 status_of cmttrace -o set.cmt -- perl -e 1
  ! trace2cmt -s set.cmt | grep -qE ' (stack|time)=' || complain 'a variable does not replace the default'
}

# Traces of short processes are left out, unless they are asked for. A list has all of them, and a loss of such a process is none of the recording.
short_processes() {
  mkdir -p short
  cat >short/wrapper <<'EOF'
#!/bin/sh
perl -e 1; perl -e 'kill TERM => $$'
perl -e '@x = map "x" x 300, 1..8000'
perl -e 'select undef, undef, undef, 1.1'
exec perl -e '@x = map "x" x $_, 1..9'
EOF
  chmod 755 short/wrapper
  # On a busy machine a process without work may live for more than a second, and is kept.
  for _ in 1 2 3 4 5; do
    rm -f short/app*
    status_of cmttrace -o short/app.cmt -- short/wrapper
    grep -q '^cmttrace: [45] more traces:' err || break
  done
  if grep -q '^cmttrace: [45] more traces:' err; then
    echo 'not tested: short processes, because processes without work live for a second here'
    return
  fi
  [ "$status" = 0 ] && [ "$(ls short/app*.cmt | wc -l)" = 4 ] && [ -e short/app.cmt ] || complain "short processes: $(ls short; cat err)"
  grep -qE '^cmttrace: 3 more traces: .* and .*; 2 short processes with [0-9,]+ events left out \(--follow=yes keeps them\); short/app\.processes\.csv lists all$' err || complain "short processes: $(cat err)"
  grep -qE '^cmttrace: short/app\.[0-9]+(\.[0-9])?\.cmt \(perl\): [0-9,]+ allocations by 1 thread, peak [0-9.]+ MiB, .*; nothing was lost$' err || complain "the highest peak: $(cat err)"
  /usr/bin/python3 -c '
import csv, glob, sys
rows = list(csv.DictReader(open("short/app.processes.csv")))
kept = sorted(row["trace"] for row in rows if row["trace"])
assert kept == sorted(glob.glob("short/app*.cmt")), kept
assert sum(row["command"] == "perl -e 1" and not row["trace"] and int(row["allocations"]) > 9 for row in rows) == 1, rows
assert rows[0]["program"] in ("sh", "dash", "bash") and float(rows[0]["begin_s"]) == 0, rows[0]
assert sum(float(row["seconds"]) > 1 for row in rows if row["trace"]) >= 2  # the shell waits for the others
left = [row for row in rows if not row["trace"]]
print(len(left), sum(int(row["events"]) for row in left))' >counted || complain "the list: $(cat short/*.csv)"
  tr -d , <err | grep -q "; $(sed 's/ / short processes with /' counted) events left out" || complain "left out: $(cat counted err)"
  [ "$(tail -n 1 err)" = 'cmttrace: next: cmtreport -o short/app.html short/app*.cmt' ] || complain "all traces next: $(cat err)"
  rm short/*.cmt
  : >short/apple.cmt  # of another recording: no pattern means this one alone
  status_of cmttrace --follow=yes -o short/app.cmt -- short/wrapper
  tail -n 1 err | grep -qxE 'cmttrace: next: cmtreport -o short/app[0-9.]+html short/app[0-9.]+cmt' || complain "the largest next: $(cat err)"
  rm short/apple.cmt
  [ "$(ls short/app*.cmt | wc -l)" -ge 6 ] && ! grep -q 'left out' err || complain "--follow=yes: $(ls short; cat err)"
}

# Functions that node and Java compile have names where they list them.
runtime_compilers() {
  cp "$(command -v perl)" node
  status_of cmttrace -o node.cmt -- ./node -e 1
  grep -q '^cmttrace: JavaScript functions will have no names in call stacks: set NODE_OPTIONS=.--perf-basic-prof-only-functions' err || complain "node: $(cat err)"
  status_of cmttrace -o node.cmt -- ./node -e 'open F, ">", "/tmp/perf-$$.map"; print F "10 20 f\n"; print $$'
  rm -f "/tmp/perf-$(cat out).map"
  grep -qx "cmttrace: names of JavaScript functions are in /tmp/perf-$(cat out).map; keep it for the reports" err || complain "node with names: $(cat err)"
  for choice in "" --frames=none --calls --keep=1min --sample-bytes=64K; do
    # A node of its own, which takes the options of names or not.
    printf '#!/bin/sh\n[ "$1" = --version ] && exit $REFUSED\necho "$NODE_OPTIONS"\n' >node
    NODE_OPTIONS=-r\ x REFUSED=0 status_of cmttrace $choice -o node.cmt -- ./node x
    expected='-r x'
    [ "$choice" != "" ] || expected='-r x --perf-basic-prof-only-functions --interpreted-frames-native-stack'
    [ "$(cat out)" = "$expected" ] || complain "names of node $choice: $(cat out err)"
  done
  for own in REFUSED=9 NODE_OPTIONS=--no-perf-basic-prof; do
    env REFUSED=0 $own cmttrace -o node.cmt -- ./node x >out 2>err
    ! grep -q -- '--perf-basic-prof' out || complain "names of node, $own: $(cat out)"
  done
  for option in --perf-basic-prof --snapshot-blob=x --build-snapshot; do
    [ "$(REFUSED=0 cmttrace -o node.cmt -- ./node $option 2>err)" = "" ] || complain "a node with $option: $(cat err)"
  done
  off='^cmttrace: JavaScript functions will have no names in call stacks: the command or NODE_OPTIONS has --no-perf-basic-prof$'
  cp "$(command -v perl)" node
  printf NODE_OPTIONS >>node  # what cmttrace recognises node by
  for words in '-- ./node -e 1 -- --no-perf-basic-prof' '-- ./node -e 1 -- --perf-basic-prof --noperf_basic_prof'; do
    cmttrace -o node.cmt $words 2>err
    grep -q -- "$off" err || complain "names switched off, $words: $(cat err)"
  done
  NODE_OPTIONS=--no-perf-basic-prof cmttrace -o node.cmt -- ./node -e 1 2>err
  grep -q -- "$off" err || complain "names switched off in NODE_OPTIONS: $(cat err)"
  rm node
  if LD_PRELOAD= node -e 1 2>err; then
    status_of cmttrace -o js.cmt -- node -e 'console.log(process.pid)'
    map=/tmp/perf-$(cat out).map
    grep -qx "cmttrace: names of JavaScript functions are in $map; keep it for the reports (cmttrace has added .*)" err ||
      complain "names of a real node: $(cat out err)"
    ! ls isolate-*.log 2>/dev/null || complain "node left a log of V8"
    rm -f "$map"
  fi
  cp "$(command -v perl)" node
  status_of cmttrace --calls -o node.cmt -- ./node -e 1
  ! grep -q JavaScript err || complain "node without stacks: $(cat err)"
}

# A second run replaces the trace; one without -o, and the tracer alone, write nothing over.
second_run() {
  status_of cmttrace -o app.cmt -- perl -e 'push @x, "x" x 60003 for 1..7'
  grep -q ' app\.cmt: ' err && [ "$(ls app*)" = app.cmt ] && [ "$(trace2cmt -s app.cmt | grep -c '^malloc(6000[0-9])')" -ge 7 ] ||
    complain "a second trace: $(cat err; ls app*)"
  (mkdir -p env && cd env && for _ in 1 2; do CMTTRACE_OUT=e.cmt LD_PRELOAD=$TRACER perl -e 1; done && [ "$(echo *)" = 'e.2.cmt e.cmt' ]) ||
    complain "the variable alone: $(ls env)"
}

# A trace that is being written is not replaced. Nobody else may read a trace.
busy_output() {
  cmttrace -o busy.cmt -- cat go 2>first &
  until_true '[ -e busy.cmt ]'
  status_of cmttrace -o busy.cmt -- touch ran
  [ "$status" = 125 ] && [ ! -e ran ] && [ "$(cat err)" = 'cmttrace: cannot write busy.cmt: another recording is still writing it; give another name (the program was not started)' ] ||
    complain "a busy output: $status $(cat err)"
  : >go
  wait $! && grep -q ' busy.cmt: .*; nothing was lost$' first || complain "a busy output: $(cat first)"
  [ "$(stat -c %a busy.cmt)" = 600 ] || complain "mode: $(stat -c %a busy.cmt)"
  status_of cmttrace -o busy.cmt -- true
  [ "$status" = 0 ] || complain "an output that is no longer busy: $(cat err)"
}

# If the output is a symbolic link, the trace is its target, whether it exists or not.
symbolic_link() {
  mkdir -p target
  for name in there missing; do
    ln -sf target/$name.cmt link.cmt
    [ $name = missing ] || echo old >target/$name.cmt
    status_of cmttrace -o link.cmt -- true
    [ "$status" = 0 ] && [ -L link.cmt ] && trace2cmt -s target/$name.cmt >out 2>&1 || complain "a link, $name: $(cat out err)"
  done
}

# The name is that of the last program that the first process becomes. The traces of programs before it, and of other processes, have a process id in their names.
exec_and_children() {
  status_of cmttrace -o x/x.cmt -- true
  [ "$status" = 125 ] || complain 'a folder that is not there'
  mkdir -p x
  status_of cmttrace --follow=yes -o x/x.cmt -- sh -c 'echo $$; perl -e 1; exec sh -c "perl -e 1; exec perl -e 2"'
  pid=$(cat out)
  program() { trace2cmt -s "$1" | sed -n 's/^#cmt command=//p'; }
  [ "$(program x/x.cmt)" = '"perl -e 2"' ] && program "x/x.$pid.1.cmt" | grep -q 'echo' && program "x/x.$pid.2.cmt" | grep -q "\"sh -c 'perl" ||
    complain "exec: $(ls x)"
  [ "$(for trace in x/x.*.cmt; do program $trace; done | grep -cx '"perl -e 1"')" = 2 ] || complain "children: $(ls x)"
  grep -qE '^cmttrace: x/x\.[0-9.]*cmt \((sh|perl)\): .*; nothing was lost$' err && grep -qE '^cmttrace: [4-8] more traces: (x/x\.[0-9.]*cmt \((sh|perl)\),? ){3}and [1-5] others?; ' err || complain "the largest: $(cat err)"
}

# The command in a trace is what a shell would start again.
quoted_command() {
  local -a words
  starts_again() {  # starts_again WORD...
    status_of cmttrace -o quoted.cmt -- "$@"
    cmtreport --json quoted.cmt | jq -r .command >command
    words=() && eval "words=($(cat command))" && [ "$(printf "%s|" "${words[@]}")" = "$(printf "%s|" "$@")" ] &&
      eval "$(cat command)" >again && cmp -s out again || complain "the command of $*: $(cat command)"
  }
  ln -sf "$(type -P true)" 'my app' && ln -sf "$(type -P printf)" a=b
  starts_again perl -e 'print for @ARGV' "it's" 'a  b' '' $'two\nlines\t\xff'
  starts_again true ''
  starts_again true '' ''
  PATH=$PWD:$PATH starts_again a=b '%s' 1
  starts_again './my app'
  status_of cmttrace -o cut.cmt -- perl -e "1; # $(printf '%020000d' 7)"
  cmtreport --json cut.cmt | jq -r .command | grep -q "0 \[cut\]$" || complain "a command that is cut does not say so"
}

# A launcher checks the name before its command starts. Here another recording takes the name after that.
same_name_at_once() {
  mkdir -p twice
  for n in 1 2; do
    N=$n bash -c 'CMTTRACE_OUT=twice/x.cmt CMTTRACE_OUT_OF=$$ CMTTRACE_STATUS=twice/status$N CMTTRACE_WAIT=1 LD_PRELOAD=$TRACER perl -e $N; :'
  done
  [ "$(echo twice/x*)" = 'twice/x.2.cmt twice/x.cmt' ] && [ "$(trace2cmt -s twice/x.cmt | grep -c 'command="perl -e 1"')" = 1 ] || complain "$(ls twice)"
}

# A launcher reads no path with control characters.
control_characters() {
  status_of cmttrace -o $'a\tb.cmt' -- true
  [ "$status" = 125 ] && [ "$(head -n 1 err)" = "cmttrace: --output: a name, or its folder's, has control characters" ] || complain "$status $(cat err)"
  status_of cmttrace --pprof=$'a\tb.pb.gz' -o /dev/null -- true
  [ "$status" = 125 ] && [ "$(head -n 1 err)" = "cmttrace: --pprof: a name, or its folder's, has control characters" ] || complain "$status $(cat err)"
  mkdir $'new\nline'
  cd $'new\nline'
  status_of cmttrace -- true
  [ "$status" = 125 ] && [ "$(head -n 1 err)" = "cmttrace: the current folder's name has control characters; give -o /FOLDER/NAME, in another folder" ] || complain "$status $(cat err)"
  status_of cmttrace -o a.cmt -- true
  [ "$status" = 125 ] && [ "$(head -n 1 err)" = "cmttrace: --output: the current folder's name has control characters; give an absolute path" ] || complain "$status $(cat err)"
  status_of cmttrace -o "${PWD%/*}/elsewhere.cmt" -- true
  [ "$status" = 0 ] || complain "$status $(cat err)"
  cd ..
  cp "$(command -v perl)" $'a\nb'
  status_of cmttrace -o %n.cmt -- $'./a\nb' -e 1
  [ "$status" = 0 ] && grep -q '^cmttrace: a_b.cmt: .*; nothing was lost$' err || complain "$status $(cat err)"
}

# Text by its ending; without -o the compact form, named after program and process.
form_and_name() {
  status_of cmttrace -o t.trace -- true
  [ "$status" = 0 ] && head -n 1 t.trace | grep -q '^#cmt text=1' || complain "text: $(cat err)"
  (mkdir -p named && cd named && cmttrace true 2>err) && ls named | grep -qE '^true\.[0-9]+\.cmt$' || complain "no name: $(ls named)"
}

# Relative names are of the folder where the launcher, or the first process, has started.
other_folder() {
  mkdir -p here/child%d
  (cd here && status_of cmttrace --follow=yes -o app.cmt -- sh -c 'cd child%d; perl -e 1; exec perl -e 2'
    grep -q '2 more traces: ' err && grep -q '; nothing was lost$' err || complain "another folder: $(cat err)"
    cd child%d && status_of cmttrace --follow=yes -- sh -c 'cd /; perl -e 1; exit 0'
    grep -q '1 more trace: ' err && grep -q '; nothing was lost$' err || complain "another folder, no name: $(cat err)"
    CMTTRACE_OUT=by.%n.%p.cmt,b.%n.%p.trace LD_PRELOAD=$TRACER sh -c 'cd /; perl -e 1; exit 0')
  [ "$(ls here/*.cmt | wc -l)" = 3 ] && [ "$(ls here/child%d/*.cmt | wc -l)" = 4 ] && [ "$(ls here/child%d/*.trace | wc -l)" = 2 ] ||
    complain "another folder: $(ls here here/child%d)"
}

# Children are recorded too.
children() {
  mkdir -p f
  status_of cmttrace -o 'f/%n.%p.trace' -- sh -c 'perl -e 1; perl -e 1'
  [ "$(ls f | grep -c '^perl')" = 2 ] && grep -q ' more traces: ' err || complain "children: $(ls f; cat err)"
}

# A daemon is not waited for, and that is said. Its parent waits until it is at work.
daemon() {
  status_of cmttrace -o d.trace -- perl -e 'pipe R, W; if (fork) { close W; <R>; exit 0 } @x = map "x" x $_, 1..9; close W; open F, "<", "go"'
  [ "$status" = 0 ] && grep -q '^cmttrace: d[.0-9]*.trace ([a-z]*): .*; 1 trace not ended$' err && grep -q '1 more trace: d[.0-9]*.trace ([a-z]*)' err || complain "a daemon: $status $(cat err)"
  [ -z "$(ls temporary)" ] || complain "a launcher that has ended left $(ls temporary)"
  : >go
  # The collectors of processes that go on do not create the launcher's file anew, and a program that such a process starts later is recorded.
  mkdir -p late
  status_of cmttrace -o 'late/%n.%p.trace' -- perl -e 'exit 0 if fork; open F, "<", "go"; exec "perl", "-e", 1'
  [ "$status" = 0 ] || complain "a daemon that starts another program: $status $(cat err)"
  : >go
  until_true '[ "$(grep -lx "#cmt end=complete" late/* | wc -l)" = 3 ]'
}

# A launcher that is killed cannot remove its files. The collector of its command does it.
killed() {
  mkfifo held
  cmttrace -o killed.cmt -- sh -c 'echo $PPID >launcher; read line <held' &
  until_true '[ -s launcher ]'
  kill -KILL "$(cat launcher)"
  wait $! || true
  [ "$(ls temporary | wc -l)" = 1 ] || complain "no files of a launcher: $(ls temporary)"
  echo >held
  until_true '[ -z "$(ls temporary)" ]'
}

# A trace that is renamed or removed while it is recorded is counted as its collector reports, and is no success.
moved() {
  for change in 'rename "moved.cmt", "aside.cmt"' 'unlink "moved.cmt"'; do
    status_of cmttrace -o moved.cmt -- perl -e "$change or die; push @x, 'x' x 60003 for 1..7"
    [ "$status" = 125 ] && grep -qx 'cmttrace: moved.cmt was renamed or removed while it was recorded' err &&
      grep -qE '^cmttrace: moved.cmt: [0-9,]+ events of 1 thread; .*; 1 trace not readable, and counted as far as its collector reports$' err && ! grep -q next: err ||
      complain "$change: $status $(cat err)"
  done
  [ "$(trace2cmt -s --strict aside.cmt | grep -c '^malloc(60005')" = 7 ] || complain 'the renamed trace is not whole'
}

# A trace that could not be written is reported.
unwritten() {
  # A small stack: the command's status, which the launcher must not replace by that of a fault of its own.
  (ulimit -s 64; status_of cmttrace -o small.cmt -- sh -c 'exit 5'; echo $status >status)
  [ "$(cat status)" = 5 ] || complain "a small stack: $(cat status err)"
  (ulimit -f 1500; status_of cmttrace -o big.trace -- "$BUILD/tests/preload/faults" steady 60000; echo $status >status)
  [ "$(cat status)" = 5 ] && grep -q ' big.trace: .*s; 1 trace could not be written to the end: File too large$' err || complain "a limit on files: $(cat status err)"
  status_of cmttrace -o alone.cmt -- "${find_collector[@]}" -e 'my @blocks = map { "x" x $_ } 1..500; kill KILL => collector("alone.cmt")'
  [ "$status" = 125 ] && grep -q 'could not be written to the end$' err || complain "a dead collector: $status $(cat err)"
}

# An output that cannot be written is found before the command is started; an old trace stays where there is no command.
unwritable_outputs() {
  unwritable() {  # ERROR OPTION...
    rm -f ran
    status_of cmttrace "${@:2}" -- touch ran
    [ "$status" = 125 ] && [ ! -e ran ] && [ "$(cat err)" = "cmttrace: cannot write $1 (the program was not started)" ] ||
      complain "unwritable, $2 $3: $status $(cat err)"
  }
  mkdir -p folder.cmt
  unwritable 'none/x.cmt: No such file or directory' -o none/x.cmt
  unwritable 'none/%n.cmt: No such file or directory' -o none/%n.cmt
  unwritable 'folder.cmt: Is a directory' -o folder.cmt
  unwritable '/dev/null: a trace is a regular file, and this is none' -o /dev/null
  unwritable '/dev/full: a trace is a regular file, and this is none' -o /dev/full
  mkfifo pipe.cmt
  unwritable 'pipe.cmt: a trace is a regular file, and this is none' -o pipe.cmt
  unwritable 'none/x: No such file or directory' --rings=none/x
  local deep
  deep=$(printf 'd/%.0s' $(seq 1100))
  mkdir -p "$deep"
  unwritable 'x.cmt: its path has 2048 bytes or more; give a shorter one' -o "${deep}x.cmt"
  unwritable 'none/x: No such file or directory' --control=none/x
  unwritable 'folder.cmt: commands come through a FIFO, and this is none' --control=folder.cmt
  echo kept >kept.cmt
  unwritable 'none/x: No such file or directory' -o kept.cmt --rings=none/x
  [ "$(cat kept.cmt)" = kept ] || complain 'a trace was removed for a command that was not started'
  for words in './kept.sh' 'cat kept.sh' 'perl ./kept.sh'; do
    printf '#!/bin/sh\n' >kept.sh
    chmod 755 kept.sh
    status_of cmttrace -o kept.sh -- $words
    [ "$status" = 125 ] && [ -s kept.sh ] && grep -q -- 'cannot write kept.sh: it is a file of the command (the program was not started)' err || complain "-o and $words: $status $(cat err)"
  done
  for place in /dev/stdout said.cmt; do
    cmttrace -o $place -- echo said >said.cmt 2>err && status=0 || status=$?
    [ "$status" = 125 ] && [ ! -s said.cmt ] && grep -q "said.cmt: it is the command's standard output (the program was not started)" err || complain "-o $place: $status $(cat err)"
  done
  status_of cmttrace -o a,b,c,d,e -- true
  [ "$status" = 125 ] && grep -q -- '--output: 4 paths at most' err || complain "five outputs: $status $(cat err)"
  status_of cmttrace -o a,b.cmt -- true
  [ "$status" = 125 ] && [ ! -e b.cmt ] && grep -q -- "--output: a comma separates paths, and 'a' has no ending" err || complain "a comma: $status $(cat err)"
  ln -s round.cmt round.cmt
  unwritable 'round.cmt: Too many levels of symbolic links' -o round.cmt
  status_of cmttrace -o app.cmt -- ./nowhere
  [ "$status" = 127 ] && [ -s app.cmt ] || complain "no command: $status, $(ls)"
}

# A recording that fails is no success, and the failure of the command comes first.
failed_recording() {
  for exit in 0 7; do
    status_of env CMTTRACE_NO=1 cmttrace -o bad.cmt -- perl -e "exit $exit"
    [ "$status" = $((exit ? exit : 125)) ] && grep -q 'nothing was recorded' err || complain "nothing was recorded, $exit: $status $(cat err)"
  done
}

# The line says what is missing, and why. Nothing is missing only where nothing is said.
losses() {
  lost() {  # TEXT OPTION... -- COMMAND
    status_of cmttrace -o lost.cmt "${@:2}"
    [ "$status" = 0 ] && grep -qE " [mun]?s; $1\$" err || complain "lost, ${*:2}: $status $(cat err)"
    trace2cmt --verify lost.cmt >said 2>&1 || [ $? = 3 ] || complain "lost, ${*:2}: $(cat said)"
  }
  many='push @x, "x" x $_ for 1..20000'
  lost 'stopped by --max-events in the first [0-9.]+ [mun]?s' --max-events=1000 -- perl -e "$many"
  # The blocks that are live there are no leaks.
  grep -q 'iB live where it breaks off; ' err || complain "a limit: $(cat err)"
  cmtreport lost.cmt 2>/dev/null | grep -qF 'the recording breaks off' || complain "a limit: $(cmtreport lost.cmt)"
  ! cmtreport lost.cmt 2>/dev/null | grep -qE 'steady leak|leaks' || complain "a limit, a leak: $(cmtreport lost.cmt)"
  lost 'stopped by --max-time in the first [0-9.]+ [mun]?s' --max-time=1ns -- perl -e "$many"
  lost 'stopped by --max-bytes in the first [0-9.]+ [mun]?s' --max-bytes=10K -- perl -e "$many"
  [ "$(stat -c %s lost.cmt)" -lt 12000 ] || complain "10K: $(stat -c %s lost.cmt) bytes"
  lost 'nothing was lost' --max-bytes=10G -- perl -e "$many"
  rm -f lost.*
  lost '3 traces stopped by --max-events' --follow=yes --max-events=10 -- sh -c 'perl -e 1; perl -e 1'
  faults=$BUILD/tests/preload/faults plugin=$BUILD/tests/preload/libplugin.so
  # By an address of dlsym; and one by the library's constructor, before its words could be changed.
  lost '6 blocks freed whose allocation was not seen' -- "$faults" deepbind "$plugin"
  lost "calls by $plugin not seen \(RTLD_DEEPBIND or dlmopen\)" -- "$faults" namespace "$plugin"
  lost 'nothing was lost' -- "$faults" plugins "$plugin"
}

# A process that could not be recorded is counted: it has said why.
refused_process() {
  for exit in 0 7; do
    status_of cmttrace -o refused.cmt -- perl -e "push @x, 'x' x \$_ for 1..9; system q(ulimit -n 20; exec perl -e 1); exit $exit"
    [ "$status" = $((exit ? exit : 125)) ] && grep -q '^libcmttrace: cannot start the collector' err &&
      grep -qE '^cmttrace: .*; 1 program not recorded: perl \(Too many open files\)$' err || complain "not recorded: $status $(cat err)"
  done
}

# A signal handler that leaves an event by longjmp, after one of its instructions: at most that event is lost.
longjmp() {
  each=18
  [ -z "${CMT_DAILY:-}" ] || each=6
  for step in $(seq 0 $each 90); do
    status_of cmttrace --calls --touched=64K -o jump.trace -- "$BUILD/tests/preload/interrupted" malloc run "$step"
    grep -qx + out || break
    cp err "jump.$step"
    # The command has succeeded, its recording has not.
    [ "$status" = "$(grep -q 'stopped by an error' err && echo 125 || echo 0)" ] || complain "a handler that leaves: $status $(cat err)"
  done
  grep -lE '; 1 event lost or in doubt; stopped by an error that libcmttrace reported in the first [0-9.]+ [mun]?s$' jump.[0-9]* | grep -q . ||
    complain "a handler that leaves by longjmp: $(cat jump.[0-9]*)"
  grep -hE '^cmttrace:.*nothing was lost$' jump.[0-9]* | grep -q . || complain "a handler that leaves by longjmp: $(cat jump.[0-9]*)"
}

# The signal that ends a command ends the launcher; what was recorded is whole.
ending_signal() {
  status_of cmttrace -o killed.trace -- sh -c 'kill -TERM $$'
  [ "$status" = 143 ] && grep -q ' killed.trace: .*ended by SIGTERM' err || complain "SIGTERM: $status $(cat err)"
  # Here the first line is of a child, which no signal has ended.
  status_of cmttrace -o shell.cmt -- sh -c 'perl -e "my @a = map { q(x) x 100 } 1..5000"; kill -TERM $$'
  grep -q ' shell\.[0-9]*\.cmt (perl): .*; the command ended by SIGTERM; ' err || complain "SIGTERM of a parent: $(cat err)"
  status_of cmttrace --calls --touched=off -o killed.cmt -- sh -c 'kill -TERM $$'
  for trace in killed.trace killed.cmt; do
    trace2cmt --info $trace | grep -qE '^ +ended by +SIGTERM$' || complain "--info: $(trace2cmt --info $trace)"
  done
}

# Ctrl-C reaches the command once, and the launcher waits for what it makes of it.
ctrl_c() {
  /usr/bin/python3 "$SOURCE/tests/preload/checks/terminal.py" cmttrace -o c.trace -- perl -e \
    '$| = 1; $SIG{INT} = sub { $n++ }; print "ready\n"; sleep 1 until $n; select undef, undef, undef, 0.2; print "$n times\n"; exit 6' >out
  grep -qE '^(\^C)?1 times$' out && grep -qx 'status 6' out && grep -q 'cmttrace: c.trace: .*; nothing was lost' out || complain "Ctrl-C: $(cat out)"
  /usr/bin/python3 "$SOURCE/tests/preload/checks/terminal.py" cmttrace -o i.trace -- perl -e '$| = 1; print "ready\n"; sleep 100' >out
  grep -qx 'status -2' out && grep -q 'cmttrace: i.trace: ' out || complain "Ctrl-C that ends: $(cat out)"
}

# It passes on a signal that it gets itself.
passed_on_signal() {
  mkfifo ready
  for signal in USR1 ALRM PROF IO PWR RTMIN RTMAX; do
    cmttrace -o got.trace -- perl -e '$SIG{$ARGV[0]} = sub { exit 9 }; open F, ">", "ready"; close F; sleep 1 while 1' \
      $signal 2>err &
    : <ready
    kill -$signal $!
    wait $! && status=0 || status=$?
    [ $status = 9 ] && grep -q ' got.trace: ' err || complain "SIG$signal: $status $(cat err)"
  done
}

# Standard streams that are closed stay so.
closed_streams() {
  for closed in '>&- 2>err' '<&- >&- 2>&-'; do
    rm -f n.trace
    eval "cmttrace -o n.trace -- perl -e 'exit 5' $closed" && status=0 || status=$?
    [ $status = 5 ] && [ "$(tail -n 1 n.trace)" = '#cmt end=complete' ] || complain "$closed: $status"
  done
}

# While it waits for the trace (of a program that is killed, which does not wait itself) only a signal that asks for it ends that.
signals_while_waiting() {
  cmttrace -o slow.cmt -- "${find_collector[@]}" -e 'my $n = collector("slow.cmt"); kill STOP => $n; open F, ">", "stopped"; print F $n; close F; kill KILL => $$' 2>err &
  until [ -s stopped ] && ! pgrep -P $! perl >/dev/null; do sleep 0.01; done
  for signal in WINCH CONT; do
    kill -$signal $! || complain "$signal while it waits: $(cat err)"
    while kill -0 $! && ! grep -q '^ShdPnd:.0*$' /proc/$!/status; do sleep 0.01; done
  done 2>/dev/null
  kill -CONT "$(cat stopped)"
  wait $! || [ $? = 137 ] && grep -q ' slow.cmt: .*; nothing was lost' err || complain "SIGWINCH while it waits: $(cat err)"
}

# On a terminal it says how much is left. Ctrl-C ends the wait, and the collector goes on. The test writes the collector's lines here, because the collector is stopped.
terminal_progress() {
  PRESS_AFTER=encoding: CMTTRACE_STATUS=left.status /usr/bin/python3 "$SOURCE/tests/preload/checks/terminal.py" cmttrace -o left.cmt -- "${find_collector[@]}" -e '
    my $n = collector("left.cmt");
    kill STOP => $n;
    open F, ">", "stopped"; print F $n; close F;
    open F, "<", "left.status"; my $line = <F>; close F;
    $line =~ s/begun=1/encoded=1400000 waiting=600000/;
    open F, ">>", "left.status"; print F $line; close F;
    kill KILL => $$' >out
  grep -q 'cmttrace: encoding: 1,400,000 of 2,000,000 events' out &&
    grep -q "cmttrace: left.cmt is not complete yet: the collector goes on writing it, and cmt's tools wait for that" out &&
    grep -qx 'status -9' out || complain "Ctrl-C while it waits: $(cat out)"
  kill -CONT "$(cat stopped)"
  trace2cmt --to=text left.cmt | tail -n 1 | grep -qx '#cmt end=complete' || complain 'Ctrl-C while it waits: the trace is not whole'
}

# Commands that cannot be started, and wrong use.
wrong_use() {
  status_of cmttrace ./nowhere
  [ "$status" = 127 ] && [ "$(cat err)" = "cmttrace: ./nowhere: No such file or directory" ] || complain "127: $(cat err)"
  mkdir -p folder
  echo old >kept.cmt
  status_of cmttrace -o kept.cmt ./folder
  [ "$status" = 126 ] && [ "$(cat kept.cmt)" = old ] || complain "a folder: $status $(cat err)"
  status_of cmttrace
  [ "$status" = 125 ] && grep -q 'a command to record is missing' err || complain "wrong use: $(cat err)"
  status_of cmttrace --follow=maybe true
  [ "$status" = 125 ] && grep -q -- '--follow: expected auto, yes or no' err || complain "--follow: $(cat err)"
}

static_and_sanitized() {
  if echo 'int main(void) { return 5; }' >static.c && cc -static static.c -o static.out 2>/dev/null; then
    status_of cmttrace ./static.out
    [ "$status" = 5 ] && grep -q 'linked statically' err || complain "a static program: $status $(cat err)"
  fi

  if echo 'int main(void) { return 5; }' >asan.c && cc -fsanitize=address asan.c -o asan.out 2>/dev/null; then
    status_of cmttrace ./asan.out
    [ "$status" = 5 ] && grep -q 'build it without -fsanitize=address$' err || complain "a program with a sanitizer: $status $(cat err)"
  fi
}

# An allocator in the program: cmttrace says so, and what can be done, before libcmttrace does.
allocator_inside() {
  printf '#include <stdlib.h>\n__attribute__((noinline)) void* je_malloc(size_t n) { return malloc(n); }\nint main(void) { free(je_malloc(5)); return 5; }\n' >inside.c
  if cc -O0 inside.c -o inside.out 2>/dev/null; then
    status_of cmttrace ./inside.out
    [ "$status" = 5 ] && grep -qx 'cmttrace: ./inside.out has an allocator inside (je_malloc): only what it asks of the C library is recorded; build it without' err ||
      complain "an allocator inside: $status $(cat err)"
  fi
  status_of cmttrace "$BUILD/tests/preload/own_malloc"
  grep -qx "cmttrace: $BUILD/tests/preload/own_malloc has a malloc of its own, which is recorded only if it calls the next malloc; if it does not, link its allocator as a shared library" err ||
    complain "a malloc of its own: $(cat err)"
}

other_rights() {
  if [ "$(id -u)" = 0 ]; then
    cp "$(command -v perl)" mine
    chown 65534 mine
    chmod 4755 mine
    status_of cmttrace ./mine -e 'exit 6'
    [ "$status" = 6 ] && grep -q "another user's rights" err && grep -q 'nothing was recorded' err || complain "set-user-ID: $status $(cat err)"
    chown 0 mine
    chmod 755 mine
    if setcap cap_net_raw+ep mine 2>/dev/null && command -v setpriv >/dev/null; then
      chmod 777 .
      status_of setpriv --reuid 65534 --clear-groups "$(command -v cmttrace)" ./mine -e 'exit 6'
      [ "$status" = 126 ] || { [ "$status" = 6 ] && grep -q "another user's rights" err; } || complain "capabilities: $status $(cat err)"
    else
      echo 'not tested: capabilities: setcap or setpriv is missing'
    fi
  else
    echo 'not tested: set-user-ID: that needs root'
  fi
}

# With --follow=no the command is recorded, even if a shell starts it, and its children are not.
not_followed() {
  mkdir -p n
  status_of cmttrace --follow=no -o 'n/%n.%p.trace' -- sh -c 'perl -e 1; perl -e 1'
  [ "$(ls n | sed 's/\..*//')" = sh ] || complain "--follow=no: $(ls n; cat err)"
}

# The options reach the tracer.
options() {
  status_of cmttrace --calls --usable --time -o u.trace -- perl -e 1
  grep '^malloc' u.trace | tail -n 1 | grep -q ' time=[0-9]* usable=[0-9]*$' || complain "--usable: $(grep '^malloc' u.trace | tail -n 1)"
  status_of cmttrace --max-events=7 --max-bytes=2M --max-time=1.5min --control=c -o m.trace -- sh -c \
    'echo $CMTTRACE_MAX_EVENTS $CMTTRACE_MAX_BYTES $CMTTRACE_MAX_TIME $CMTTRACE_CONTROL'
  [ "$(cat out)" = "7 2M 90000000000ns $PWD/c" ] || complain "limits: $(cat out err)"
  cmttrace --sample=1ms -o s.trace -- cat go 2>err &
  until_true "grep -q '^sample(' s.trace"
  : >go
  wait $! || complain "--sample: $? $(cat err)"
  status_of cmttrace --calls --paused -o p.trace -- perl -e 1
  [ "$(grep -v '^#' p.trace | tail -n 1)" = 'mark("cmt_pause")' ] || complain "--paused: $(tail -n 3 p.trace)"
  status_of cmttrace --stacks=20 -o c.trace -- sh -c 'echo $CMTTRACE_STACKS $CMTTRACE_STACK_FRAMES/$CMTTRACE_STACKS_OF_FREES'
  [ "$(cat out)" = '1 20/' ] || complain "--stacks=20: $(cat out err)"
  status_of cmttrace --stacks-of-frees -o d.trace -- sh -c 'echo $CMTTRACE_STACKS $CMTTRACE_STACK_FRAMES/$CMTTRACE_STACKS_OF_FREES'
  [ "$(cat out)" = '1 /1' ] || complain "--stacks-of-frees: $(cat out err)"
}

bad_options() {
  for bad in 0 4097 all; do
    status_of cmttrace --stacks=$bad true
    [ "$status" = 125 ] && grep -q "^cmttrace: --stacks: expected a number of frames from 1 to 4096, not '$bad'" err || complain "--stacks=$bad: $status $(cat err)"
  done
  for bad in 2K 4095 x 4X K; do
    status_of cmttrace --touched=$bad true
    [ "$status" = 125 ] && grep -q "^cmttrace: --touched: expected a size from 4K on, auto or off, not '$bad'" err || complain "--touched=$bad: $status $(cat err)"
  done
  for bad in --max-{bytes,events}={0,1X,18446744073709551616} --max-bytes=0K --max-time=0s --sample=0; do
    status_of cmttrace $bad true
    [ "$status" = 125 ] && grep -q -- "^cmttrace: ${bad%=*}: expected a [a-z]* above 0.*, not '${bad#*=}'" err || complain "$bad: $status $(cat err)"
  done
  for bad in --sample=often --sample=10 --max-time=soon; do
    status_of cmttrace $bad true
    [ "$status" = 125 ] && grep -q -- "^cmttrace: ${bad%=*}: expected a time such as 10ms, 1.5s or 2h, not '${bad#*=}'" err ||
      complain "$bad: $status $(cat err)"
  done
}

# A daemon: its first process ends at once, and the other one has not begun to record then.
leaves_a_daemon() {
  status_of cmttrace --follow=yes -o daemon.%p.cmt -- perl -e 'exit 0 if fork; select undef, undef, undef, 0.1; $x = "x" x 5e6'
  [ "$status" = 0 ] && [ "$(ls daemon.*.cmt | wc -l)" = 2 ] && grep -q '^cmttrace: 2 traces\|^cmttrace: 1 more trace' err ||
    complain "a daemon: exit $status, $(ls daemon.*) $(cat err)"
  for trace in daemon.*.cmt; do
    trace2cmt --verify $trace >verified || complain "a daemon: $(cat verified)"
  done
}

# A service may be started with SIGPIPE ignored. Its command gets it so, too.
ignored_signals() {
  local ignored='perl -ne "print hex(\$1) >> 12 & 1 if /^SigIgn:\t.*(.{8})\$/" /proc/self/status'
  for prepare in "trap '' PIPE" :; do
    [ "$(bash -c "$prepare; $ignored")" = "$(bash -c "$prepare; cmttrace -o i.cmt -- $ignored" 2>err)" ] || complain "$prepare: $(cat err)"
  done
  [ "$(bash -c "trap '' PIPE; cmttrace -o i.cmt -- $ignored" 2>err)" = 1 ] || complain "SIGPIPE is not ignored: $(cat err)"
}

# The rings of a program that was killed with its collector.
recover() {
  status_of cmttrace --recover=nowhere
  [ "$status" = 125 ] && grep -q '^cmttrace: nowhere: No such file or directory' err || complain "--recover: $status $(cat err)"
  status_of cmttrace --recover=rings true
  [ "$status" = 125 ] && grep -q -- '--recover runs no command' err || complain "--recover and a command: $status $(cat err)"
  # The collector is found from outside: what looks through /proc would fill the ring, of which nothing is saved meanwhile.
  mkfifo wanted made
  cmttrace --rings=rings -o r.cmt -- "$BUILD/tests/preload/marked" blocks <wanted >made 2>err &
  exec 3>wanted 4<made
  echo 500 >&3 && read -r said <&4
  writer=$("${find_collector[@]}" -e 'print collector("r.cmt")')
  kill -STOP "$writer"
  echo 500 >&3 && read -r said <&4
  kill -KILL "$writer" $(pgrep -P $!)
  wait $! && status=0 || status=$?
  exec 3>&- 4<&-
  [ "$status" = 137 ] && [ -s rings ] || complain "both killed: $status $(cat err)"
  status_of cmttrace --recover=rings -o back.trace
  [ "$status" = 0 ] && [ "$(grep -c '^malloc(60006)' back.trace)" = 1000 ] || complain "recovered: $status $(cat out err)"
}

behaviour "the lines at the end agree with the trace" lines_at_the_end
behaviour "short processes are left out and listed" short_processes
behaviour "names of functions that node compiles" runtime_compilers
behaviour "a second run with -o replaces the trace, the tracer alone does not" second_run
behaviour "a trace that is being written is not replaced" busy_output
behaviour "a trace behind a symbolic link is the link's target" symbolic_link
behaviour "the first process's last program has the name, others have their ids" exec_and_children
behaviour "a shell starts the recorded command again" quoted_command
behaviour "a recording leaves the trace of another one with the same name" same_name_at_once
behaviour "control characters are in no name of a trace" control_characters
behaviour "the name's ending chooses the form, and there is a name without -o" form_and_name
behaviour "relative names are of the launcher's folder" other_folder
behaviour "children are recorded" children
behaviour "a daemon is recorded and not waited for" daemon
behaviour "the files of a launcher that is killed are removed" killed
behaviour "a trace that is moved away meanwhile is reported" moved
behaviour "a trace that could not be written to the end is reported" unwritten
behaviour "an output that cannot be written is found before the command starts" unwritable_outputs
behaviour "a failed recording is no success" failed_recording
behaviour "the line says what is missing, and why" losses
behaviour "a process that could not be recorded is counted" refused_process
behaviour "a handler that leaves an event by longjmp costs that event at most" longjmp
behaviour "the signal that ends a command ends the launcher" ending_signal
behaviour "Ctrl-C reaches the command once, and the launcher waits" ctrl_c
behaviour "a signal to the launcher is passed on" passed_on_signal
behaviour "closed standard streams stay closed" closed_streams
behaviour "signals that ask for no end do not end the wait for the trace" signals_while_waiting
behaviour "a terminal shows how much is left, and Ctrl-C ends the wait" terminal_progress
behaviour "wrong use and commands that cannot be started have their own status" wrong_use
behaviour "static and sanitized programs run and are reported" static_and_sanitized
behaviour "an allocator inside of the program is reported" allocator_inside
behaviour "a program with another user's rights runs and is reported" other_rights
behaviour "--follow=no records the first process only" not_followed
behaviour "options reach the tracer" options
behaviour "values that an option cannot have are refused" bad_options
behaviour "a process that the command has just left behind is waited for" leaves_a_daemon
behaviour "signals that the launcher ignores are those that its command ignores" ignored_signals
behaviour "--recover writes what the rings of a killed program have" recover
[ -z "$(ls temporary)" ] || complain "left: $(ls temporary)"
exit $failed
