#!/usr/bin/python3
"""Threads that count in a file, as long as they may run.

    counter.py FILE

Prints its pid when it begins; lives until it is killed.
"""

import os
import sys
import threading

file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)


def count(place):
    turns = 0
    while True:
        turns += 1
        os.pwrite(file, b"%019d\n" % turns, 20 * place)


os.write(1, b"%d\n" % os.getpid())
threading.Thread(target=count, args=(1,), daemon=True).start()
count(0)
