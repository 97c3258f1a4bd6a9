# The line at the end names each program that was started and not recorded, and why. It believes no hostile line about one.

. "$SOURCE/tests/behaviours.sh"
unset CMTTRACE_WAIT CMTTRACE_STATUS
mkdir -p -m 1777 temporary
export TMPDIR=$PWD/temporary
record() { status=0; cmttrace --follow=yes -o "$PWD/traces/%n.%p.cmt" -- "$@" >out 2>err </dev/null || status=$?; }
mkdir -p -m 777 traces
has_line() { grep -qE "^cmttrace: .*; $1\$" err || complain "no '$1': $(cat err)"; }

can_link_statically() {
  [ -e static ] || { echo 'int main(void) { return 5; }' >static.c && cc -static static.c -o static 2>/dev/null; }
  [ -x static ] || { echo 'not tested: this compiler has no static libc'; return 1; }
}

# By each way to execute a program, and through scripts. Failed ones do not count.
static_programs() {
  can_link_statically || return 0
  printf '#!%s -x\n' "$PWD/static" >script
  printf '#!%s\n' "$PWD/script" >outer
  head -c 200 static >broken
  chmod 755 script outer broken
  ln -sf "$BUILD/tests/preload/describes_itself" describes_itself
  record sh -c './static; ./static; ./script; ./outer; ./nowhere; ./broken; ./describes_itself by_descriptor ./static; PATH=$PWD:$PATH static; exit 0'
  [ "$status" = 0 ] || complain "static children: $status"
  has_line '6 programs not recorded: ./static \(linked statically, 2 times\), .*'
  for program in ./outer ./script 'static'; do grep -qE " $program \(linked statically" err || complain "no $program: $(cat err)"; done
  ! grep '^cmttrace' err | grep -qE 'nothing was lost|nowhere|broken' || complain "static children: $(cat err)"
  record /usr/bin/python3 -c '
import os
os.posix_spawn("./static", ["x"], os.environ)
os.posix_spawnp("./static", ["x"], os.environ)
for program in "./none", "./broken":
    try: os.posix_spawn(program, ["x"], os.environ)
    except OSError: pass
if os.fork() == 0: os.execve(os.open("./static", os.O_RDONLY), ["x"], os.environ)
for i in range(3): os.wait()
os.execv("./static", ["x"])'
  [ "$status" = 5 ] || complain "python: $status"
  has_line "4 programs not recorded: ./static \\(linked statically, 3 times\\) and .*static \\(linked statically\\)"
  record ./static
  has_line '1 program not recorded: ./static \(linked statically\)'
}

other_reasons() {
  record sh -c 'env -i true; env -u LD_PRELOAD true; env LD_PRELOAD=libutil.so.1 true; exit 0'
  has_line '3 programs not recorded: true \(started without LD_PRELOAD, 3 times\)'
  # The C library starts the shell of these two by calls that nobody sees. perl has a system() of its own.
  record /usr/bin/python3 -c '
import ctypes, os, signal
os.system("exit 0")
os.unsetenv("LD_PRELOAD")
os.system("exit 0")
libc = ctypes.CDLL(None)
libc.system(None)
libc.popen.restype = ctypes.c_void_p
libc.pclose.argtypes = [ctypes.c_void_p]
for mode in b"r", b"wrong":
    stream = libc.popen(b"exit 0", mode)
    if stream: libc.pclose(stream)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.system("exit 0")'
  has_line '3 programs not recorded: /bin/sh \(started without LD_PRELOAD, 3 times\)'
  record perl -e 'system "true"; exec "true"'
  grep -q 'nothing was lost$' err || complain "nothing is missing: $(cat err)"
  if gcc -fsanitize=address -x c - -o sanitized 2>/dev/null <<<'int main(void) { return 5; }'; then
    record sh -c './sanitized; echo $?; (exec ./sanitized); exit 0'
    [ "$(cat out)" = 5 ] || complain "a sanitized child: $(cat out err)"
    has_line '2 programs not recorded: ./sanitized \(a sanitizer, 2 times\)'
    record ./sanitized
    [ "$status" = 5 ] || complain "sanitized: $status"
    has_line '1 program not recorded: ./sanitized \(a sanitizer\)'
  fi
  # --follow=no: children are not to be recorded.
  status=0; cmttrace --follow=no -o traces/n.cmt -- sh -c 'env -i true; true' 2>err || status=$?
  grep -q 'nothing was lost$' err || complain "--follow=no: $(cat err)"
}

full_table() {
  record /usr/bin/python3 -c '
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
try:
    while True: os.memfd_create("x")
except OSError: pass
if os.fork() == 0:
    blocks = [bytes(i) for i in range(2000)]
    os._exit(3)
print(os.wait()[1])'
  [ "$status" = 125 ] && [ "$(cat out)" = 768 ] || complain "a full table: $status $(cat out)"
  has_line '1 program not recorded: python3[.0-9]* \(Too many open files\)'
}

other_rights() {
  [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo 'not tested: other users: that needs root and setpriv'; return 0; }
  chmod 755 . && cp /bin/true theirs && chown 65534 theirs && chmod 4755 theirs
  record sh -c './theirs; setpriv --no-new-privs ./theirs; exit 0'
  has_line '1 program not recorded: ./theirs \(other rights\)'
  # A child that changes its user is recorded, and counted although its file is not opened.
  record setpriv --reuid 65534 --clear-groups perl -e 'push @x, "x" x $_ for 1..500'
  has_line '1 trace of another user not read, and counted as its collector reports'
  grep -q '1 more trace: ' err || complain "another user's trace: $(cat err)"
  # Nobody else finds the file, or may write to it.
  record sh -c 'file=${CMTTRACE_STATUS#-}; folder=${file%/*}
    setpriv --reuid 65534 --clear-groups env -u LD_PRELOAD ls "$folder" && echo listed
    setpriv --reuid 65534 --clear-groups env -u LD_PRELOAD touch "$folder/x" && echo created'
  [ ! -s out ] || complain "the status file: $(cat out)"
}

# Lines that a recorded process appends itself.
hostile_lines() {
  echo 'secret words' >secret
  printf '#cmt secret\n' >traces/perl.9.cmt
  ln -sf "$PWD/secret" traces/perl.8.cmt
  mkfifo traces/perl.7.cmt 2>/dev/null || true
  record perl -e '
    open F, ">>", $ENV{CMTTRACE_STATUS} =~ s/^-//r or die;
    my ($secret, $folder) = @ARGV;
    print F "pid=1 start_ns=1 begun=1 path=$secret\n", "pid=1 start_ns=2 begun=1 path=$folder/../secret\n";
    print F "pid=$_ start_ns=1 begun=1 path=$folder/perl.$_.cmt\n" for 7, 8;
    print F "pid=1 not_recorded=static path=\e[2Jx\n", "x" x 1000000, "\n", "\0" x 1000' "$PWD/secret" "$PWD/traces"  # the last line has no end
  [ "$status" = 125 ] || complain "hostile lines: $status"
  ! grep -qE "secret words|$(printf '\033')" err || complain "hostile lines were printed: $(cat err)"
  [ "$(grep -c 'not read, because it is no regular file with a single name$' err)" = 2 ] || complain "a link and a FIFO: $(cat err)"
  has_line '2 traces with another name not looked at; 1 program not recorded: \?\[2Jx \(linked statically\)'
}

# A child that neither sees the folder of its trace nor the launcher's file is counted by its parent's collector, once.
# Children that are recorded are not counted.
other_root() {
  [ "$(id -u)" = 0 ] || { echo 'skipped: only root may call chroot'; return 0; }
  cat >other_root.c <<'END'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void* volatile block;
int main(void) {
  block = malloc(100);
  if (fork() == 0) return block = malloc(30), 0;
  wait(NULL);
  if (chroot("root")) return 3;
  if (fork() == 0) {
    block = malloc(30);
    if (fork() == 0) return block = malloc(30), 0;
    return wait(NULL), 0;
  }
  return wait(NULL), 0;
}
END
  gcc -O0 -o other_root other_root.c
  mkdir -p root
  record ./other_root
  [ "$status" = 125 ] || complain "status $status"
  has_line '1 forked process not recorded, nor children of these: standard error has the reason'
  [ "$(grep -c '^libcmttrace: cannot create ' err)" = 1 ] || complain "$(cat err)"
}

# The loader finds libc there, but not the library. The launcher's file has no name there either. A program that is not
# there is not counted.
programs_of_other_root() {
  [ "$(id -u)" = 0 ] || { echo 'skipped: only root may call chroot'; return 0; }
  mkdir -p root/bin
  for file in /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*'); do
    mkdir -p "root${file%/*}" && cp -L "$file" "root$file"
  done
  record chroot root /bin/sh -c 'exit 5'
  [ "$status" = 5 ] || complain "status $status"
  has_line '1 program not recorded: executed in another root folder, where libcmttrace.so is not'
  record chroot root /bin/none
  grep -q 'nothing was lost$' err || complain "a program that is not there: $(cat err)"
  mkdir -p "root$PWD/temporary" && mount --bind temporary "root$PWD/temporary" 2>/dev/null || { echo 'not tested: no mounts'; return 0; }
  record chroot root /bin/sh -c 'exit 5'
  umount "root$PWD/temporary"
  has_line '1 program not recorded: /bin/sh \(its root folder has no libcmttrace.so\)'
}

pauses() {
  record "$BUILD/tests/preload/marked" inside
  [ "$status" = 0 ] || complain "status $status"
  has_line '1 pause in which no calls were recorded'
  status=0; cmttrace --max-events=1 -o limited.cmt -- "$BUILD/tests/preload/marked" inside >out 2>err || status=$?
  grep -q 'stopped by --max-events' err && ! grep -q ' pause' err || complain "a pause after the limit: $status $(cat err)"
}

behaviour "programs that are linked statically are named" static_programs
behaviour "programs that are not recorded for other reasons are named" other_reasons
behaviour "a process without a free descriptor is named" full_table
behaviour "programs with other rights are named, and no other user writes to the launcher" other_rights
behaviour "forked processes in another root are counted" other_root
behaviour "programs in another root are counted" programs_of_other_root
behaviour "pauses are counted" pauses
behaviour "hostile lines open nothing and print nothing" hostile_lines
[ -z "$(ls temporary)" ] || complain "left: $(ls temporary)"
exit $failed
