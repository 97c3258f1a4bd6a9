/// The fields of the report cmt.explain/1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/places/mmap_threshold.h"
#include "cmtwatch/explain/explanation.h"
#include "toolkit/output/fields.h"

namespace cmt::watch::explain {

/// Blocks of one size that keep free memory from being given back.
struct KeeperRow {
  std::uint64_t chunk_bytes = 0, blocks = 0, live_bytes = 0, kept_bytes = 0;
};
template <class Visitor, output::DescribedAs<KeeperRow> Row>
void describe(Visitor& field, Row& row) {
  field("chunk_bytes", row.chunk_bytes, "the size that malloc has made of the request; from 65,536 on a power of two");
  field("blocks", row.blocks, "live blocks of this size");
  field("live_bytes", row.live_bytes, "their chunks");
  field("kept_bytes", row.kept_bytes, "free bytes on the pages that these blocks keep, shared among a page's blocks");
}

/// Blocks of one call site that keep free memory from being given back.
struct SiteRow {
  std::string site;
  std::uint64_t blocks = 0, live_bytes = 0, kept_bytes = 0;
};
template <class Visitor, output::DescribedAs<SiteRow> Row>
void describe(Visitor& field, Row& row) {
  field("site", row.site, "the innermost function that does not only hand memory on, with its file and line");
  field("blocks", row.blocks, "live blocks of this call, in malloc's heaps");
  field("live_bytes", row.live_bytes, "their chunks");
  field("kept_bytes", row.kept_bytes, "free bytes on the pages that these blocks keep, shared among a page's blocks");
}

/// Blocks that begin with a C++ object of one type.
struct TypeRow {
  std::string type;
  std::uint64_t blocks = 0, live_bytes = 0, kept_bytes = 0;
};
template <class Visitor, output::DescribedAs<TypeRow> Row>
void describe(Visitor& field, Row& row) {
  field("type", row.type, "of the object at the block's begin, by its table of virtual functions");
  field("blocks", row.blocks, "live blocks of this type, in malloc's heaps");
  field("live_bytes", row.live_bytes, "their chunks");
  field("kept_bytes", row.kept_bytes, "free bytes on the pages that these blocks keep, shared among a page's blocks");
}

/// The trace of --trace, beside the heap.
struct TraceRow {
  std::string file;
  bool matches = false;
  std::uint64_t live_blocks = 0, found_blocks = 0, kept_bytes = 0, known_kept_bytes = 0;
  std::optional<analysis::RaiseRow> threshold_raised_by;
};
template <class Visitor, output::DescribedAs<TraceRow> Row>
void describe(Visitor& field, Row& row) {
  field("file", row.file, "the trace");
  field("matches", row.matches, "false: it is of another process or of an earlier time, and no call is named");
  field("live_blocks", row.live_blocks, "at the trace's end");
  field("found_blocks", row.found_blocks, "of these, live in the process, too: the same address and size");
  field("kept_bytes", row.kept_bytes, "free bytes on pages that live blocks keep");
  field("known_kept_bytes", row.known_kept_bytes, "of these, the share of blocks that the trace has");
  field("threshold_raised_by", row.threshold_raised_by, "null: the threshold was not raised, or not in this trace");
}

/// Malloc's figures of one process.
struct MallocRow {
  std::string library, version;
  std::uint64_t arenas = 0, live_bytes = 0, live_blocks = 0, largest_block_bytes = 0, free_bytes = 0, system_bytes = 0,
                mapped_bytes = 0, mapped_blocks = 0, thread_cache_bytes = 0, fastbin_bytes = 0, trim_bytes = 0,
                kept_in_tops_bytes = 0, pinned_bytes = 0, partial_pages = 0, swapped_bytes = 0, resyncs = 0;
  std::optional<std::uint64_t> mmap_threshold_bytes, trim_threshold_bytes;
  bool is_exact = false;
  std::vector<KeeperRow> keepers;
  std::vector<TypeRow> keepers_by_type;
  std::vector<SiteRow> keepers_by_site;
  std::optional<TraceRow> trace;
};
template <class Visitor, output::DescribedAs<MallocRow> Row>
void describe(Visitor& field, Row& row) {
  field("library", row.library, "glibc");
  field("version", row.version, "of the library; empty: not known");
  field("arenas", row.arenas, "the main one among them");
  field("live_bytes", row.live_bytes,
        "chunks of live blocks, with headers and padding, resident or not; without mapped blocks");
  field("live_blocks", row.live_blocks, "these blocks");
  field("largest_block_bytes", row.largest_block_bytes, "of the largest live block, mapped or not");
  field("free_bytes", row.free_bytes, "free chunks, resident or not, as mallinfo2() counts them (fordblks)");
  field("system_bytes", row.system_bytes, "what malloc has from the kernel for its arenas (mallinfo2's arena)");
  field("mapped_bytes", row.mapped_bytes, "blocks with mappings of their own (mallinfo2's hblkhd)");
  field("mapped_blocks", row.mapped_blocks, "these blocks");
  field("thread_cache_bytes", row.thread_cache_bytes, "chunks in threads' caches, which mallinfo2() counts as in use");
  field("fastbin_bytes", row.fastbin_bytes, "chunks in fastbins, part of free_bytes");
  field("trim_bytes", row.trim_bytes, "resident pages that malloc_trim(0) would give back");
  field("kept_in_tops_bytes", row.kept_in_tops_bytes, "free resident pages at the ends of threads' arenas");
  field("pinned_bytes", row.pinned_bytes, "free resident memory on pages that live blocks keep");
  field("partial_pages", row.partial_pages, "these pages");
  field("swapped_bytes", row.swapped_bytes, "of the heaps, in swap: not read, and in no other figure");
  field("mmap_threshold_bytes", row.mmap_threshold_bytes, "blocks from this size on get mappings of their own");
  field("trim_threshold_bytes", row.trim_threshold_bytes, "the size of an arena's end from which glibc gives it back");
  field("resyncs", row.resyncs, "how often the walk lost the chain of chunks: the program changed it meanwhile");
  field("is_exact", row.is_exact, "all checks against malloc's own sums hold");
  field("keepers", row.keepers, "the sizes of blocks that keep most");
  field("keepers_by_type", row.keepers_by_type, "the C++ types whose objects keep most, where their names are known");
  field("keepers_by_site", row.keepers_by_site, "the calls whose blocks keep most; empty without --trace");
  field("trace", row.trace, "null: without --trace");
}

struct PartRow {
  std::string part, name;
  std::int64_t bytes = 0;
  bool is_likely = false;
  std::optional<std::uint64_t> live_bytes;
};
template <class Visitor, output::DescribedAs<PartRow> Row>
void describe(Visitor& field, Row& row) {
  field("part", row.part, "a word for scripts");
  field("name", row.name, "the same for people, or the owner");
  field("bytes", row.bytes, "resident; negative only for `changed`");
  field("is_likely", row.is_likely, "the owner is a guess");
  field("live_bytes", row.live_bytes, "of an owner's memory, what is in use, if it is known");
}

struct FileRow {
  std::string part, name;
  std::uint64_t resident_bytes = 0, copied_bytes = 0;
  std::optional<std::uint64_t> own_bytes, shared_bytes, dirty_bytes;
  std::uint64_t times_mapped = 1;
};
template <class Visitor, output::DescribedAs<FileRow> Row>
void describe(Visitor& field, Row& row) {
  field("part", row.part, "`files`, or `shared`");
  field("name", row.name, "the file, or the shared memory, as the kernel names it");
  field("resident_bytes", row.resident_bytes, "of all its mappings");
  field("copied_bytes", row.copied_bytes,
        "of resident_bytes, copies of pages that were written to: part `written_files`, not `files`");
  field("own_bytes", row.own_bytes, "on pages that are mapped once; null: of a core file, as the next ones");
  field("shared_bytes", row.shared_bytes, "on pages that other processes map too, or this one again");
  field("dirty_bytes", row.dirty_bytes, "copies, and written pages that the kernel has yet to store");
  field("times_mapped", row.times_mapped, "by this process: resident_bytes has the same pages as often");
}

/// malloc_trim(0), tried.
struct TrimRow {
  std::uint64_t predicted_bytes = 0;
  std::int64_t given_back_bytes = 0;
  std::uint64_t resident_bytes_before = 0, resident_bytes_after = 0;
  std::int64_t kept_ns = 0;
};
template <class Visitor, output::DescribedAs<TrimRow> Row>
void describe(Visitor& field, Row& row) {
  field("predicted_bytes", row.predicted_bytes, "as the part `trimmable`");
  field("given_back_bytes", row.given_back_bytes, "by how much the anonymous memory fell");
  field("resident_bytes_before", row.resident_bytes_before, "just before the call");
  field("resident_bytes_after", row.resident_bytes_after, "just after it");
  field("kept_ns", row.kept_ns, "for so long a thread made the call in place of its own work");
}

struct FigureRow {
  std::string name;
  std::uint64_t bytes = 0;
};
template <class Visitor, output::DescribedAs<FigureRow> Row>
void describe(Visitor& field, Row& row) {
  field("name", row.name, "as the allocator calls it");
  field("bytes", row.bytes, "its answer");
}

/// The answers of another malloc.
struct AllocatorRow {
  std::string allocator;
  std::uint64_t returnable_bytes = 0;
  std::string returning_call;
  std::int64_t kept_ns = 0;
  std::vector<FigureRow> figures;
};
template <class Visitor, output::DescribedAs<AllocatorRow> Row>
void describe(Visitor& field, Row& row) {
  field("allocator", row.allocator, "jemalloc or tcmalloc");
  field("returnable_bytes", row.returnable_bytes, "it would give them back now");
  field("returning_call", row.returning_call, "if the program made this call");
  field("kept_ns", row.kept_ns, "for so long a thread made the calls in place of its own work");
  field("figures", row.figures, "its own account");
}

struct ExplanationRow {
  std::optional<std::uint64_t> pid;
  std::string program;
  std::int64_t wall_ns = 0, stopped_ns = 0;
  std::uint64_t resident_bytes = 0, swapped_bytes = 0, page_table_bytes = 0, huge_page_bytes = 0, lazy_free_bytes = 0,
                hugetlb_bytes = 0, threads = 0;
  std::optional<std::uint64_t> huge_zero_bytes;
  std::vector<PartRow> parts;
  std::vector<FileRow> files;
  std::optional<MallocRow> malloc;
  std::optional<AllocatorRow> allocator;
  std::optional<TrimRow> trim;
  std::vector<std::string> advice, doubts;
};
template <class Visitor, output::DescribedAs<ExplanationRow> Row>
void describe(Visitor& field, Row& row) {
  field("pid", row.pid, "null: of a core file");
  field("program", row.program, "its name");
  field("wall_ns", row.wall_ns, "when it was looked at, since 1970");
  field("stopped_ns", row.stopped_ns, "for so long it was stopped; 0: it ran on");
  field("resident_bytes", row.resident_bytes, "the sum of Rss and of hugetlb_bytes in smaps, and of all parts");
  field("swapped_bytes", row.swapped_bytes, "in swap, not resident");
  field("page_table_bytes", row.page_table_bytes, "the kernel's tables for it (VmPTE), not resident");
  field("huge_page_bytes", row.huge_page_bytes, "of resident_bytes, in transparent huge pages");
  field("lazy_free_bytes", row.lazy_free_bytes,
        "of resident_bytes, given back with MADV_FREE: the kernel takes them when memory is short");
  field("hugetlb_bytes", row.hugetlb_bytes,
        "of resident_bytes, in reserved huge pages: the kernel's RSS has none of it");
  field("huge_zero_bytes", row.huge_zero_bytes,
        "of huge_page_bytes, pages of 4 KiB that hold only zeros; null: not counted (--huge-pages)");
  field("threads", row.threads, "at the begin of the look");
  field("parts", row.parts, "add up to resident_bytes");
  field("files", row.files, "the mapped files and shared memory, the largest first");
  field("malloc", row.malloc, "null: its malloc is not glibc's, or not known");
  field("allocator", row.allocator, "null: not asked (--call), or none that answers");
  field("trim", row.trim, "null: not tried (--trim), or another malloc than glibc's");
  field("advice", row.advice, "for people, the most important first");
  field("doubts", row.doubts, "why figures may be off");
}

struct ExplainReport {
  std::vector<ExplanationRow> processes;
};
template <class Visitor, output::DescribedAs<ExplainReport> Report>
void describe(Visitor& field, Report& report) {
  field("processes", report.processes, "one, or with --recursive those of the tree");
}

ExplanationRow row_of(const Explanation& explanation);

/// The sizes of blocks that keep most free memory, at most `most`.
std::vector<KeeperRow> keepers_of(const HeapFigures& figures, std::size_t most);

/// The call sites whose blocks keep most free memory, at most `most`. Empty without a trace that matches.
std::vector<SiteRow> sites_of(const Explanation& explanation, std::size_t most);

/// How well the trace and the heap agree, and the free that raised malloc's threshold; nullopt without a trace or heap.
std::optional<TraceRow> trace_row(const Explanation& explanation);

}  // namespace cmt::watch::explain
