"""A program with tests, for the gate of projects' CI. A planted copy has one more object: see the line of `planted`."""
import json
import re

planted = False


class Node:
    def __init__(self, name):
        self.name = name
        self.me = self  # garbage for the collector


def parse_line(line):
    return {part.strip(): Node(part) for part in re.split("[,;]", line)}


def summary(nodes):
    more = object() if planted else None
    return json.dumps({"names": sorted(nodes), "more": more is not None})
