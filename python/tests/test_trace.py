"""Tests of cmt_trace, on the vectors of the format."""
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from itertools import islice
from pathlib import Path
from unittest import mock

source = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(source / "python"))
import cmt_trace  # noqa: E402 (found by the line above)

vectors = source / "format-spec" / "vectors"


def read(path, **options):
    """The events that the trace yields, and its error or None."""
    events = []
    try:
        for event in cmt_trace.Trace(path, **options):
            events.append(event)
    except cmt_trace.FormatError as error:
        return events, error
    return events, None


class WholeFiles(unittest.TestCase):
    def test_the_figures_are_those_of_the_encoder(self):
        whole = [path for path in vectors.glob("*.cmt") if path.with_suffix(".text").exists() and path.stem != "sampled"]
        self.assertGreater(len(whole), 20)
        for path in whole:
            with self.subTest(path.stem):
                events, error = read(path, check=True)
                totals = cmt_trace.Trace(path).totals
                live = cmt_trace.live_blocks(events)
                self.assertIsNone(error)
                self.assertEqual(len(events), totals["events"])
                self.assertEqual(sum(event.refused() for event in events), totals["refused"])
                self.assertEqual(len(live), totals["live blocks"])
                self.assertEqual(sum(event.bytes() for event in live.values()) % 2**64, totals["live bytes"])

    def test_iterations_are_independent(self):
        trace = cmt_trace.Trace(vectors / "stacks_in_blocks.cmt")
        for one, other in zip(trace, trace):
            self.assertEqual(one, other)
        stacks = [trace.stack(event) for event in list(trace)]
        next(iter(trace))
        self.assertEqual([trace.stack(event) for event in list(trace)], stacks)

    def test_metadata_and_events(self):
        trace = cmt_trace.Trace(vectors / "header.cmt")
        text = (vectors / "header.text").read_text()
        for key, value in re.findall(r"^#cmt (\w+)=([\w.-]+)$", text, re.M):
            if key not in ("text", "end"):
                self.assertEqual(trace.metadata[key], value)
        names = {event.name for event in cmt_trace.Trace(vectors / "kinds.cmt")}
        self.assertLessEqual({"malloc", "operator_new_array_nothrow", "posix_memalign", "free"}, names)
        self.assertIsNone(trace.sampling_interval)

    def test_live_blocks_at_a_place(self):
        trace = cmt_trace.Trace(vectors / "readme_6655.cmt")
        self.assertEqual([len(cmt_trace.live_blocks(islice(trace, n))) for n in range(4)], [0, 1, 1, 0])

    def test_a_stack_has_its_names_and_its_cut(self):
        trace = cmt_trace.Trace(vectors / "stack_names.cmt")
        frames = [frame for event in trace for frame in trace.stack(event)]
        text = (vectors / "stack_names.text").read_text()
        named = set(re.findall(r"^#name \d+ function=(\w+)", text, re.M))
        self.assertLessEqual(named, {frame.function for frame in frames})
        lines = {int(line) for line in re.findall(r"^#name .* line=(\d+)$", text, re.M)}
        self.assertLessEqual(lines, {frame.line for frame in frames})
        cut = [frame for path in ("stacks", "stack_names") for trace in [cmt_trace.Trace(vectors / f"{path}.cmt")]
               for event in trace for frame in trace.stack(event) if frame.cut]
        self.assertTrue(all(frame.function is None for frame in cut))

    def test_the_version_is_that_of_cmt(self):
        version = re.search(r"^project\(cmt VERSION ([\d.]+)", (source / "CMakeLists.txt").read_text(), re.M).group(1)
        self.assertIn(f'version = "{version}"', (source / "python/pyproject.toml").read_text())


class DamagedFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "damaged.cmt"

    def test_a_file_cut_at_each_length_gives_what_is_whole_and_an_error(self):
        data = (vectors / "blocks.cmt").read_bytes()
        whole, _ = read(vectors / "blocks.cmt")
        counts = set()
        for size in range(0, len(data), 7):
            self.path.write_bytes(data[:size])
            events, error = read(self.path)
            self.assertEqual(events, whole[:len(events)])
            self.assertIsNotNone(error)
            self.assertLessEqual(error.offset, size)
            self.assertEqual(error.path, str(self.path))
            counts.add(len(events))
        self.assertGreater(len(counts), 2)
        self.assertEqual(max(counts), len(whole))
        self.assertIsInstance(error, cmt_trace.CutOff)
        self.assertIsNone(cmt_trace.Trace(self.path).totals)

    def test_a_flipped_byte_is_reported_with_its_place(self):
        data = bytearray((vectors / "blocks.cmt").read_bytes())
        whole, _ = read(vectors / "blocks.cmt")
        last = data.rindex(b"BLCK")
        data[last + 14] ^= 1
        self.path.write_bytes(data)
        events, error = read(self.path)
        self.assertEqual(events, whole[:len(events)])
        self.assertGreater(len(events), 0)
        self.assertGreater(error.offset, last)
        self.assertIn("damaged.cmt: offset 0x", str(error))
        self.assertIn("the checksum of a section is wrong", str(error))

    def test_the_errors_are_those_of_the_vectors(self):
        for path in vectors.glob("bad_core*.cmt"):
            with self.subTest(path.stem):
                self.assertEqual(str(read(path)[1]), f"{path.parent}/" + path.with_suffix(".error").read_text().strip())

    def test_other_files(self):
        self.path.write_text("malloc(8) = 1000<1>\n")
        self.assertIn("not a .cmt file", str(read(self.path)[1]))
        with self.assertRaises(FileNotFoundError):
            cmt_trace.Trace(self.path.with_name("none.cmt"))

    def test_without_zstd_the_error_says_what_is_missing(self):
        with mock.patch("cmt_trace.layout.zstandard", None), mock.patch("cmt_trace.layout.libzstd", None):
            with self.assertRaisesRegex(ImportError, "needs the library libzstd.so.1 or the module zstandard"):
                list(cmt_trace.Trace(vectors / "readme_8.cmt"))


class SampledTraces(unittest.TestCase):
    def test_are_refused_unless_asked_for(self):
        with self.assertRaisesRegex(cmt_trace.FormatError, r"sampled\.cmt: offset 0x8: .*sampled=True"):
            cmt_trace.Trace(vectors / "sampled.cmt")

    def test_weights_follow_the_interval(self):
        trace = cmt_trace.Trace(vectors / "sampled.cmt", sampled=True)
        self.assertEqual(trace.sampling_interval, 524288)
        interval, risen = 524288, 0
        for event in trace:
            if event.name == "sampling_interval":
                interval, risen = event.size, risen + 1
            elif event.tag:
                probability = 1 - math.exp(-event.bytes() / interval)
                self.assertAlmostEqual(event.weight(), 1 / probability)
                self.assertGreater(event.weight(2 * interval), event.weight())
            else:
                self.assertEqual(event.weight(), 0)
        self.assertGreater(risen, 0)
        self.assertEqual(trace.totals["samples lost"], 3)

    def test_a_trace_of_all_blocks_has_weights_of_1(self):
        self.assertEqual([event.weight() for event in cmt_trace.Trace(vectors / "readme_6655.cmt")], [1, 1, 0])


class Command(unittest.TestCase):
    def status(self, *words):
        done = subprocess.run([sys.executable, "-m", "cmt_trace", *words], cwd=source / "python", capture_output=True, check=False)
        return done.returncode

    def test_wrong_use_and_bad_input_have_statuses_of_their_own(self):
        self.assertEqual(self.status(str(vectors / "kinds.cmt")), 0)
        self.assertEqual(self.status(), 2)
        self.assertEqual(self.status("--other", str(vectors / "kinds.cmt")), 2)
        self.assertEqual(self.status(str(vectors / "none.cmt")), 1)

    def test_a_closed_pipe_ends_it_quietly(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([sys.executable, "-m", "cmt_trace", str(vectors / "kinds.cmt")], cwd=source / "python", check=False,
                              stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))


class Tables(unittest.TestCase):
    def test_a_row_for_each_event(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        for name in "kinds", "large", "times", "pools", "stacks", "empty":
            events, _ = read(vectors / f"{name}.cmt")
            frame = cmt_trace.data_frame(events)
            self.assertEqual(list(frame.kind), [event.name for event in events])
            self.assertEqual(list(frame.bytes), [event.bytes() for event in events])
            self.assertEqual([None if pandas.isna(time) else time for time in frame.time], [event.time for event in events])


if __name__ == "__main__":
    unittest.main()
