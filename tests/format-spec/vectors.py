#!/usr/bin/python3
"""Checks that the documents, the vectors, the library and the second decoder agree. vectors_test.sh runs it."""
import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

source = Path(os.environ["SOURCE"])
vectors = source / "format-spec" / "vectors"
decoder_path = source / "python" / "cmt_trace"
sys.path.insert(0, str(decoder_path.parent))
import cmt_trace.__main__  # noqa: E402 (found by the line above)
from cmt_trace import layout  # noqa: E402

failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print(f"wrong: {what}")


def run(*command):
    done = subprocess.run(command, capture_output=True, cwd=vectors)
    return done.returncode, done.stdout, done.stderr.decode()


def second_decoder(*arguments):
    """As run() does, but in this process, which saves the time that Python takes to start."""
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    status, before = 0, os.getcwd()
    sys.argv = ["cmt_trace", *arguments]
    os.chdir(vectors)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cmt_trace.__main__.main()
    except SystemExit as end:
        status = end.code
    finally:
        os.chdir(before)
    return status, out.buffer.getvalue(), err.getvalue()


def raw_streams(path):
    """The parts of an encoding that are compared: block headers without the frames' sizes, and decompressed streams."""
    data = Path(path).read_bytes()
    header = layout.file_header(data)
    blocks = [layout.block_header(section) for section in layout.sections(data, header.size)
              if section.type == b"BLCK"]
    return header, [(b.first_event, b.events, b.next_tag, b.named_tag, b.thread, b.time, b.keyframe,
                     [(number, bytes(cursor.data)) for number, cursor in b.raw.items()]) for b in blocks]


def test_text_vectors():
    """text -> .cmt -> text is exact by either decoder, and the encoder's raw streams are the stored ones."""
    subprocess.run(["cp", "-r", str(vectors), "again"], check=True)
    subprocess.run([Path(os.environ["BUILD"]) / "tests/format-spec/make_vectors", "again"], check=True)
    for path in sorted(vectors.glob("*.text")):
        text, name = path.read_bytes(), path.stem
        if name == "sampled":  # has no text form: the decoder prints it, and its copy has the same streams
            check(run("trace2cmt", "-s", f"{name}.text")[2].endswith("text version 2; this reader knows version 1\n"), "text=2")
            new = Path(f"{name}.new.cmt").absolute()
            check(run("trace2cmt", "--strict", "-o", str(new), f"{name}.cmt")[0] == 0, f"{name}.cmt is copied by trace2cmt")
            check(second_decoder("--check", str(new))[1] == text, f"{name}.cmt is another one after a copy")
            check(raw_streams(f"again/{name}.cmt")[0] == raw_streams(new)[0], f"{name}: the copy has another header")
        else:
            check(run("trace2cmt", "-s", f"{name}.cmt")[1] == text, f"{name}.cmt to text by trace2cmt")
        status, out, err = second_decoder("--check", f"{name}.cmt")
        check(status == 0 and out == text, f"{name}.cmt to text by cmt_trace: {err}")
        check(raw_streams(f"again/{name}.cmt") == raw_streams(vectors / f"{name}.cmt"), f"{name}: other raw streams")
        if name == "sampled":
            continue
        if name in ("large", "times"):  # blocks on one another, times that go back: the reader of text mends them
            check(run("trace2cmt", "--strict", f"{name}.text")[0] == 1, f"{name}.text is contradictory")
            continue
        new = Path(f"{name}.new.cmt").absolute()
        check(run("trace2cmt", "--strict", "-o", str(new), f"{name}.text")[0] == 0, f"{name}.text to .cmt by trace2cmt")
        status, out, err = second_decoder("--check", str(new))
        check(status == 0 and out == text, f"{name}.text to .cmt by trace2cmt, to text by cmt_trace: {err}")


def test_damaged_vectors():
    """Both decoders report the same for files that are damaged or only look so. Only the first reads the legacy form."""
    for path in sorted(vectors.glob("*.cmt")):
        name = path.stem
        if path.with_suffix(".text").exists():
            continue
        error, decoded = path.with_suffix(".error"), path.with_suffix(".decoded")
        check(error.exists() or decoded.exists(), f"{name}.cmt has neither .error nor .decoded")
        expected = error.read_text().rstrip("\n") if error.exists() else ""
        for tool, (status, out, err) in (("trace2cmt", run("trace2cmt", "-s", f"{name}.cmt")),
                                         ("cmt_trace", second_decoder(f"{name}.cmt"))):
            if tool == "cmt_trace" and name.startswith("legacy"):
                continue
            first = err.split("\n")[0].removeprefix(f"{tool}: ")
            check(first == expected, f"{name}.cmt by {tool}: {first}")
            check(status == (0 if decoded.exists() else 1), f"{name}.cmt by {tool}: exit {status}")
            if decoded.exists():
                check(out == decoded.read_bytes(), f"{name}.cmt by {tool}: {out}")


def test_worked_bytes():
    """The encoder makes the bytes of the section "Worked bytes"."""
    text = (source / "format-spec/cmt.md").read_text().split("## Worked bytes")[1].split("\n## ")[0]
    parts = [re.findall(r"^    (?:([0-9a-f]{2}(?: {1,2}[0-9a-f]{2})*)(?:  .*)?|.*)$", part, re.M)
             for part in re.split(r"core stream is|address\s+stream", text)]
    documented = [bytes.fromhex("".join(lines)) for lines in parts[1:]]
    _, blocks = raw_streams("again/readme_6655.cmt")
    streams = dict(blocks[0][7])
    check(documented == [streams[1], streams[2]], f"worked bytes: {[d.hex(' ') for d in documented]}")


def test_kinds():
    """Every kind of kinds.h is in cmt.md with its value and its properties, and in text.md."""
    header = (source / "libcmt/include/cmt/kinds.h").read_text()
    document = (source / "format-spec/cmt.md").read_text()
    text = (source / "format-spec/text.md").read_text().split("## Calls")[1].split("\n## ")[0]
    listed = re.findall(r"^  X\((\w+), +(\d+), \"[^\"]*\", +([\w |]+)\)", header, re.M)
    kinds = {int(number): name for name, number, _ in listed}
    traits = {int(number): set(words.split(" | ")) for _, number, words in listed}
    table = document.split("## Kinds")[1].split("25, 26 and 33 are no kinds")[0]
    tabled = {int(value): name for value, name in re.findall(r"\| (\d+) \| (\w+) ", table)}
    check(tabled == kinds, "table of kinds in cmt.md")
    for trait, bit in re.findall(r"^  (cmt_\w+) = (\d+),?  ", header, re.M):
        word = trait.removeprefix("cmt_").replace("_", " ")
        row = re.search(rf"\| (\d+) \| \*{word}\*[^|]*\| ([^|]*) \|", document)
        check(row and row.group(1) == bit, f"the bit of {word}")
        numbers = [] if row.group(2) == "none" else row.group(2).split(", ")
        stated = {n for part in numbers for first, *last in [part.split(" to ")]
                  for n in range(int(first), int((last or [first])[0]) + 1)}
        actual = {n for n in kinds if trait in traits[n]}
        check(stated == actual, f"kinds that are called {word}: {sorted(stated ^ actual)}")
    named = set(re.findall(r"\w+", text))
    for name in kinds.values():
        known = name in named or name.replace("_nothrow", "").replace("_sized", "") in named
        check(known, f"{name} in text.md")


def test_limits():
    """The limits of coding.h and parser.h are in the documents."""
    numbers = {}
    for path in "libcmt/format/coding.h", "libcmt/text/parser.h":
        for name, value in re.findall(r"(\w+_limit) = ([^;]+);", (source / path).read_text()):
            numbers.setdefault(name, value)
    sentences = {  # the limit, and where the document says it
        "header_size_limit": r"without the CRC; at most (\S+) ",
        "section_header_limit": r"header size \| u32 \| at most (\S+) ",
        "metadata_limit": r"of metadata; at most (\S+) ", "metadata_key_limit": r"times; at most (\S+) and",
        "metadata_value_limit": r"times; at most \S+ and (\S+) bytes",
        "block_events_limit": r"in this block; at most (\S+) ",
        "streams_limit": r"of streams; at most (\S+) ", "stream_size_limit": r"body size \| u32 \| at most (\S+) ",
        "label_limit": r"length in bytes \(at most ([\d,]+)\)", "attribute_limit": r"Both are below (2\^62)",
        "traits_limit": r"sum of the kind's bits, at most (\S+) ",
        "further_operands_limit": r"beyond those of the properties, at most (\S+) ",
        "repair_kinds_limit": r"number of kinds of repairs \(at most (\S+)\)",
        "line_limit": r"line of more than (\S+ MiB)",
        "module_path_limit": r"path, build id \| at most (\S+) and", "build_id_limit": r"path, build id \| at most \S+ and (\S+) bytes",
        "pools_limit": r"number of their pools, at most (\S+) ", "pool_name_limit": r"times; at most (\S+) bytes",
        "pool_block_limit": r"are above 0 and below (2\^48)",
        "nodes_limit": r"nodes of stacks \| (2\^24);",
        "stack_time_limit": r"in ns as times are, below (2\^62)"}
    documents = "".join((source / "format-spec" / name).read_text() for name in ("cmt.md", "text.md"))
    for name, value in numbers.items():
        found = re.search(sentences.get(name, "(?!)"), documents)
        check(found, f"{name} is in neither document")
        if found:
            stated = found.group(1).strip(";.,").replace(",", "").replace(" MiB", " * 2^20").replace("^", "**")
            in_code = re.sub(r"std::uint64_t\{1\}", "1", value).replace("'", "")
            limit = eval(in_code)
            check(eval(stated) in (limit, limit + 1), f"{name}: {found.group(1)} in the document, {value}")


def test_quotations():
    """The sentences that the second decoder quotes are in the documents."""
    def plain(text):
        return re.sub(r"\s+", " ", re.sub(r"[`*|]", "", text))

    documents = plain("".join((source / "format-spec" / name).read_text() for name in ("cmt.md", "text.md")))
    count = 0
    for path in sorted(decoder_path.glob("*.py")):
        for comment in re.findall(r"(?:^ *# .*\n)+", path.read_text(), re.M):
            for quotation in re.findall(r'"([^"]*)"', re.sub(r"\n *# ", " ", comment)):
                count += 1
                check(plain(quotation) in documents, f"{path.name} quotes what is not in the documents: {quotation}")
    check(count > 40, f"only {count} quotations")


for test in test_text_vectors, test_damaged_vectors, test_worked_bytes, test_kinds, test_limits, test_quotations:
    test()
sys.exit(1 if failures else 0)
