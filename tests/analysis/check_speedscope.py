"""Checks a file for speedscope by the rules of its file format, and prints its contents.

    check_speedscope.py FILE
"""
import gzip
import json
import sys

with open(sys.argv[1], "rb") as file:
    data = file.read()
if data[:2] == b"\x1f\x8b":
    data = gzip.decompress(data)
document = json.loads(data.decode("utf-8"))

assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
assert set(document) <= {"$schema", "name", "exporter", "activeProfileIndex", "shared", "profiles"}
assert set(document["shared"]) == {"frames"}
frames = document["shared"]["frames"]
for frame in frames:
    assert isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"}
    assert all(ord(c) >= 32 for text in frame.values() for c in text), "a control character"
assert 0 <= document["activeProfileIndex"] < len(document["profiles"])

for profile in document["profiles"]:
    assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
    assert profile["type"] == "sampled" and profile["startValue"] == 0
    assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")
    samples, weights = profile["samples"], profile["weights"]
    assert len(samples) == len(weights), "as many weights as samples"
    assert all(type(weight) is int and weight > 0 for weight in weights)
    assert all(type(index) is int and 0 <= index < len(frames) for sample in samples for index in sample)
    assert sum(weights) == profile["endValue"], "the weights end where the profile does"

print("name:", document["name"], "frames:", len(frames))
for frame in frames:
    print("frame:", frame["name"], "in", frame.get("file", "-"))
for profile in document["profiles"]:
    print(f"{profile['name']}, {profile['unit']}: {profile['endValue']}")
    for sample, weight in zip(profile["samples"], profile["weights"]):
        print(" ", ";".join(frames[index]["name"] for index in sample), weight)
