"""Reads a profile in the form of profile.proto and prints it as text, for the tests: a decoder of its own.

    read_pprof.py FILE.pb.gz            everything
    read_pprof.py --totals FILE.pb.gz   the sums of the samples alone
"""
import gzip
import sys


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def fields(data):
    """The fields of a message by number: integers and bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a field ends behind its message"
        else:
            raise ValueError(f"field {number} has wire type {kind}")
        found.setdefault(number, []).append(value)
    return found


def packed(data):
    numbers, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers


class Profile:
    def __init__(self, data):
        top = fields(data)
        self.texts = [text.decode("utf-8") for text in top[6]]
        assert self.texts[0] == "", "the first text is not empty"
        self.types = [self.value_type(each) for each in top[1]]
        self.functions = self.by_id(top.get(5, []))
        self.mappings = self.by_id(top.get(3, []))
        self.locations = self.by_id(top.get(4, []))
        self.samples = [fields(each) for each in top.get(2, [])]
        self.top = top

    def one(self, message, number):
        values = message.get(number, [0])
        assert len(values) == 1, "a field twice"
        return values[0]

    def text(self, message, number):
        return self.texts[self.one(message, number)]

    def value_type(self, data):
        message = fields(data)
        return f"{self.text(message, 1)}/{self.text(message, 2)}"

    def by_id(self, messages):
        found = {}
        for message in map(fields, messages):
            number = self.one(message, 1)
            assert number != 0 and number not in found, "a number is 0 or given twice"
            found[number] = message
        return found

    def values(self, sample):
        values = packed(self.one(sample, 2))
        assert len(values) == len(self.types), "a sample has other values than the types say"
        return values

    def totals(self):
        return [sum(column) for column in zip(*map(self.values, self.samples))]

    def line(self, data):
        message = fields(data)
        function = self.functions[self.one(message, 1)]
        place = self.text(function, 4) and f" {self.text(function, 4)}:{self.one(message, 2)}"
        return self.text(function, 2) + place

    def print(self):
        print("types:", *self.types)
        print("default:", self.text(self.top, 14))
        print("period:", self.value_type(self.top[11][0]), self.one(self.top, 12))
        print("time:", self.one(self.top, 9), self.one(self.top, 10))
        for comment in self.top.get(13, []):
            print("comment:", self.texts[comment])
        for number, mapping in self.mappings.items():
            known = "".join("-+"[self.one(mapping, flag)] for flag in (7, 8, 9, 10))
            print(f"mapping {number}: {self.one(mapping, 2):x}-{self.one(mapping, 3):x} {self.text(mapping, 5)}"
                  f" id={self.text(mapping, 6)} {known}")
        for number, location in self.locations.items():
            lines = "; ".join(map(self.line, location.get(4, [])))
            assert self.one(location, 2) == 0 or self.one(location, 2) in self.mappings, "no such mapping"
            print(f"location {number}: {self.one(location, 2)} {self.one(location, 3):x} {lines}".rstrip())
        for sample in self.samples:
            path = packed(self.one(sample, 1))
            assert all(each in self.locations for each in path), "no such location"
            print("sample:", *self.values(sample), "at", *path)


arguments = sys.argv[1:]
with gzip.open(arguments[-1]) as file:
    profile = Profile(file.read())
if arguments[0] == "--totals":
    print(*profile.totals())
else:
    profile.print()
