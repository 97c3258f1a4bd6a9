"""The kinds of programs of bench/kinds_of_programs: COMMANDS, lines NAME: COMMAND for sh, and the inputs that they read.

A command runs in an empty folder. $I is the folder of the inputs, $P that of the compiled programs. A kind whose first
program is not installed is left out. The small programs of bench/programs/kinds_*.c are further kinds.
"""
import json
import os
import random
import shutil

COMMANDS = r"""
ls: ls -la $I | awk '{print $1, $5, $9}' | grep -v ' \.'
ls_recursive: ls -R /usr/share/doc | head -n 5000 | md5sum
cat: cat $I/text | cat -n | tail -n 3
cp_mv_rm: cp -r $I here && mv here there && ls there && rm -r there && ls
mkdir_ln: mkdir -p a/b/c && ln -s b a/link && ln $I/a.c a/hard 2>/dev/null; ls a; readlink a/link; realpath a/link/c | tail -c 6
head_tail: head -n 20 $I/text; tail -c 100 $I/text
sort: sort $I/text | md5sum; sort -n -k2 -t, $I/table | head -n 3
sort_parallel: sort --parallel=4 -S 1M -T . $I/text $I/text $I/text | uniq -c | head -n 3
uniq: tr ' ' '\n' < $I/text | sort | uniq -c | sort -rn | head -n 5
cut_paste: cut -d, -f2 $I/table > x; cut -d, -f3 $I/table | paste x - | tail -n 3
join_comm: sort $I/text > x; head -n 50 x > y; join x y 2>/dev/null | wc -l; comm -12 x y | wc -l
wc: wc $I/text; wc -m < $I/table
sums: cd $I && md5sum a.c; sha1sum a.c; sha256sum data; sha512sum text; b2sum table; cksum json; sum text
od_base64: head -c 200 $I/data | od -An -tx1; base64 $I/data | base64 -d | cmp - $I/data; base32 $I/a.c | tail -n 1
seq_factor: seq 100000 100050 | factor; seq -w 1 10; numfmt --to=iec 123456789
tr_rev_tac: tr a-z A-Z < $I/text | rev | tac | md5sum
fold_fmt_pr: fold -w 40 $I/text | fmt -w 60 | expand | unexpand | nl | md5sum
split_csplit: split -l 100 $I/text part. && ls | wc -l; csplit -s $I/text 50 100; cat xx01 | wc -l
shuf: shuf --random-source=$I/data $I/text | md5sum
dd: dd if=$I/data of=out bs=1000 count=50 2>/dev/null; stat -c %s out; truncate -s 5000 out; du --apparent-size -b out
tee: seq 1000 | tee a b > c; cmp a b && cmp b c && echo same
date: date -u -d @1000000000; TZ=Europe/Paris date -d '2020-02-30' ; date -u -d 'next year' > /dev/null
env: env -i A=1 env; printenv HOME | tail -c 4; env -u HOME sh -c 'echo "$HOME."'
test_expr: test 3 -gt 2 && expr 5 \* 7; expr length abcdef; [ -e /nothing ] || echo none
timeout_kill: timeout 0.3 sleep 5; echo $?; timeout -s KILL 0.3 sleep 5; echo $?
nohup_nice: nohup nice -n 5 nice; nohup sh -c 'trap' 2>/dev/null; stdbuf -oL echo x
id_groups: id; groups; whoami; logname; nproc > /dev/null; arch; uname -s; tty
chmod_stat: touch f; chmod 640 f; stat -c '%a %n' f; umask 077; mkdir d; stat -c %a d; mkfifo p; stat -c %F p
install_touch: install -D -m 755 $I/a.c x/y/a.c; touch -d @5 x/y/a.c; stat -c '%Y %a' x/y/a.c
mktemp: mktemp -d -p . x.XXXX | wc -c; mktemp -u | wc -c
wrong_use: ls --nothing; cp; cat /nothing; sort -k; rm /nothing/here; exit 3
mkfifo_pipe: mkfifo p; (seq 1000 > p &) ; md5sum < p
tsort_ptx: echo 'a b b c a d d c' | tsort; head -n 5 $I/text | ptx -w 60 | md5sum; pathchk /x/y; dirname /a/b; basename /a/b.c .c
chroot: mkdir r; chroot r /bin/true; echo $?
runuser: runuser -u nobody -- id -un; su -s /bin/sh nobody -c 'id -u'; setpriv --reuid=65534 --clear-groups id -u
unshare: unshare -f -p --mount-proc sh -c 'echo $$; ps -e -o pid= | wc -l'; unshare -u hostname x; unshare -r id -u
nsenter: nsenter -t $$ -u -i -p -m echo entered
setsid: setsid -w sh -c 'echo session; exit 4'; echo $?; flock lock echo locked; setsid -f sleep 0.05
grep: grep -c e $I/text; grep -E '^[a-m]+ ' $I/text | wc -l; grep -P '\b(\w)\w*\1\b' $I/text | wc -l; grep -rl main $I | sort | wc -l
sed: sed -n '5,9p;s/a/A/gp' $I/text | md5sum; sed -E 's/(.)(.)/\2\1/g' $I/text | sha1sum; cp $I/text x; sed -i 1d x; wc -l x
mawk: mawk '{for (i = 1; i <= NF; i++) n[$i]++} END {for (w in n) s += n[w]; print s, length(n)}' $I/text
awk_pipes: awk 'BEGIN {while (("seq 10" | getline x) > 0) s += x; print s; print "b\na" | "sort"; close("sort"); exit system("exit 3")}'
find: find $I -name '*.c' -exec wc -c {} + | awk '{print $1}'; find /usr/share/doc -maxdepth 2 -type f | wc -l
xargs: seq 200 | xargs -P 4 -n 5 sh -c 'echo $(($1 + $5))' x | sort -n | md5sum; seq 3 | xargs -I@ echo @@; false | xargs false; echo $?
diff: diff $I/text $I/text2 | head -n 5; diff -u $I/text $I/text2 | tail -n +3 | md5sum; cmp $I/text $I/text2; sdiff -s $I/text $I/text2 | wc -l
patch: cp $I/text x; diff -u $I/text $I/text2 > p; patch -s x < p && cmp x $I/text2 && echo same; diff3 -m $I/text $I/text x | wc -l
ed: printf '1d\n$a\nlast line\n.\nw out\nq\n' | ed -s $I/text; tail -n 1 out
bc: echo 'scale=200; 4*a(1); 2^200' | bc -l
file: file -b $I/a.c $P/threads $I/data
less: less $I/a.c | md5sum
man: man -P cat ls | head -n 3 | wc -l; echo '.TH X 1
bold' | groff -man -Tascii | md5sum
column: head -n 20 $I/table | column -t -s, ; hexdump -C $I/data | head -n 3; cal 1 2000; look aa $I/text
ps: ps -o comm= -p $$; ps -e | wc -l > /dev/null; pgrep -x nothing-there; echo $?; top -b -n 1 > /dev/null; free > /dev/null
lsof: lsof -p $$ -a -d cwd -F n | tail -n 1 | tail -c 4; ss -l > /dev/null; ip link show lo | head -n 1
getent: getent passwd root; getent hosts localhost | wc -l; locale -k LC_TIME | md5sum; echo 'ä' | iconv -f UTF-8 -t LATIN1 | od -An -tx1
infocmp: TERM=xterm infocmp | wc -l; TERM=xterm tput cols; TERM=xterm tput bold | od -An -c
dash: dash -c 'f() { echo "$1"; return 3; }; f x; echo $?; set -- a b c; shift; echo $# $*; x=$(seq 5 | tail -n 1); echo $((x * 7))'
dash_traps: dash -c 'trap "echo usr1" USR1; trap "echo end" EXIT; kill -USR1 $$; (exit 4); echo $?; exit 6'
dash_jobs: dash -c 'sleep 0.1 & a=$!; sh -c "exit 7" & b=$!; wait $b; echo $?; wait $a; echo $?; wait; ulimit -n 50; ulimit -n; times > /dev/null'
bash_pipes: bash -c 'set -o pipefail; seq 10000 | grep 7 | sort -r | head -n 2; echo "${PIPESTATUS[@]:0:1}"; false | true; echo $?'
bash_jobs: bash -c 'set -m; sleep 0.2 & sleep 0.1 & jobs %1 | cut -c 1-12; wait -n; echo $?; kill %1; wait %1; echo $?; jobs'
bash_traps: bash -c 'trap "echo child" CHLD; trap "echo end; exit 9" EXIT; /bin/true; sleep 0.05; trap - CHLD; kill -TERM $BASHPID'
bash_documents: bash -c 'cat <<X
$((3 * 4)) $(echo inside)
X
cat <<< "a string"; diff <(seq 5) <(seq 6); read -r a b < <(echo 1 2); echo $b; exec 5<> file; echo x >&5; cat file'
bash_coprocess: bash -c 'coproc { while read -r x; do echo "got $x"; done; }; echo 1 >&${COPROC[1]}; read -r y <&${COPROC[0]}; echo $y'
bash_arrays: bash -c 'declare -A m; for i in {1..2000}; do m[k$i]=$i; done; echo ${#m[@]} ${m[k77]}; printf "%s\n" "${!m[@]}" | sort | md5sum; [[ abc =~ (b)(c) ]] && echo ${BASH_REMATCH[2]}'
bash_limits: bash -c 'ulimit -v 400000; ulimit -n 20; ulimit -c 0; ulimit -s 512; ls $I | wc -l; (ulimit -t 1; while :; do :; done); echo $?'
bash_descriptors: bash -c 'exec 3>a 4<$I/text 9>&1; ls -l /proc/self/fd | wc -l; echo x >&3; read -u 4 y; echo $y; exec 3>&- 9>&-; for f in /proc/$$/fd/*; do echo ${f##*/}; done'
bash_forks: bash -c 'for i in {1..60}; do (exit $((i % 3))) || x=$((x + 1)); done; echo $x; for i in {1..30}; do y=$(echo $i); done; echo $y'
bash_kill_self: bash -c 'kill -SEGV $$'
bash_recursion: bash -c 'f() { ((n++)); [ $n -lt 500 ] && f; }; f; echo $n; exec -a other bash -c "echo \$0"'
zsh: zsh -f -c 'a=(3 1 2); print ${(o)a}; print -l *(N) | wc -l; sleep 0.05 & wait; print $((2 ** 20)); zmodload zsh/mathfunc && print $((int(sqrt(81))))'
tclsh: echo 'set l {}; for {set i 0} {$i < 5000} {incr i} {lappend l [expr {$i * $i}]}; puts [llength [lsort -integer $l]]; puts [exec echo child]; exit 3' | tclsh
tmux: tmux -L k -f /dev/null new-session -d -x 80 -y 24 'echo inside; exec sleep 5'; sleep 0.3; tmux -L k list-sessions | cut -c 1-12; tmux -L k kill-server; sleep 0.3
script: script -q -e -c 'stty size; echo on a terminal; exit 6' log < /dev/null; echo $?
vim: vim -es -N -u NONE -c '%s/a/XX/g' -c 'sort' -c '5,$d' -c 'wq! out' $I/text; md5sum out
gcc: gcc -O2 -c $I/a.c -o a.o && nm a.o; gcc -O0 -g $I/a.c -o a && ./a 5
gcc_preprocess: echo '#include <stdio.h>' | gcc -E -P -x c - | md5sum; gcc -S -O3 $I/a.c -o - | md5sum; gcc -M $I/a.c | head -n 1 | tail -c 8
gcc_wrong: echo 'int main(void) { return x; }' | gcc -x c - -o x; gcc /nothing.c; echo $?
gcc_lto: gcc -O2 -flto -save-temps $I/a.c $I/part.c -DPART -o a && ./a 7; gcc -pipe -static $I/a.c -o s && ./s 3
g++: g++ -O2 -std=c++20 $I/b.cpp -o b -pthread && ./b
clang: clang -O2 $I/a.c -o a && ./a 4; clang -S -emit-llvm $I/a.c -o - | grep -c define
clang++: clang++ -O1 -std=c++17 -fsyntax-only $I/b.cpp; echo $?
rustc: cp $I/r.rs . && rustc -O r.rs && ./r
cargo: cargo init -q --vcs none --name small small && cd small && cargo build -q --offline && ./target/debug/small
as_ld: echo '.globl _start; _start: mov $60, %eax; mov $7, %edi; syscall' | as -o s.o - && ld s.o -o s && ./s; echo $?
binutils: nm $P/threads | wc -l; objdump -d $P/threads | wc -l; readelf -a $P/threads | wc -l; strings $P/threads | wc -l; size $P/threads | tail -n 1 | wc -w
ar_strip: gcc -c $I/a.c -o a.o; ar Drcs l.a a.o; ar t l.a; ranlib -D l.a; cp a.o b.o; strip b.o; objcopy -O binary a.o c; stat -c %s c; addr2line -e $P/threads 0; c++filt _ZSt4cout
gcov: gcc --coverage $I/a.c -o a && ./a 3 && gcov a-a.gcda | head -n 2
make: cp $I/Makefile . && make -s -j4 I=$I && ./app 3; make -s I=$I; make -n clean; make nothing; echo $?
cmake_ninja: cp $I/a.c $I/CMakeLists.txt . && cmake -G Ninja -S . -B o > /dev/null && ninja -C o > /dev/null && ./o/app 6 && ctest --test-dir o > /dev/null; echo $?
cmake_make: cp $I/a.c $I/CMakeLists.txt . && cmake -S . -B o > /dev/null && cmake --build o > /dev/null && ./o/app 2; cmake -E echo x
ccache: CCACHE_DIR=$PWD/c ccache gcc -c $I/a.c -o a.o; CCACHE_DIR=$PWD/c ccache gcc -c $I/a.c -o a.o; CCACHE_DIR=$PWD/c ccache -s | grep -c Hits
pkg-config: pkg-config --libs zlib; pkg-config --exists nothing-there; echo $?
gdb: gdb -q -batch -nx -ex 'break compute' -ex run -ex 'print n' -ex continue --args $P/a 5 2>/dev/null | grep '^\$1'
gdb_python: gdb -q -batch -nx -ex 'python import json; print(json.dumps([1, 2]))' -ex 'info line main' -ex 'print 6 * 7' $P/a
strace: strace -f -o log sh -c 'echo a; /bin/true; (exit 3)'; echo $?; grep -c exited log
strace_count: strace -c -o log $P/a 4; strace -e trace=none -e inject=getpid:retval=5 $P/a 3
ltrace: ltrace -o log -e puts $P/a 2; echo $?
valgrind: valgrind -q $P/a 3 2>/dev/null
perl: perl -e 'my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1..20000; print join(",", map { length $h{$_} } sort { $a <=> $b } keys %h), "\n"; printf "%.5f\n", atan2(1, 1) * 4'
perl_regex: perl -ne 'while (/(\w+)(?=\s)/g) { $n{lc $1}++ } END { print scalar keys %n, "\n"; print((sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0], "\n") }' $I/text
perl_fork: perl -e 'for my $i (1..20) { unless (fork) { exit $i } } my $s = 0; while (wait() > 0) { $s += $? >> 8 } print "$s\n"; print `echo in backticks`; system("exit 3"); print $? >> 8, "\n"; open my $p, "-|", "seq", 3; print <$p>; close $p'
perl_threads: perl -Mthreads -Mthreads::shared -e 'my $n : shared = 0; $_->join for map { threads->create(sub { lock $n; $n += $_[0] }, $_) } 1..10; print "$n\n"'
perl_modules: perl -MJSON::PP -MDigest::SHA=sha256_hex -MData::Dumper -MStorable=dclone -MList::Util=sum -MPOSIX -MCompress::Zlib -e '$Data::Dumper::Sortkeys = 1; print JSON::PP->new->canonical->encode(dclone({a => [1..5]})), sha256_hex("x"), Dumper({b => sum 1..9}), floor(3.7), length(compress("a" x 1000)), "\n"'
perl_signals: perl -MPOSIX -e '$SIG{ALRM} = sub { print "alarm\n" }; $SIG{CHLD} = sub { 1 while waitpid(-1, WNOHANG) > 0; print "child\n" }; alarm 1; fork or exit; select undef, undef, undef, 3; select undef, undef, undef, 3; die "at the end\n"'
python: python3 -c 'd = {i: str(i) * (i % 7) for i in range(50000)}; print(sum(map(len, d.values()))); print(sorted(d)[-3:]); x = 3 ** 5000; print(x % 1000007)'
python_json: python3 -c 'import json, os; d = json.load(open(os.environ["I"] + "/json")); print(len(json.dumps(d, indent=1)), d["rows"][3])'
python_re: python3 -c 'import re, os, collections; t = open(os.environ["I"] + "/text").read(); print(collections.Counter(re.findall(r"\b\w{4}\b", t)).most_common(3), len(re.sub("[aeiou]", "", t)))'
python_sqlite: python3 -c 'import sqlite3; c = sqlite3.connect("x.db"); c.execute("create table t (a int, b text)"); c.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(20000))); c.commit(); print(c.execute("select sum(a), max(b) from t").fetchone())'
python_threads: python3 -c 'import threading, queue; q = queue.Queue(); r = []; ts = [threading.Thread(target=lambda: [r.append(q.get()) for _ in range(100)]) for _ in range(8)]; [t.start() for t in ts]; [q.put(i) for i in range(800)]; [t.join() for t in ts]; print(sum(r))'
python_pool_fork: python3 -c 'import multiprocessing as m; p = m.get_context("fork").Pool(3); print(sum(p.map(abs, range(-1000, 0)))); p.close(); p.join()'
python_pool_spawn: python3 $I/spawn.py spawn
python_pool_forkserver: python3 $I/spawn.py forkserver
python_futures: python3 -c 'import concurrent.futures as f; e = f.ProcessPoolExecutor(2); print(sum(e.map(pow, range(50), [2] * 50))); e.shutdown(); t = f.ThreadPoolExecutor(4); print(list(t.map(len, ["a", "bb"])))'
python_asyncio: python3 $I/loop.py
python_subprocess: python3 -c 'import subprocess as s; print(s.run(["sort"], input=b"b\na\n", stdout=s.PIPE).stdout, s.call("exit 5", shell=True), s.run(["cat", "/nothing"], stderr=s.PIPE).returncode); p = s.Popen(["sleep", "9"]); p.terminate(); print(p.wait()); print(s.run(["true"], close_fds=True, start_new_session=True, user=65534).returncode)'
python_ctypes: python3 -c 'import ctypes; l = ctypes.CDLL(None); l.malloc.restype = ctypes.c_void_p; p = l.malloc(ctypes.c_size_t(1000)); ctypes.memset(p, 65, 5); print(ctypes.string_at(p, 5)); l.free(ctypes.c_void_p(p)); f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: ctypes.c_int.from_address(a).value - ctypes.c_int.from_address(b).value); x = (ctypes.c_int * 5)(5, 3, 1, 4, 2); l.qsort(x, 5, 4, f); print(list(x))'
python_mmap: python3 -c 'import mmap, os; m = mmap.mmap(-1, 100000); pid = os.fork(); m[:5] = b"child" if pid == 0 else m[:5]; os._exit(3) if pid == 0 else 0; print(os.waitpid(pid, 0)[1] >> 8, m[:5])'
python_signals: python3 -c 'import signal, time, os; signal.signal(signal.SIGUSR1, lambda *a: print("usr1")); os.kill(os.getpid(), signal.SIGUSR1); signal.setitimer(signal.ITIMER_REAL, 0.05); signal.signal(signal.SIGALRM, lambda *a: print("alarm")); print(signal.sigtimedwait([signal.SIGUSR2], 0.2)); os.kill(os.getpid(), signal.SIGINT); time.sleep(5)'
python_select: python3 -c 'import selectors, socket; a, b = socket.socketpair(); s = selectors.DefaultSelector(); s.register(b, selectors.EVENT_READ); a.send(b"x" * 1000); print([(k.fd, e) for k, e in s.select()], len(b.recv(2000)))'
python_zlib: python3 -c 'import zlib, bz2, lzma, gzip, hashlib, os; d = open(os.environ["I"] + "/data", "rb").read(); print([hashlib.sha256(f(d)).hexdigest()[:8] for f in (zlib.compress, bz2.compress, lzma.compress)], len(gzip.decompress(gzip.compress(d))))'
python_socketserver: python3 $I/server.py
python_http: python3 $I/web.py
python_xml: python3 -c 'import xml.etree.ElementTree as e, csv, os; r = e.fromstring("<a>" + "<b c=\"1\">x</b>" * 2000 + "</a>"); print(len(r), len(e.tostring(r))); print(sum(int(x[1]) for x in csv.reader(open(os.environ["I"] + "/table"))))'
python_tar_zip: python3 -c 'import tarfile, zipfile, os, io; t = tarfile.open("x.tar.gz", "w:gz"); [t.add(os.environ["I"] + "/" + n, n) for n in ("a.c", "text")]; t.close(); print(tarfile.open("x.tar.gz").getnames()); z = zipfile.ZipFile("x.zip", "w"); z.write(os.environ["I"] + "/text", "t"); z.close(); print(zipfile.ZipFile("x.zip").testzip())'
python_decimal: python3 -c 'import decimal, fractions, random, statistics, datetime, uuid; decimal.getcontext().prec = 300; print(decimal.Decimal(2).sqrt()); random.seed(4); print(random.sample(range(1000), 5), statistics.stdev(range(50)), fractions.Fraction(3, 9), datetime.date(2020, 2, 28) + datetime.timedelta(2), uuid.uuid5(uuid.NAMESPACE_DNS, "x"))'
python_pickle: python3 -c 'import pickle, copy, gc, weakref, tracemalloc; tracemalloc.start(); d = [{"a": list(range(i % 20))} for i in range(5000)]; print(len(pickle.dumps(d)), copy.deepcopy(d) == d, tracemalloc.get_traced_memory()[0] > 0); gc.collect()'
python_compile: python3 -X importtime -c 'import ast, dis, inspect, compileall' 2>/dev/null; cp $I/loop.py .; python3 -m py_compile loop.py; ls __pycache__ | wc -l; python3 -m dis loop.py | wc -l
python_recursion: printf 'def f(n):\n  return f(n + 1)\ntry:\n  f(0)\nexcept RecursionError as e:\n  print(e)\nraise SystemExit(7)\n' > r.py; python3 r.py
python_exception: python3 -c 'import sys; sys.stderr.write("x\n"); {}["missing"]'
python_abort: python3 -X faulthandler -c 'import os; os.abort()' 2>/dev/null
python_malloc: PYTHONMALLOC=malloc python3 -c 'print(sum(len(str(i)) for i in range(100000)))'; PYTHONMALLOC=debug python3 -c 'print(len([object() for _ in range(1000)]))'
python_pty: python3 -c 'import pty, os; print(os.waitstatus_to_exitcode(pty.spawn(["sh", "-c", "tty > /dev/null && echo on a terminal; exit 3"])))' < /dev/null
python_fork_threads: python3 -W ignore -c 'import threading, os, time; e = threading.Event(); [threading.Thread(target=e.wait, daemon=True).start() for _ in range(5)]; print([os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in [os.fork() or os._exit(i) for i in range(8)]])'
python_posix_spawn: python3 -c 'import os; print([os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {i}"], os.environ), 0)[1]) for i in range(8)])'
python_venv: python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
node: node -e 'const m = new Map(); for (let i = 0; i < 50000; i++) m.set("k" + i % 999, i); console.log(m.size, JSON.stringify([...m].slice(0, 3)))'
node_streams: node -e 'const z = require("zlib"), c = require("crypto"), f = require("fs"); const d = f.readFileSync(process.env.I + "/data"); console.log(c.createHash("sha256").update(z.gunzipSync(z.gzipSync(d))).digest("hex")); z.deflate(d, (e, r) => console.log(r.length)); f.promises.readdir(process.env.I).then(n => console.log(n.length))'
node_children: node -e 'const p = require("child_process"); console.log(p.execSync("seq 3").toString()); const c = p.spawn("sh", ["-c", "exit 4"]); c.on("exit", s => console.log(s)); const f = p.fork("-e", ["0"], {execArgv: ["-e", "process.send(5)"]}); f.on("message", m => { console.log(m); })' | sort
node_workers: node -e 'const w = require("worker_threads"); if (w.isMainThread) { for (let i = 0; i < 3; i++) new w.Worker("require(\"worker_threads\").parentPort.postMessage(7 * 6)", {eval: true}).on("message", m => console.log(m)); }'
node_error: node -e 'process.on("exit", c => console.log("exit", c)); setTimeout(() => { throw new Error("thrown") }, 10)' 2>/dev/null
npm: npm --version; cd $I && npm --offline pkg get name --prefix . ; echo $?
java: java -XX:+UseSerialGC -Xmx64m $I/J.java
java_threads: java -Xmx128m -Xshare:auto $I/T.java
sqlite3: sqlite3 x.db "create table t (a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, hex(i) from n; create index x on t (b); select count(*), max(b) from t; pragma integrity_check;"
sqlite3_script: printf '.mode csv\n.import %s t\nselect count(*), sum(c1) from t;\n.dump\n' $I/head_table | sqlite3 | md5sum; echo 'select wrong;' | sqlite3; echo $?
openssl: openssl dgst -sha256 < $I/data; openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -k x -in $I/text | md5sum; openssl prime 1000003; openssl version > /dev/null
openssl_keys: openssl genrsa -out k 2048 2>/dev/null && openssl req -new -x509 -key k -subj /CN=x -days 3 -out c && openssl verify -CAfile c c; openssl ec -help 2>&1 | head -n 1; openssl asn1parse -in c | wc -l
openssl_server: openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -subj /CN=localhost 2>/dev/null; openssl s_server -accept 0 -key k -cert c -www > log 2>&1 & sleep 0.7; kill $!; wait $! ; echo $?; grep -c ACCEPT log
gpg: mkdir -m 700 h; gpg -q --homedir h --batch --passphrase '' --quick-gen-key x@x default default never 2>/dev/null; gpg -q --homedir h --batch -e -r x@x < $I/text > e 2>/dev/null; gpg -q --homedir h --batch -d e 2>/dev/null | cmp - $I/text && echo same; gpgconf --homedir h --kill all; sleep 0.2; rm -rf h e
gpg_digest: gpg --print-md SHA256 $I/a.c 2>/dev/null | tail -c 20; gpg --version | head -n 1
ssh_keygen: ssh-keygen -q -t ed25519 -N '' -C x -f k && ssh-keygen -y -f k | cmp - k.pub && echo same; ssh -o BatchMode=yes -o ConnectTimeout=1 -p 1 127.0.0.1 true 2>/dev/null; echo $?; rm k k.pub
ssh_agent: ssh-agent sh -c 'ssh-add -l'; echo $?
git: git init -q -b main r && cd r && cp $I/a.c . && git add . && git -c user.name=x -c user.email=x@x commit -q -m one --date=@5 && git log --format='%s %T' && echo >> a.c && git diff --stat && git status -s && git gc -q && git fsck 2>/dev/null; rm -rf .git
git_clone: git init -q -b main r && git -C r -c user.name=x -c user.email=x@x commit -q --allow-empty -m one && git clone -q --no-local r s && git -C s rev-list --count HEAD; git -C s fetch -q; git -C s branch -a | wc -l; rm -rf r s
git_hooks: git init -q -b main r && cd r && echo 'echo in the hook; exit 1' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git -c user.name=x -c user.email=x@x commit --allow-empty -m one; echo $?; git bisect start; git config --list --local | wc -l; git blame x; rm -rf .git
curl: curl -s file://$I/text | md5sum; curl -s http://127.0.0.1:1/; echo $?; curl -s --data x nothing://; echo $?
jq: jq '.rows | map(.value) | add' $I/json; jq -r '.rows[] | select(.id % 97 == 0) | .name' $I/json | md5sum; echo '{' | jq .; echo $?
convert: convert -size 100x80 gradient:red-blue -rotate 30 -blur 0x2 x.ppm && tail -c +16 x.ppm | md5sum; convert x.ppm x.png && identify -format '%wx%h' x.png; rm x.png
xmllint: echo '<a><b>1</b><b>2</b></a>' | xmllint --xpath 'sum(//b)' -; echo '<a>' | xmllint - ; echo $?
tar: tar -C $I --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | md5sum; tar -C $I -czf x.tgz . && tar -tzf x.tgz | wc -l && mkdir o && tar -C o -xf x.tgz && diff -r o $I && rm x.tgz
gzip: gzip -nc $I/data | md5sum; gzip -c $I/text | zcat | cmp - $I/text && zgrep -c e $I/text; gzip -t $I/text; echo $?
xz: xz -c -T2 $I/data | md5sum; xz -9 -c $I/text | xz -dc | cmp - $I/text && echo same
zstd: zstd -q -T3 -c $I/data | zstd -dc | cmp - $I/data && zstd -q -19 -c $I/text | md5sum; zstd -q --train $I/part.* $I/a.c -o d; echo $?
bzip2: bzip2 -c $I/data | md5sum; bzip2 -c $I/text | bunzip2 | cmp - $I/text && echo same; bzip2 -t $I/text; echo $?
lz4: lz4 -q -c $I/data | lz4 -dc | cmp - $I/data && echo same
zip: cd $I && zip -q -X -r $HOME/x.zip a.c text && cd $HOME && unzip -q x.zip -d o && cmp o/text $I/text && echo same; unzip -l x.zip | wc -l; rm x.zip; rm -r o
dpkg: dpkg -l | wc -l > /dev/null; dpkg -s bash | head -n 2; dpkg --compare-versions 1.2 lt 1.10; echo $?; dpkg -S /bin/bash | head -n 1
dpkg-deb: mkdir -p p/DEBIAN && printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n' > p/DEBIAN/control && SOURCE_DATE_EPOCH=5 dpkg-deb --root-owner-group -b p x.deb && dpkg-deb -c x.deb | wc -l && dpkg-deb -f x.deb Version; rm x.deb
apt: apt-cache policy bash | head -n 1; apt-config dump | wc -l; apt-get -s install bash 2>/dev/null | tail -n 1 | cut -c 1-10
fakeroot: fakeroot sh -c 'touch f; chown 5:6 f; stat -c "%u %g" f'
postgres: runuser -u postgres -- true && P=$(ls -d /usr/lib/postgresql/*/bin) && chmod 755 . && mkdir d && chown postgres d && runuser -u postgres -- $P/initdb -A trust --no-sync -D $PWD/d > /dev/null && echo 'select 6 * 7 as answer; create table t as select generate_series(1, 1000) as a; select sum(a) from t;' | runuser -u postgres -- $P/postgres --single -D $PWD/d postgres | grep '= "'; rm -rf d
gcc_allocator: gcc -O1 $I/own_malloc.c -o own && ./own 2>/dev/null
gcc_nopie: gcc -no-pie -O1 -g $I/a.c -o a && ./a 5; gcc -m64 -O3 -fomit-frame-pointer -fcf-protection=full $I/a.c -o a && ./a 6
sanitized: gcc -fsanitize=address -g $I/a.c -o a && ./a 3 2>/dev/null; clang -fsanitize=thread $I/a.c -o t && ./t 4 2>/dev/null; gcc -fsanitize=undefined $I/a.c -o u && ./u 5
static: gcc -static -O1 $I/a.c -o a && ./a 5; ./a 6 | md5sum
setuid: cp $P/a s && chmod u+s s && chown nobody s && ./s 4; ping -c 1 -W 1 127.0.0.1 > /dev/null 2>&1; su nobody -s /bin/sh -c 'echo as another'
preloaded: gcc -shared -fPIC $I/part.c -o l.so && LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$PWD/l.so" $P/a 3; LD_PRELOAD= $P/a 4; LD_BIND_NOW=1 $P/a 5; LD_LIBRARY_PATH=. $P/a 6
ld_so: ldd $P/a | wc -l > /dev/null; /lib64/ld-linux-x86-64.so.2 $P/a 4; LD_DEBUG=statistics LD_DEBUG_OUTPUT=x $P/a 2; rm -f x.*; ldconfig -p | wc -l
malloc_tunables: MALLOC_ARENA_MAX=1 $P/a 3; GLIBC_TUNABLES=glibc.malloc.tcache_count=0 $P/a 4; MALLOC_PERTURB_=85 $P/a 5; MALLOC_TOP_PAD_=100000 $P/a 6
shebang: printf '#!/usr/bin/env -S awk -f\nBEGIN { print "by awk" }\n' > s && chmod +x s && ./s; printf 'echo without\n' > t && chmod +x t && ./t
m4: echo 'define(`f'"'"', `$1 + $1'"'"')f(3) eval(2 ** 10) syscmd(echo inside)' | m4
bison_flex: printf '%%%%\n[a-z]+ printf("<%%s>", yytext);\n%%%%\nint yywrap(void) { return 1; } int main(void) { yylex(); }\n' > l.l && flex l.l && gcc lex.yy.c -o l && echo 'ab 1 cd' | ./l
perf: perf stat -x, -o log $P/a 3; echo $?
logger: logger --no-act -s -t x a message 2>/dev/null; renice -n 1 $$ > /dev/null; ionice -c 3 echo idle; chrt -i 0 echo chrt; taskset -c 0 echo taskset; prlimit --nofile=30 sh -c 'ulimit -n'
"""

PROGRAMS = {
    "a.c": """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef PART
int part(int);
#else
static int part(int n) { return n * 3; }
#endif
int compute(int n) {
  char* rows[100];
  int sum = 0;
  for (int i = 0; i < 100; i++) sprintf(rows[i] = malloc(20 + i), "%d", i * n);
  for (int i = 0; i < 100; i++) sum += strlen(rows[i]), free(rows[i]);
  return sum + part(n);
}
int main(int argc, char** argv) {
  printf("%d\\n", compute(argc > 1 ? atoi(argv[1]) : 1));
  return argc > 2;
}
""",
    "part.c": "int part(int n) { return n * 7; }\n",
    "b.cpp": """#include <algorithm>
#include <coroutine>
#include <filesystem>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>
struct Task {
  struct promise_type {
    int value = 0;
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int v) { value = v; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
  ~Task() { handle.destroy(); }
};
static Task count() { for (int i = 0;; ++i) co_yield i; }
static int deep(int n) { if (n == 0) throw std::runtime_error("thrown"); std::string s(n, 'x'); return deep(n - 1) + s.size(); }
thread_local std::vector<int> mine(100, 3);
int main() {
  std::map<std::string, std::vector<int>> m;
  for (int i = 0; i < 3000; ++i) m[std::to_string(i % 77)].push_back(i);
  std::cout << m.size() << '\\n';
  for (int i = 0; i < 50; ++i) try { deep(30); } catch (const std::exception& e) { if (i == 0) std::cout << e.what() << '\\n'; }
  std::vector<std::future<int>> f;
  for (int i = 0; i < 6; ++i) f.push_back(std::async(std::launch::async, [i] { return i * static_cast<int>(mine.size()); }));
  int sum = 0;
  for (auto& x : f) sum += x.get();
  std::cout << sum << '\\n' << std::regex_replace("a1b22", std::regex("[0-9]+"), "#") << '\\n';
  Task t = count();
  for (int i = 0; i < 5; ++i) t.handle.resume();
  std::cout << t.handle.promise().value << ' ' << std::filesystem::exists("/etc/passwd") << '\\n';
  auto* aligned = new (std::align_val_t(256)) char[1000];
  ::operator delete[](aligned, std::align_val_t(256));
  try { std::vector<int> v; v.reserve(v.max_size()); } catch (const std::bad_alloc&) { std::cout << "bad_alloc\\n"; }
}
""",
    "own_malloc.c": """#include <stddef.h>
#include <stdio.h>
#include <string.h>
static char heap[4 << 20] __attribute__((aligned(16)));
static size_t used;
void* malloc(size_t n) { size_t at = used; used += (n + 31) / 16 * 16; memcpy(heap + at, &n, 8); return heap + at + 16; }
void free(void* p) { (void)p; }
void* calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }
void* realloc(void* p, size_t n) { void* q = malloc(n); if (p) memcpy(q, p, n); return q; }
int main(void) { char* p = malloc(100); strcpy(p, "own"); p = realloc(p, 200); puts(p); return 0; }
""",
    "r.rs": """use std::collections::HashMap;
use std::thread;
fn main() {
    let mut m: HashMap<u64, String> = HashMap::new();
    for i in 0..5000u64 { m.insert(i % 500, format!("{}", i)); }
    let hs: Vec<_> = (0..4u64).map(|t| thread::spawn(move || (0..1000u64).map(|i| vec![t; i as usize % 9].len()).sum::<usize>())).collect();
    println!("{} {}", m.len(), hs.into_iter().map(|h| h.join().unwrap()).sum::<usize>());
    let r = std::panic::catch_unwind(|| panic!("x"));
    println!("{}", r.is_err());
}
""",
    "J.java": """import java.util.*;
public class J {
  public static void main(String[] a) {
    Map<Integer, String> m = new TreeMap<>();
    for (int i = 0; i < 50000; i++) m.put(i % 997, "v" + i);
    System.out.println(m.size() + " " + m.get(5));
    System.exit(4);
  }
}
""",
    "T.java": """import java.util.concurrent.*;
import java.util.stream.*;
public class T {
  public static void main(String[] a) throws Exception {
    System.out.println(IntStream.range(0, 100000).parallel().mapToLong(i -> i % 7).sum());
    ExecutorService e = Executors.newFixedThreadPool(4);
    System.out.println(e.submit(() -> 42).get());
    e.shutdown();
    Process p = new ProcessBuilder("sh", "-c", "echo child; exit 3").inheritIO().start();
    System.out.println(p.waitFor());
    try { deep(0); } catch (StackOverflowError x) { System.out.println("overflow"); }
  }
  static int deep(int n) { return deep(n + 1) + 1; }
}
""",
    "spawn.py": """import multiprocessing
import sys


def square(x):
    return x * x


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(sum(pool.map(square, range(100))))
        pool.close()
        pool.join()
    queue = context.Queue()
    child = context.Process(target=queue.put, args=(5,))
    child.start()
    print(queue.get())
    child.join()
    print(child.exitcode)
""",
    "loop.py": """import asyncio


async def handle(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def ask(port, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode() + b"\\n")
    answer = await reader.readline()
    writer.close()
    return answer.decode().strip()


async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(*(ask(port, f"text {i}") for i in range(20))))
    child = await asyncio.create_subprocess_exec("sh", "-c", "echo child; exit 3", stdout=asyncio.subprocess.PIPE)
    print(await child.communicate(), child.returncode)
    print(await asyncio.get_running_loop().run_in_executor(None, sum, range(100)))
    try:
        await asyncio.wait_for(asyncio.sleep(9), 0.05)
    except asyncio.TimeoutError:
        print("timeout")


asyncio.run(main())
""",
    "server.py": """import os
import socket
import socketserver
import threading


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline()[::-1])


for kind in (socketserver.ThreadingTCPServer, socketserver.ForkingTCPServer):
    with kind(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        for i in range(5):
            with socket.create_connection(server.server_address) as client:
                client.sendall(b"hello %d\\n" % i)
                print(client.makefile().read().strip())
        server.shutdown()
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no child")
""",
    "web.py": """import http.server
import threading
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode() * 100)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
for i in range(10):
    print(len(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{i}").read()))
server.shutdown()
""",
    "Makefile": "app: a.o part.o\n\tgcc -o $@ $^\na.o: $(I)/a.c\n\tgcc -DPART -c -o $@ $<\npart.o: $(I)/part.c\n\tgcc -c -o $@ $<\n"
                "clean:\n\trm -f app *.o\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(small C)\nadd_executable(app a.c)\nenable_testing()\n"
                      "add_test(NAME app COMMAND app 3)\n",
    "package.json": '{"name": "small", "version": "1.0.0"}\n',
}


OPTIONAL = set("""ar bc bison cal cargo ccache clang clang++ cmake column convert curl ed fakeroot file flex gcov gdb getent git gpg
groff java jq less lsof ltrace lz4 m4 man ninja node npm openssl perf ping rustc runuser script sqlite3 ssh-agent ssh-keygen
strace tclsh tmux valgrind vim xmllint xz zip zsh zstd""".split())


def write_inputs(folder):
    """The same files each time."""
    chosen = random.Random(7)
    words = ["".join(chosen.choices("abcdefghijklmnop", k=chosen.randint(2, 9))) for _ in range(800)]
    lines = [" ".join(chosen.choices(words, k=8)) for _ in range(3000)]
    rows = [f"{i},{chosen.randint(0, 9999)},{chosen.choice(words)}" for i in range(2000)]
    files = dict(PROGRAMS, text="\n".join(lines) + "\n", table="\n".join(rows) + "\n",
                 text2="\n".join(line for i, line in enumerate(lines) if i % 50) + "\n",
                 head_table="c0,c1,c2\n" + "\n".join(rows) + "\n",
                 json=json.dumps({"rows": [{"id": i, "name": chosen.choice(words), "value": i * i} for i in range(3000)]}))
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "data").write_bytes(chosen.randbytes(50000) + bytes(100000) + chosen.randbytes(50000))


def commands():
    """(name, command) of each; a line without a name continues the command before it."""
    known = []
    for line in COMMANDS.strip().splitlines():
        name, colon, command = line.partition(": ")
        if colon and name.replace("_", "").replace("-", "").replace("+", "").isalnum() and name[0].islower() and command:
            known.append((name, command))
        else:
            known[-1] = (known[-1][0], known[-1][1] + "\n" + line)
    return known


def is_installed(command, path):
    words = set(command.replace(";", " ").replace("|", " ").replace("(", " ").split())
    return all(shutil.which(word, path=path) for word in words & OPTIONAL) and ("initdb" not in command or os.path.isdir("/usr/lib/postgresql"))
