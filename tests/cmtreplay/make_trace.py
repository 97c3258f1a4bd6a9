"""make_trace.py EVENTS [SEED]: writes a trace with every kind of event. Addresses are made up, and tags rise."""
import random
import sys

ALLOCATIONS = [
    "malloc({size})", "malloc({size})", "malloc({size})", "calloc({count}, {size})", "aligned_alloc({align}, {size})",
    "memalign({align}, {size})", "posix_memalign({align}, {size})", "valloc({size})", "pvalloc({size})",
    "operator new({size})", "operator new({size}, align={align})", "operator new[]({size}, nothrow)",
]
FREES = ["free({old})", "free({old})", "free_sized({old}, 16)", "operator delete({old})", "operator delete[]({old}, 16)"]
OTHERS = [
    "thread_start() thread=1", "thread_exit() thread=1", 'thread_name("worker 1") thread=1', 'mark("a phase")',
    "sample(40960)", "malloc(9999999999999999) = 0", "free(0)", "malloc(0) = 0", "free(<1>)",
]


def size_of(dice):
    return 0 if dice.random() < 0.01 else int(2 ** dice.uniform(0, 11 if dice.random() < 0.99 else 19))


def main():
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    live, tag = [], 1

    def block():
        nonlocal tag
        tag += 1
        live.append(tag)
        return f"{tag << 21:x}<{tag}>"

    def taken():
        place = dice.randrange(max(0, len(live) - 100), len(live))
        old = live.pop(place)
        return f"{old << 21:x}<{old}>"

    for _ in range(int(sys.argv[1])):
        choice = dice.random()
        if choice < 0.02:
            print(dice.choice(OTHERS))
        elif choice < 0.5 or not live:
            call = dice.choice(ALLOCATIONS)
            size = size_of(dice)
            call = call.format(size=size, count=dice.randrange(1, 5), align=2 ** dice.randrange(4, 9))
            print(f"{call} = {block()}")
        elif choice < 0.94:
            print(dice.choice(FREES).format(old=taken()))
        elif choice < 0.97:
            old = taken()
            print(f"realloc({old}, {size_of(dice) + 1}) = {block()}")
        elif choice < 0.98:
            print(f"realloc({taken()}, 0) = 0")
        elif choice < 0.99:
            old = taken()
            print(f"reallocarray({old}, {dice.randrange(1, 9)}, {size_of(dice) + 1}) = {block()}")
        else:
            print(f"realloc(0, {size_of(dice) + 1}) = {block()}")


main()
