# Other tests source this file. It writes every_kind.trace, with events of every kind. `write_many EVENTS` writes many.trace.
cat >every_kind.trace <<'END'
#cmt text=1
#cmt program="app, \"deep\""
malloc(8) = 1000<7> time=10 usable=24
free(900<3>) time=11
calloc(3, 16) = 2000<8> thread=2 time=12
posix_memalign(64, 128) = 3000<9> time=13
operator new(40, align=32) = 4000<10> time=14
realloc(1000<7>, 16) = 1100<11> time=20
malloc(0) = 5000<12>
free(0)
malloc(18446744073709551615) = 0
calloc(18446744073709551615, 2) = 0
realloc(2000<8>, 99999999999) = 0
realloc(0, 5) = 6000<13>
realloc(800<2>, 6) = 6100<14>
mark("a, \"b\"\r\nc\xff")
mark("")
sample(4096)
thread_name("worker, 2") thread=2
free(2000<8>) thread=2 time=30
realloc(6000<13>, 0) = 0
malloc(4294967296) = 7000000<15>
operator delete(4000<10>, 40, align=32) time=44
thread_exit() thread=2
#cmt end=complete
END
write_many() {
  python3 - "$1" >many.trace <<'END'
import random, sys
random.seed(7)
live, tag, time, address = [], 0, 0, 0x1000
for _ in range(int(sys.argv[1])):
    time += random.randrange(2000)
    if live and random.random() < 0.49:
        i = random.randrange(len(live))
        live[i], live[-1] = live[-1], live[i]
        print("free(%x<%d>) time=%d" % (*live.pop(), time))
    else:
        tag += 1
        size = int(2 ** random.uniform(0, 16))
        address += 70000
        live.append((address, tag))
        print("malloc(%d) = %x<%d> thread=%d time=%d" % (size, address, tag, tag % 3 + 1, time))
END
}
