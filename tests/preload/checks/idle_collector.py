#!/usr/bin/python3
"""A collector that reads nothing until the program has ended: the rings keep all records."""
import select

PROCESS = 4  # a pidfd (preload/protocol.h)
poll = select.poll()
poll.register(PROCESS, select.POLLIN)
poll.poll()
