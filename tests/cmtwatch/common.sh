# Functions that the tests of cmtwatch share; they source this file, which sources until_true. A background job opens its
# files later than the shell goes on. So a test waits only for a file that cannot exist yet: a fresh name, or one that it
# has just removed.

. "$SOURCE/tests/waiting.sh"

failed=0
complain() { echo "$*" >&2; failed=1; }

# status_of COMMAND...: leaves `status`, and the files out and err.
status_of() { status=0; "$@" >out 2>err </dev/null || status=$?; }

# hold SHARED_MB PARENT_MB CHILD_MB: starts two processes that hold memory (holder.py) until let_go; `parent` and
# `child` are their pids. Background jobs that run meanwhile have to close descriptor 9.
hold() {
  rm -f holder.go holder.pids
  mkfifo holder.go
  parent='' child=''
  "$SOURCE/tests/cmtwatch/holder.py" "$@" <holder.go >holder.pids &
  exec 9>holder.go
  until_true 'read -r parent child <holder.pids || ! kill -0 $!'
  [ -n "$child" ] || { echo "holder.py $* has ended" >&2; exit 1; }
}
let_go() { exec 9>&-; }

# May we read the memory of a process that we did not start from here? process_vm_readv(2), called by its number.
may_read() {  # may_read PID
  /usr/bin/python3 -c 'import ctypes, re, sys
pid = int(sys.argv[1])
with open(f"/proc/{pid}/maps") as file:
    begin = int(re.search(r"^([0-9a-f]+)-\S+ r", file.read(), re.MULTILINE).group(1), 16)
class Part(ctypes.Structure): _fields_ = [("at", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]
to = ctypes.create_string_buffer(8)
ours, theirs = Part(ctypes.cast(to, ctypes.c_void_p), 8), Part(begin, 8)
raise SystemExit(ctypes.CDLL(None).syscall(310, pid, ctypes.byref(ours), ctypes.c_ulong(1), ctypes.byref(theirs),
                                           ctypes.c_ulong(1), ctypes.c_ulong(0)) != 8)' "$1" 2>/dev/null
}

# ask DATABASE QUERY: prints the answer of SQLite, and waits while the recorder locks the file.
ask() { sqlite3 -cmd '.timeout 10000' "$1" "$2"; }

# moments DATABASE: prints how many it holds; 0 before it exists.
moments() { [ -s "$1" ] && ask "$1" 'select count(*) from tick' || echo 0; }

# whole DATABASE: complains if it is damaged.
whole() { [ "$(ask "$1" 'pragma integrity_check')" = ok ] || complain "$1 is damaged"; }

# made_vfork: makes ./vfork (vfork.c). Fails without a C compiler, or if the kernel does not let us compare two
# processes' memory (kcmp(2), called by its number).
made_vfork() {
  cc -w -o vfork "$SOURCE/tests/cmtwatch/vfork.c" 2>/dev/null && /usr/bin/python3 -c 'import ctypes, os, platform
number = {"x86_64": 312, "aarch64": 272}[platform.machine()]
raise SystemExit(ctypes.CDLL(None).syscall(number, os.getpid(), os.getpid(), 1, 0, 0) != 0)' 2>/dev/null
}

# A line of samples may be read long after it was written, so the time in it decides whether a sample was taken after a
# file was made. All in microseconds.
micros() { echo $((10#${1/./})); }  # micros SECONDS: with six decimals
# made_at FILE: rounded up, by more than a tick of the kernel.
made_at() { local at; at=$(stat -c %.6Y "$1"); echo $(($(micros "$at") + 10000)); }
# sample_time BEGIN LINE: sets `when`, if the line is one of a sample, of a cmtwatch that was begun then.
sample_time() { [[ $2 =~ ^\ *([0-9]+\.[0-9]{3})\ s\  ]] && when=$(($1 + 10#${BASH_REMATCH[1]/./} * 1000)); }
