// Writes an explanation as text, as one line, and as JSON.
#include "cmtwatch/explain/explain_report.h"

#include <algorithm>
#include <utility>

#include "cmtwatch/explain/explain_fields.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::watch::explain {
namespace {

using output::with_commas;

std::string size_text(std::uint64_t bytes, const ExplainForm& form) {
  return form.bytes ? std::to_string(bytes) : output::bytes_text(bytes);
}

std::string size_text(std::int64_t bytes, const ExplainForm& form) {
  const auto size = static_cast<std::uint64_t>(bytes < 0 ? -bytes : bytes);
  return (bytes < 0 ? "-" : "") + size_text(size, form);
}

/// A paragraph with lines of at most `width` columns. The first begins with "- ", and the others with blanks.
std::string item_text(const std::string& text, std::size_t width) {
  std::string lines = "-", line;
  std::size_t column = 1;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (column + 1 + word.size() > width && column > 2) {
      lines += "\n ";
      column = 1;
    }
    lines += " " + word;
    column += 1 + word.size();
    begin = end + 1;
  }
  return lines + "\n";
}

std::string glibc_name(const Explanation& explanation) {
  return explanation.glibc_minor == 0 ? "glibc" : "glibc 2." + std::to_string(explanation.glibc_minor);
}

std::string malloc_text(const Explanation& explanation, const ExplainForm& form) {
  const std::string version = glibc_name(explanation);
  const std::string by_call =
      explanation.allocator || explanation.pid == 0 ? "." : ", and of some allocators by --call.";
  switch (explanation.why_no_heap) {
    case NoGlibc::not_loaded:
      return "No glibc was found in it: memory is known by mappings only.";
    case NoGlibc::not_used:
      if (explanation.other_malloc.empty())
        return "The malloc of its " + version + " has no memory" +
               (explanation.pid != 0 ? ", or changes too fast to be found (try --stop)" : "") +
               ". Memory is known by mappings only.";
      return "Its malloc is that of " + text::to_line(explanation.other_malloc) +
             ", and glibc's has no memory: memory is known by mappings" + by_call;
    case NoGlibc::swapped:
      if (!explanation.other_malloc.empty())
        return "Its malloc is that of " + text::to_line(explanation.other_malloc) + ", likely: the data of its " +
               version + " are in swap, and were not read. Memory is known by mappings" + by_call;
      return "The malloc of its " + version +
             " was not found: its own data are in swap, and were not read. Memory is known by mappings only.";
    case NoGlibc::not_known:
      return explanation.glibc_minor == 0
                 ? "The version of its glibc is not known: memory is known by mappings only."
                 : "The heap of " + version + " is not known: memory is known by mappings only.";
    case NoGlibc::none:
      break;
  }
  const GlibcHeap& heap = *explanation.heap;
  const std::uint64_t blocks = heap.figures.live_blocks + heap.mapped.blocks, largest = heap.largest_block_bytes(),
                      bytes = heap.figures.live_bytes + heap.mapped.bytes;
  const bool is_in_one = blocks > 1 && largest >= bytes - bytes / 2;
  return "Its malloc is " + version + "'s, with " + output::counted(heap.malloc.arenas.size(), "arena") + ": " +
         output::counted(blocks, "live block") + " with " + size_text(bytes, form) +
         (is_in_one ? " (" + size_text(largest, form) + " of these in one block)" : "") + ", " +
         size_text(heap.free_bytes(), form) + " free" +
         (heap.figures.swapped_bytes == 0
              ? "."
              : ", and " + size_text(heap.figures.swapped_bytes, form) + " in swap, of which nothing is known.") +
         (explanation.other_malloc.empty() ? "" : " " + text::to_line(explanation.other_malloc) + " is loaded, too.");
}

std::string beside_text(const Explanation& explanation, const ExplainForm& form) {
  std::string text;
  const auto add = [&](std::uint64_t bytes, const std::string& what) {
    if (bytes != 0) text += (text.empty() ? "" : ", ") + size_text(bytes, form) + " " + what;
  };
  add(explanation.swapped_bytes, "in swap");
  add(explanation.page_table_bytes, "of page tables");
  std::string lines = text.empty() ? "" : "Not resident: " + text + ".\n";
  if (explanation.huge_page_bytes != 0)
    lines += size_text(explanation.huge_page_bytes, form) + " of it are in transparent huge pages" +
             (explanation.huge_zero_bytes ? "; of these, pages of 4 KiB with " +
                                                size_text(*explanation.huge_zero_bytes, form) + " hold only zeros"
                                          : "") +
             ".\n";
  if (explanation.hugetlb_bytes != 0)
    lines += size_text(explanation.hugetlb_bytes, form) +
             " of it are in reserved huge pages (hugetlb), which the kernel's RSS does not count.\n";
  if (explanation.group) {
    const process::GroupMemory& group = *explanation.group;
    lines += "Its control group " + text::to_line(group.path) + " has " + size_text(group.current, form);
    if (group.limit) lines += " of " + size_text(*group.limit, form);
    if (group.file) lines += ": " + size_text(*group.file, form) + " of files";
    if (group.kernel) lines += ", " + size_text(*group.kernel, form) + " of the kernel's";
    lines += ".\n";
  }
  return lines;
}

std::string detail_text(const Explanation& explanation, const ExplainForm& form) {
  if (!form.verbose || !explanation.heap) return "";
  const HeapFigures& figures = explanation.heap->figures;
  output::Table keepers({"live blocks of", "blocks", "live", "keep free"});
  constexpr std::size_t keepers_shown = 12;
  for (const KeeperRow& row : keepers_of(figures, keepers_shown))
    keepers.add({SizeGroups::text(row.chunk_bytes), with_commas(row.blocks), size_text(row.live_bytes, form),
                 size_text(row.kept_bytes, form)});
  output::Table pages({"partly used pages", "pages"});
  for (std::size_t i = 0; i < figures.pages_by_use.size(); ++i) {
    if (figures.pages_by_use[i] != 0)
      pages.add({std::to_string(i * 10) + " to " + std::to_string(i * 10 + 10) + " % in use",
                 with_commas(figures.pages_by_use[i])});
  }
  output::Table sites({"live blocks of the call", "blocks", "live", "keep free"});
  for (const SiteRow& row : sites_of(explanation, keepers_shown))
    sites.add({row.site, with_commas(row.blocks), size_text(row.live_bytes, form), size_text(row.kept_bytes, form)});
  output::Table types({"live blocks of the C++ type", "blocks", "live", "keep free"});
  for (const TypedBlocks& each : explanation.heap->types)
    types.add({each.type, with_commas(each.blocks.blocks), size_text(each.blocks.bytes, form),
               size_text(each.blocks.pinned_bytes, form)});
  const std::string by_type = explanation.heap->types.empty() ? "" : "\n" + types.text(form.width);
  const std::string by_site = figures.by_site.empty() ? "" : "\n" + sites.text(form.width);
  return "\n" + keepers.text(form.width) + by_type + by_site + "\n" + pages.text(form.width);
}

/// The largest mapped files, with -v more of them; empty if none is worth a line.
std::string files_text(const Explanation& explanation, const ExplainForm& form) {
  constexpr std::size_t files_shown = 5, files_listed = 20;
  const std::vector<FileMemory> files = form.verbose ? explanation.files : explanation.large_files();
  if (files.empty()) return "";
  output::Table table({"mapped files", "resident", "copied", "shared with others"});
  std::string again;
  for (const FileMemory& file : files) {
    if (table.rows().size() == (form.verbose ? files_listed : files_shown)) break;
    const auto shared = file.shared_bytes();
    table.add({text::to_line(file.name), size_text(file.resident_bytes, form), size_text(file.copied_bytes, form),
               shared ? size_text(*shared, form) : "-"});
    if (file.times_mapped > 1)
      again += text::to_line(file.name) + ": this process itself maps it " + std::to_string(file.times_mapped) +
               " times, so resident memory counts its pages as often, and they are in the last column; its part by "
               "Pss is " +
               size_text(file.proportional_bytes, form) + "\n";
  }
  return "\n" + table.text(form.width) + again;
}

/// The answers of another malloc.
std::string allocator_text(const Explanation& explanation, const ExplainForm& form) {
  if (!explanation.allocator) return "";
  const AllocatorFigures& answers = *explanation.allocator;
  output::Table table({"the answers of " + answers.allocator, "bytes", "meaning"}, {0, 2});
  for (const AllocatorFigure& figure : answers.figures)
    table.add({figure.name, size_text(figure.bytes, form), figure.meaning});
  return "\n" + table.text(form.width);
}

std::string trim_text(const Explanation& explanation) {
  const TrimResult& trim = *explanation.trim;
  const std::int64_t fell = trim.given_back();
  const ExplainForm form;
  return "malloc_trim(0) was called. " +
         (fell < 0 ? "The process grew meanwhile by " + size_text(-fell, form)
                   : "It gave back " + size_text(fell, form)) +
         " (predicted: " + size_text(explanation.bytes_of(PartKind::trimmable), form) +
         "): its anonymous memory went from " + size_text(trim.anonymous_before, form) + " to " +
         size_text(trim.anonymous_after, form) + ". A thread of the process was kept for " +
         output::time_text(static_cast<double>(trim.kept.count())) + ".";
}

}  // namespace

std::vector<KeeperRow> keepers_of(const HeapFigures& figures, std::size_t most) {
  std::vector<KeeperRow> rows;
  for (std::size_t i = 0; i < figures.by_size.size(); ++i) {
    const BlockGroup& group = figures.by_size[i];
    if (group.pinned_bytes != 0)
      rows.push_back({SizeGroups::least_bytes(i), group.blocks, group.bytes, group.pinned_bytes});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const KeeperRow& a, const KeeperRow& b) { return a.kept_bytes > b.kept_bytes; });
  if (rows.size() > most) rows.resize(most);
  return rows;
}

ExplanationRow row_of(const Explanation& explanation) {
  ExplanationRow row;
  if (explanation.pid != 0) row.pid = explanation.pid;
  row.program = explanation.program;
  row.wall_ns = explanation.wall_ns;
  row.stopped_ns = explanation.stopped_ns;
  row.resident_bytes = explanation.resident_bytes;
  row.swapped_bytes = explanation.swapped_bytes;
  row.page_table_bytes = explanation.page_table_bytes;
  row.huge_page_bytes = explanation.huge_page_bytes;
  row.lazy_free_bytes = explanation.lazy_free_bytes;
  row.hugetlb_bytes = explanation.hugetlb_bytes;
  row.huge_zero_bytes = explanation.huge_zero_bytes;
  row.threads = explanation.threads;
  for (const Part& part : explanation.parts)
    row.parts.push_back({part_key(part), part_name(part), part.bytes, part.is_likely, part.live_bytes});
  for (const FileMemory& file : explanation.files)
    row.files.push_back({part_key(Part{file.kind}), file.name, file.resident_bytes, file.copied_bytes, file.own_bytes,
                         file.shared_bytes(), file.dirty_bytes, file.times_mapped});
  row.advice = advice_for(explanation);
  row.doubts = explanation.doubts;
  if (explanation.trim)
    row.trim =
        TrimRow{explanation.bytes_of(PartKind::trimmable), explanation.trim->given_back(),
                explanation.trim->resident_before, explanation.trim->resident_after, explanation.trim->kept.count()};
  if (explanation.allocator) {
    const AllocatorFigures& answers = *explanation.allocator;
    AllocatorRow asked{answers.allocator, answers.returnable_bytes, answers.returning_call, answers.kept.count(), {}};
    for (const AllocatorFigure& figure : answers.figures) asked.figures.push_back({figure.name, figure.bytes});
    row.allocator = std::move(asked);
  }
  if (!explanation.heap) return row;
  const GlibcHeap& heap = *explanation.heap;
  const HeapFigures& figures = heap.figures;
  constexpr std::size_t keepers_listed = 20;
  MallocRow malloc;
  malloc.library = "glibc";
  if (explanation.glibc_minor != 0) malloc.version = "2." + std::to_string(explanation.glibc_minor);
  malloc.arenas = heap.malloc.arenas.size();
  malloc.live_bytes = figures.live_bytes;
  malloc.live_blocks = figures.live_blocks;
  malloc.largest_block_bytes = heap.largest_block_bytes();
  malloc.free_bytes = heap.free_bytes();
  malloc.system_bytes = heap.system_bytes();
  malloc.mapped_bytes = heap.mapped.bytes;
  malloc.mapped_blocks = heap.mapped.blocks;
  malloc.thread_cache_bytes = figures.cached_bytes;
  malloc.fastbin_bytes = figures.fast_bytes;
  malloc.trim_bytes = figures.trim_bytes;
  malloc.kept_in_tops_bytes = figures.kept_tops_bytes;
  malloc.pinned_bytes = figures.pinned_bytes();
  malloc.partial_pages = figures.partial_pages;
  malloc.swapped_bytes = figures.swapped_bytes;
  malloc.resyncs = figures.resyncs;
  if (heap.malloc.parameters) {
    malloc.mmap_threshold_bytes = heap.malloc.parameters->mmap_threshold;
    malloc.trim_threshold_bytes = heap.malloc.parameters->trim_threshold;
  }
  malloc.is_exact = explanation.doubts.empty();
  malloc.keepers = keepers_of(figures, keepers_listed);
  for (const TypedBlocks& each : heap.types)
    malloc.keepers_by_type.push_back({each.type, each.blocks.blocks, each.blocks.bytes, each.blocks.pinned_bytes});
  malloc.keepers_by_site = sites_of(explanation, keepers_listed);
  malloc.trace = trace_row(explanation);
  row.malloc = std::move(malloc);
  return row;
}

std::string advice_text(const Explanation& explanation, const ExplainForm& form) {
  std::string text;
  for (const std::string& line : advice_for(explanation)) text += item_text(line, form.width);
  for (const std::string& doubt : explanation.doubts) text += item_text("Not exact: " + doubt + ".", form.width);
  if (explanation.trim) text += item_text(trim_text(explanation), form.width);
  if (explanation.stopped_ns != 0)
    text +=
        item_text("The process was stopped for " + output::time_text(static_cast<double>(explanation.stopped_ns)) + ".",
                  form.width);
  return text;
}

std::string explain_text(const Explanation& explanation, const ExplainForm& form) {
  const std::string name = text::to_line(explanation.program);
  std::string text = name + (explanation.pid != 0 ? " (" + std::to_string(explanation.pid) + ")" : "") + ": " +
                     size_text(explanation.resident_bytes, form) + " resident. " + malloc_text(explanation, form) +
                     "\n\n";
  output::Table table({"memory", "resident", "share"});
  for (const Part& part : explanation.parts_by_size()) {
    const auto share = static_cast<std::uint64_t>(std::max<std::int64_t>(0, part.bytes));
    std::string title = part_name(part);
    if (part.live_bytes) title += ", " + size_text(*part.live_bytes, form) + " of it in use";
    table.add({title, size_text(part.bytes, form), output::percent_text(share, explanation.resident_bytes)});
  }
  text += table.text(form.width) + files_text(explanation, form) + beside_text(explanation, form) + "\n";
  text += advice_text(explanation, form) + allocator_text(explanation, form);
  return text + detail_text(explanation, form);
}

std::string explain_line(const Explanation& explanation) {
  std::string line = "pid=" + std::to_string(explanation.pid != 0 ? explanation.pid : explanation.core_pid) +
                     " resident=" + std::to_string(explanation.resident_bytes);
  for (const Part& part : explanation.parts) {
    if (part.kind != PartKind::owned) line += " " + part_key(part) + "=" + std::to_string(part.bytes);
  }
  const std::uint64_t owned = explanation.bytes_of(PartKind::owned);
  if (owned != 0) line += " owned=" + std::to_string(owned);
  return line + " exact=" + (explanation.heap && explanation.doubts.empty() ? "yes" : "no") + "\n";
}

std::string explain_json(const std::vector<Explanation>& explanations) {
  ExplainReport report;
  for (const Explanation& explanation : explanations) report.processes.push_back(row_of(explanation));
  output::JsonWriter json;
  output::JsonFields field(json);
  json.begin_object();
  json.field("schema", "cmt.explain/1");
  describe(field, report);
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch::explain
