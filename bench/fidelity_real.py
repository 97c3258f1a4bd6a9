"""The real side of bench/fidelity: the memory of an allocator in a program that runs under it."""
import dataclasses
import functools
import os
import re
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass
class Sample:
    """`allocator`, `program`: resident bytes of the two; `other`: of all but the allocator, pages of files included. `high`: of all,
    the most since the sample before; 0: unknown."""
    calls: int
    us: int
    high: int
    allocator: int
    program: int
    other: int


def compile_sampler(folder):
    """The library that makes a program log its own smaps; see programs/own_maps.c."""
    path = folder + "/own_maps.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE + "/programs/own_maps.c", "-o", path], check=True)
    return path


@functools.lru_cache
def libraries_of(allocator, program):
    """File names of an allocator, and of the libraries that only it brings along: libjemalloc needs libstdc++."""
    return (allocator, *(loaded(program, allocator) - loaded(program, ""))) if allocator else ()


def loaded(program, preloaded):
    """The file names of what the loader would load for a program."""
    environment = {**os.environ, "LD_TRACE_LOADED_OBJECTS": "1", "LD_PRELOAD": preloaded}
    listed = subprocess.run([program], env=environment, stdout=subprocess.PIPE, text=True, check=False).stdout
    return {os.path.basename(name) for name in re.findall(r"(\S+) \(0x", listed)}


def read_samples(path, library):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [read_sample(text, library) for text in file.read().split("\n\n") if text.strip()]


def read_sample(text, library):
    head, smaps = text.lstrip("\n").split("\n", 1)
    _, calls, _, microseconds, _, high, _ = head.split()
    return Sample(int(calls), int(microseconds), int(high) * 1024, *resident_bytes(smaps, library))


def peak(samples):
    """Of the allocator. Between two samples it is the kernel's high-water mark less what else was resident at the one of them that
    had more of it: most programs only add to that."""
    between = [now.high - max(before.other, now.other) for before, now in zip(samples[:1] + samples, samples)]
    return max(*between, *(sample.allocator for sample in samples))


def resident_bytes(smaps, library):
    """Of the allocator, of the program, of all but the allocator: anonymous memory by the mapping that it is in."""
    allocator = program = total = end_before = bss = 0
    name_before = ""
    whose = None
    begun, begin_before = (0, 0, 0), -1
    for line in smaps.split("\n"):
        if line[:1].isupper():
            if line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
            if line.startswith("Anonymous:"):
                resident = int(line.split()[1]) * 1024
                if whose == "allocator":
                    allocator += max(0, resident - bss)
                    program += min(resident, bss)
                elif whose == "program":
                    program += resident
            continue
        if not line:
            continue
        words = line.split(None, 5)
        begin, end = (int(word, 16) for word in words[0].split("-"))
        name = words[5] if len(words) == 6 else ""
        # A mapping that grows between two reads of the kernel's text is listed twice, with the same begin.
        if begin == begin_before:
            allocator, program, total = begun
        begun, begin_before = (allocator, program, total), begin
        bss = 0
        if not name and begin == end_before and name_before.startswith("/") and whose_file(name_before, library) == "program":
            bss = bss_bytes(name_before)
        whose = "allocator" if name in ("", "[heap]") else whose_file(name, library)
        end_before, name_before = end, name
    return allocator, program, total - allocator


@functools.lru_cache
def bss_bytes(path):
    """What a library or program has behind its file's pages. What is mapped there beyond is somebody else's."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if not head.startswith(b"\x7fELF"):
                return 0
            file.seek(struct.unpack_from("<Q", head, 32)[0])
            headers = file.read(56 * struct.unpack_from("<H", head, 56)[0])
    except OSError:
        return 0
    loads = [struct.unpack_from("<IIQQQQQQ", headers, at) for at in range(0, len(headers), 56)]
    begin, file_bytes, bytes_ = max((load[3], load[5], load[6]) for load in loads if load[0] == 1)
    return max(0, -(-(begin + bytes_) // 4096) - -(-(begin + file_bytes) // 4096)) * 4096


def whose_file(name, library):
    return "allocator" if library and os.path.basename(name.strip()).startswith(library) else "program"
