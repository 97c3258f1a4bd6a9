"""Plays a program that hands over what it should not, to the socket that CMTTRACE_SHARED names. Prints nothing and fails
if the collector takes it."""

import array
import fcntl
import mmap
import os
import socket
import struct

SEALS = 1033  # F_ADD_SEALS
SHRINK = 2  # F_SEAL_SHRINK


def hand_over(message, descriptors):
    """Sends a message, and returns whether it is taken."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(os.environ["CMTTRACE_SHARED"])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    try:
        connection.sendmsg([message], rights)
        return connection.recv(1) != b""
    except (BrokenPipeError, ConnectionResetError):
        return False


def memory(content, is_sealed):
    descriptor = os.memfd_create("forged", 2)
    os.write(descriptor, content)
    if is_sealed:
        fcntl.fcntl(descriptor, SEALS, SHRINK)
    return descriptor


def hash_of(variables):
    """The sum of preload/hand_over.h."""
    total = 0xCBF29CE484222325
    for name in variables:
        value = os.environ.get(name)
        for text in ("=" if value is not None else "", value or ""):
            for byte in os.fsencode(text):
                total = (total ^ byte) * 0x100000001B3 % 2**64
            total = total * 0x100000001B3 % 2**64
    return total


def main():
    variables = os.environ["SETTINGS"].split()
    process = os.pidfd_open(os.getpid())
    outputs = os.open("/dev/null", os.O_WRONLY)
    good = struct.pack("=8sQII", os.fsencode(os.environ["MAGIC"]), hash_of(variables), os.getpid(), 1)
    forged = os.fsencode(os.environ["MAGIC"]).ljust(64 * 1024, b"\xff")
    cases = {
        "no message": (b"", []),
        "a short message": (good[:9], []),
        "a long message": (good * 9, []),
        "no descriptors": (good, []),
        "too many descriptors": (good, [process] * 50),
        "another process": (struct.pack("=8sQII", good[:8], hash_of(variables), os.getppid(), 1), [memory(forged, True), process, outputs]),
        "more outputs than there are": (struct.pack("=8sQII", good[:8], hash_of(variables), os.getpid(), 9), [memory(forged, True), process, outputs]),
        "memory that may shrink": (good, [memory(forged, False), process, outputs]),
        "memory that is too small": (good, [memory(b"x", True), process, outputs]),
        "forged memory": (good, [memory(forged, True), process, outputs]),
        "no memory at all": (good, [outputs, process, outputs]),
    }
    for name, (message, descriptors) in cases.items():
        if hand_over(message, descriptors):
            raise SystemExit(f"{name}: was taken")


main()
