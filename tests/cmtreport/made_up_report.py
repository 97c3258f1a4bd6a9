"""made_up_report.py NODES [REPLAY WATCH OVERHEAD]: prints a report of the schema cmt.report/1 with that many nodes, for
tests of the page and bench/report_page. Its numbers follow from a fixed seed; some names are hostile. REPLAY, WATCH and
OVERHEAD are reports of cmtreplay, cmtwatch and overhead to be part of it."""
import json
import random
import sys

HOSTILE = [
    "</script><script>window.ran = true</script>",
    "<img src=x onerror='window.ran = true'>",
    "operator<< <char>(std::ostream&, char const*)",
    "bidi\u202egnp.exe",
    "control\u0007\u001b[31m",
]


def tree(count, choose):
    names = HOSTILE + ["xmalloc"] + [f"space{i % 23}::Class{i % 211}::method{i}(int, char const*)" for i in range(max(8, min(count // 8, 4000)))]
    names += [f"load{i} (shop/part{i}.py:{i})" for i in range(1, 13)]
    frames = {"function": names, "short_name": [name.split("(")[0] if name.startswith("space") else "" for name in names], "libraries": ["cc1plus", "libc.so.6", "libstdc++.so.6", "<b>lib</b>.so"],
              "library": [choose.choice([0, 0, 0, 1, 2, 3]) for _ in names], "file": [choose.choice(["reader.cpp", "<i>parser</i>.cpp", ""]) for _ in names], "line": [choose.randrange(1, 900) for _ in names]}
    frames["python_functions"] = [number for number, name in enumerate(names) if ".py:" in name]
    parent, frame, depth = [0], [0], [0]
    while len(parent) < count:
        above = int(len(parent) * choose.random() ** 0.6)
        if depth[above] > 45:
            continue
        parent.append(above)
        depth.append(depth[above] + 1)
        frame.append(choose.randrange(len(names)))
    return frames, {"parent": parent, "frame": frame}


def deltas_of(count, moments, choose):
    measures = {}

    def add(measure, node, moment, value):
        columns = measures.setdefault(measure, {"node": [], "moment": [], "value": []})
        columns["node"].append(node)
        columns["moment"].append(moment)
        columns["value"].append(value)

    allocated, blocks, live, live_blocks = [0] * moments, [0] * moments, [0] * moments, [0] * moments
    held = {}
    for node in range(1, count):
        for moment in sorted(choose.sample(range(1, moments), min(moments - 1, choose.choice([1, 1, 2, 8])))):
            number = choose.randrange(1, 200)
            size = number * choose.choice([16, 24, 64, 400])
            add("allocated_bytes", node, moment, size)
            add("allocated_blocks", node, moment, number)
            allocated[moment] += size
            blocks[moment] += number
            if choose.random() < 0.4:
                add("temporary_blocks", node, moment, number // 2 + 1)
            if choose.random() < 0.1:
                add("other_thread_blocks", node, moment, number // 3 + 1)
            before = held.get(node, 0)
            change = size if choose.random() < 0.6 else -choose.randrange(0, before + 1)
            if change:
                add("live_bytes", node, moment, change)
                add("live_blocks", node, moment, change // 16 or 1)
                held[node] = before + change
                live[moment] += change
                live_blocks[moment] += change // 16 or 1
            if change > 0 and choose.random() < 0.1:
                add("leaked_bytes", node, moment, change)
                add("leaked_blocks", node, moment, number)

    # Between two moments as much more is live as the first change of each node.
    peaks = [0] * moments
    for node, moment, value in zip(*measures["live_bytes"].values()):
        if value > 0:
            add("interval_peak_bytes", node, moment, value)
            add("interval_peak_blocks", node, moment, 1)
            peaks[moment] += value

    def sums(changes):
        total, result = 0, []
        for change in changes:
            total += change
            result.append(total)
        return result

    before = [0] + sums(live)
    return measures, {"peak_bytes": [before[moment] + peaks[moment] for moment in range(moments)], "allocated_bytes": sums(allocated), "allocated_blocks": sums(blocks), "live_bytes": sums(live), "live_blocks": sums(live_blocks)}


def report(count, others):
    choose = random.Random(1)
    moments = min(512, max(8, count // 4))
    frames, nodes = tree(count, choose)
    measures, sums = deltas_of(count, moments, choose)
    events = [moment * 9007 for moment in range(moments)]
    times = [moment * 2_700_000 for moment in range(moments)]
    peak = max(range(moments), key=lambda moment: sums["peak_bytes"][moment])
    at_peak = {}
    for measure, moments_of_it in [("live_bytes", range(1, peak)), ("interval_peak_bytes", [peak])]:
        for node, moment, value in zip(*measures[measure].values()):
            if moment in moments_of_it:
                at_peak[node] = at_peak.get(node, 0) + value
    sizes = [8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384]
    ages = [0, 1, 2, 4, 8, 16, 64, 256, 1024, 65536, 1048576]
    bins = [choose.randrange(40) if choose.random() < 0.8 else 9000 + choose.randrange(9) for _ in range(30)]
    activity = [sorted(choose.sample(range(1, moments), min(moments - 1, 6))) for _ in range(3)]
    made = {
        "schema": "cmt.report/1", "name": "made-up.cmt", "program": HOSTILE[1], "command": "g++ -O2 " + HOSTILE[0], "pid": 4711, "start": None,
        "duration_ns": times[-1], "events": events[-1], "truncated": False, "defects": 0, "lost": {"is_known": True, "repairs": 0, "defects": 0, "unknown_ends": 0, "unknown_stack_blocks": 0, "marks": 0}, "has_stacks": True, "processes": [], "axis": "time",
        "threads": [{"thread": i, "name": name, "events": 1000 * i + 5, "allocated_bytes": 4096 * len(activity[i]) << i, "activity": [[moment, 4096 << i] for moment in activity[i]]} for i, name in enumerate(["main", "worker", HOSTILE[1]])] +
        [{"thread": None, "threads": 7, "name": "7 other threads", "events": 70, "allocated_bytes": 512, "activity": [[1, 512]]}],
        "findings": [
            {"kind": "leak", "text": f"12.3 MiB that {HOSTILE[0]} allocated are never freed", "figure": "12.3 MiB", "headline": f"{HOSTILE[1]} frees nothing", "urgent": True, "part": "code", "span": [1, moments - 2], "node": min(3, count - 1), "function": ""},
            {"kind": "temporary", "text": "41 % of all blocks are freed by the next event", "figure": "41 %", "headline": "are freed by the next event", "urgent": False, "part": "code", "span": None, "node": 1, "function": frames["function"][nodes["frame"][1]]},
            {"kind": "peak", "text": "xmalloc has 12 % of the peak", "figure": "12 %", "headline": "of the peak, in xmalloc", "urgent": False, "part": "code", "span": None, "node": None, "function": "xmalloc"},
            {"kind": "pins", "text": "87 % of what pins pages was allocated during load", "figure": "", "headline": "pages are pinned", "urgent": False, "part": "sizes", "span": None, "node": None},
        ],
        "moments": {"event": events, "time_ns": times, "position": times, **sums, "resident_bytes": [live * 5 // 4 + 300000 for live in sums["live_bytes"]],
                    "resident_live_bytes": sums["live_bytes"], "resident_position": None},
        "marks": [{"label": "load " + HOSTILE[1], "moment": moments / 5, "event": 1, "time_ns": 1}, {"label": "serve", "moment": moments / 2, "event": 2, "time_ns": 2}],
        "frames": frames, "nodes": nodes, "deltas": measures, "folded": {"share": 0.0001, "nodes": 12},
        "peak": {"event": events[peak], "time_ns": times[peak], "live_bytes": sum(at_peak.values()), "node": list(at_peak), "bytes": list(at_peak.values()), "blocks": [value // 16 for value in at_peak.values()]},
        "sizes": {"size_edges": sizes, "lifetime_edges": ages, "alive_at_end": [choose.randrange(500) for _ in sizes[1:]],
                  "cells": [[size, age, int(choose.random() ** 4 * 90000)] for size in range(len(sizes) - 1) for age in range(len(ages) - 1)]},
        "pages": None, "replay": None, "watch": None,
    }
    for key, path in zip(["replay", "watch", "pages"], others):
        with open(path, encoding="utf-8") as file:
            made[key] = json.load(file)
    # The address map has the times of this report.
    if made["pages"]:
        made["pages"]["address_map"] = {"bin_bytes": 65536, "moments": [
            {"event": event, "time_ns": time, "bins": sorted([bin, choose.randrange(1, 65536)] for bin in set(choose.sample(bins, 12)))}
            for event, time in list(zip(events, times))[1::max(1, moments // 120)]]}
    return made


print(json.dumps(report(int(sys.argv[1]), sys.argv[2:])))
