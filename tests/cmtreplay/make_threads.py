"""make_threads.py EVENTS [THREADS [SEED]]: writes a trace of threads that free and resize each other's blocks. Threads start
and end on the way. At most THREADS live at once, and the first one never ends."""
import random
import sys


def main():
    events, at_once = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4
    dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    threads, next_thread = [0], 1
    live, tag = [], 0
    print("thread_start() thread=0")
    for number in range(events - 1):
        if number % 50 == 0 and len(threads) < at_once:
            threads.append(next_thread)
            print(f"thread_start() thread={next_thread}")
            next_thread += 1
            continue
        if number % 1000 == 999 and len(threads) > 1:
            print(f"thread_exit() thread={threads.pop(dice.randrange(1, len(threads)))}")
            continue
        where = f"thread={dice.choice(threads)}"
        choice = dice.random()
        size = int(2 ** dice.uniform(0, 12))
        if choice < 0.5 or not live:
            tag += 1
            live.append(tag)
            call = dice.choice([f"malloc({size})", f"malloc({size})", f"calloc(2, {size})", f"memalign(64, {size})"])
            print(f"{call} = {tag << 13:x}<{tag}> {where}")
            continue
        old = live.pop(dice.randrange(max(0, len(live) - 200), len(live)))
        name = f"{old << 13:x}<{old}>"
        if choice < 0.6:
            tag += 1
            live.append(tag)
            print(f"realloc({name}, {size}) = {tag << 13:x}<{tag}> {where}")
        elif choice < 0.62:
            live.append(old)
            print(f"free(0) {where}")
        else:
            print(f"free({name}) {where}")


main()
