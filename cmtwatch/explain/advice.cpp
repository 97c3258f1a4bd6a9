// Words for the figures of an explanation: what could be given back, and what keeps the rest. A look has no history, so
// nothing is called a leak, and no setting is recommended without a number.
#include <algorithm>
#include <utility>

#include "cmtwatch/explain/explain_fields.h"
#include "cmtwatch/explain/explanation.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch::explain {
namespace {

using output::bytes_text;
using output::counted;
using output::with_commas;

/// A thought, and how much memory it is about.
struct Thought {
  std::uint64_t bytes = 0;
  std::string text{};
};

class Adviser {
 public:
  explicit Adviser(const Explanation& explanation) : given_(explanation), trace_(trace_row(explanation)) {}

  std::vector<std::string> advise() {
    if (given_.heap) {
      think_of_trim();
      think_of_tops();
      think_of_pinned();
      think_of_live();
    }
    think_of_anonymous();
    think_of_huge_pages();
    think_of_lazy_free();
    think_of_answers();
    std::stable_sort(thoughts_.begin(), thoughts_.end(),
                     [](const Thought& a, const Thought& b) { return a.bytes > b.bytes; });
    std::vector<std::string> lines;
    for (Thought& thought : thoughts_) lines.push_back(std::move(thought.text));
    if (given_.heap && trim_is_idle_) lines.push_back(trim_is_idle());
    if (given_.is_trim_refused)
      lines.push_back(
          "malloc_trim(0) was not called: no memory of glibc's malloc was found. --call asks jemalloc or tcmalloc "
          "how much they would give back, and by which call.");
    if (trace_) lines.push_back(trace_text());
    if (given_.sites != nullptr && !trace_)
      lines.push_back(text::to_line(given_.sites->path) +
                      " is not used: only in glibc's heap are the blocks of a trace looked for.");
    if (given_.heap) think_of_threshold(lines);
    return lines;
  }

 private:
  // A recording has the call stacks only of blocks that are allocated after its begin. `reader`: prints who holds them.
  std::string recording(const std::string& whom, const std::string& reader) const {
    const std::string begin = "To see who allocates " + whom + ", ";
    if (given_.heap->malloc.is_static)
      return begin + "link the program dynamically, and record it from its start: cmttrace cannot record it as it is.";
    const std::string text = begin +
                             "record the program from its start: cmttrace --stacks -o app.cmt -- COMMAND, then " +
                             reader + " app.cmt.";
    return given_.pid == 0 ? text
                           : text + " cmttrace --attach=" + std::to_string(given_.pid) +
                                 " -o app.cmt names only what is allocated from then on, if memory still grows.";
  }

  std::string trace_text() const {
    const std::string& pid = given_.sites->pid;
    std::string text = text::to_line(trace_->file) + (pid.empty() ? "" : ", of process " + pid + ",") + " has " +
                       counted(trace_->live_blocks, "live block") + " at its end";
    if (trace_->live_blocks == 0) return text + ": no call is named.";
    text += "; " + output::percent_text(trace_->found_blocks, trace_->live_blocks) + " of them are live here. ";
    if (!trace_->matches)
      return text + "So the trace is of another process, or of an earlier time, and no call is named.";
    return text + "These keep " + output::percent_text(trace_->known_kept_bytes, trace_->kept_bytes) +
           " of the free memory that live blocks keep.";
  }

  void think_of_trim() {
    const std::uint64_t bytes = given_.bytes_of(PartKind::trimmable);
    trim_is_idle_ = !given_.is_worth(bytes);
    if (trim_is_idle_) return;
    thoughts_.push_back({bytes, "malloc_trim(0) would give back " + bytes_text(bytes) + " now, and leave about " +
                                    bytes_text(given_.resident_bytes - std::min(bytes, given_.resident_bytes)) +
                                    " resident. The pages come back as the program uses them again." + arenas_text()});
  }

  /// The setting for a process with many arenas; empty: it has few, or the setting.
  std::string arenas_text() const {
    constexpr std::size_t arenas_many = 5;
    const auto& parameters = given_.heap->malloc.parameters;
    const std::size_t arenas = given_.heap->malloc.arenas.size();
    if (!parameters || parameters->arena_max != 0 || arenas < arenas_many) return {};
    return " Each of the " + std::to_string(arenas) +
           " arenas can keep free memory of its own. MALLOC_ARENA_MAX=2 limits the process to two, for which "
           "threads may wait: `cmtreplay --tune` of a recording tries it.";
  }

  std::string trim_is_idle() const {
    const std::uint64_t bytes = given_.bytes_of(PartKind::trimmable);
    return "malloc_trim(0) would give back " + bytes_text(bytes) +
           (bytes < Explanation::worth_bytes ? ": calling it would not help." : ", which is little of it.");
  }

  void think_of_tops() {
    const std::uint64_t bytes = given_.bytes_of(PartKind::arena_tops);
    if (!given_.is_worth(bytes)) return;
    std::string text = bytes_text(bytes) +
                       " are free at the ends of threads' arenas. malloc_trim does not give these back. glibc does, "
                       "when a large block next to such an end is freed";
    if (const auto& parameters = given_.heap->malloc.parameters)
      text += ", and the end is above " + bytes_text(parameters->trim_threshold);
    thoughts_.push_back({bytes, text + "."});
  }

  static std::string keep_text(std::uint64_t blocks, std::uint64_t bytes) {
    return (blocks == 1 ? " keeps " : " keep ") + bytes_text(bytes);
  }

  /// "blocks of 144 bytes (20,160 are live) keep 30.7 MiB".
  static std::string keeper_text(const KeeperRow& row) {
    return "blocks of " + SizeGroups::text(row.chunk_bytes) + " (" + with_commas(row.blocks) +
           (row.blocks == 1 ? " is" : " are") + " live) keep " + bytes_text(row.kept_bytes);
  }

  /// The C++ types of the blocks, if they keep enough to be worth a sentence.
  std::string type_text(std::uint64_t pinned) const {
    std::string text;
    constexpr std::size_t types_shown = 3;
    const std::vector<TypedBlocks>& types = given_.heap->types;
    for (std::size_t i = 0; i < std::min(types.size(), types_shown); ++i) {
      const BlockGroup& group = types[i].blocks;
      if (group.pinned_bytes < pinned / 10) break;
      text += (i == 0 ? "By C++ type: " : "; ") + types[i].type + ": " + counted(group.blocks, "block") +
              keep_text(group.blocks, group.pinned_bytes);
    }
    return text.empty() ? text : text + ". ";
  }

  void think_of_pinned() {
    const HeapFigures& figures = given_.heap->figures;
    const std::uint64_t bytes = given_.bytes_of(PartKind::pinned);
    if (!given_.is_worth(bytes)) return;
    const std::string pages =
        given_.hugetlb_bytes != 0 ? "pages, huge ones among them," : counted(figures.partial_pages, "page");
    std::string text = bytes_text(bytes) + " are free on " + pages + " that are partly in use";
    constexpr std::size_t keepers_shown = 3;
    const std::vector<KeeperRow> keepers = keepers_of(figures, keepers_shown);
    for (const KeeperRow& row : keepers) {
      if (row.kept_bytes < keepers[0].kept_bytes / 10) break;
      text += (&row == keepers.data() ? ": " : ", ") + keeper_text(row);
    }
    text += ". " + type_text(bytes) + "Only new blocks can use this memory. ";
    const std::vector<SiteRow> sites = sites_of(given_, keepers_shown);
    for (const SiteRow& row : sites)
      text += (&row == sites.data() ? "By call: " : "; ") + row.site + ": " + counted(row.blocks, "block") +
              keep_text(row.blocks, row.kept_bytes);
    text += sites.empty() ? recording("them", "overhead --by=function") : ".";
    thoughts_.push_back({bytes, std::move(text)});
  }

  void think_of_live() {
    const std::uint64_t bytes = given_.bytes_of(PartKind::live) + given_.bytes_of(PartKind::large);
    if (bytes < given_.resident_bytes / 2) return;
    const std::uint64_t blocks = given_.heap->figures.live_blocks + given_.heap->mapped.blocks;
    const std::uint64_t zeros = given_.huge_zero_bytes.value_or(0);  // most of them may be in these blocks
    const char* const smaller = given_.is_worth(zeros) ? ""
                                : !given_.huge_zero_bytes && given_.is_worth(given_.huge_page_bytes)
                                    ? "Huge pages may make it large: --huge-pages counts their pages of zeros. "
                                    : "No setting of malloc makes that smaller. ";
    thoughts_.push_back(
        {bytes - std::min(bytes, zeros), "Most of it is live: " + counted(blocks, "block") + " with " +
                                             bytes_text(bytes) + " resident. " + smaller +
                                             (trace_ && trace_->matches && trace_->found_blocks >= blocks / 2
                                                  ? "To see who allocates it: cmtreport " + trace_->file + "."
                                                  : recording("it", "cmtreport"))});
  }

  void think_of_anonymous() {
    for (const Part& part : given_.parts) {
      const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, part.bytes));
      if (part.kind == PartKind::owned && given_.is_worth(bytes)) thoughts_.push_back({bytes, owner_text(part, bytes)});
      if (part.kind == PartKind::anonymous && given_.is_worth(bytes))
        thoughts_.push_back({bytes, anonymous_text(bytes)});
    }
  }

  std::string anonymous_text(std::uint64_t bytes) const {
    const std::string begin = bytes_text(bytes) + " is anonymous memory";
    if (!given_.heap) return begin + ": of its malloc, of a language's runtime, or mapped by the program.";
    const auto& parameters = given_.heap->malloc.parameters;
    const std::uint64_t found = given_.heap->mapped.bytes;
    if (parameters && parameters->mapped_blocks > given_.heap->mapped.blocks && parameters->mapped_bytes > found)
      return begin + " whose owner is not known. Blocks of malloc that were not found may be in it: malloc counts " +
             bytes_text(parameters->mapped_bytes - found) + " more in its mapped blocks.";
    return begin + " that glibc's malloc does not hold: of another allocator, of a language's runtime, or mapped by " +
           "the program. malloc_trim and malloc's settings do not touch it.";
  }

  void think_of_huge_pages() {
    const std::uint64_t zeros = given_.huge_zero_bytes.value_or(0);
    if (!given_.is_worth(zeros)) return;
    const bool is_mallocs =
        given_.heap && given_.heap->malloc.parameters && given_.heap->malloc.parameters->thp_page_bytes != 0;
    thoughts_.push_back(
        {zeros, bytes_text(zeros) +
                    " in transparent huge pages hold only zeros. A write to one page of 4 KiB makes a huge page of 2 "
                    "MiB resident. Up to " +
                    bytes_text(zeros) +
                    " less would be resident without them: call madvise(MADV_NOHUGEPAGE) on such memory before it is "
                    "used, or prctl(PR_SET_THP_DISABLE) at the program's start." +
                    (is_mallocs ? " malloc asks for huge pages itself (glibc.malloc.hugetlb=1)." : "")});
  }

  void think_of_lazy_free() {
    if (!given_.is_worth(given_.lazy_free_bytes)) return;
    thoughts_.push_back({given_.lazy_free_bytes, bytes_text(given_.lazy_free_bytes) +
                                                     " were given back already, with MADV_FREE. The kernel takes them "
                                                     "when memory is short. Until then they count as resident."});
  }

  void think_of_answers() {
    if (!given_.allocator || !given_.is_worth(given_.allocator->returnable_bytes)) return;
    thoughts_.push_back({given_.allocator->returnable_bytes, given_.allocator->allocator + " would give back " +
                                                                 bytes_text(given_.allocator->returnable_bytes) +
                                                                 " now, if the program called " +
                                                                 given_.allocator->returning_call + "."});
  }

  static std::string owner_text(const Part& part, std::uint64_t bytes) {
    std::string text = bytes_text(bytes) + " is held by another owner: " + part_name(part);
    if (part.live_bytes) text += "; " + bytes_text(*part.live_bytes) + " of it is in use";
    if (!part.remark.empty()) text += "; " + part.remark;
    return text + ". malloc_trim and malloc's settings do not touch it.";
  }

  // glibc raises the threshold to the size of the largest block that had a mapping of its own and was freed.
  void think_of_threshold(std::vector<std::string>& lines) const {
    const auto& parameters = given_.heap->malloc.parameters;
    if (!parameters || parameters->are_thresholds_fixed || parameters->mmap_threshold <= analysis::mmap_threshold_first)
      return;
    const std::uint64_t free = given_.heap->figures.large_free_resident;
    const bool is_named = trace_ && trace_->matches;
    if (!given_.is_worth(free) && !is_named) return;
    std::string text =
        "A block of about " + bytes_text(parameters->mmap_threshold) +
        " was freed once. Since then glibc takes blocks up to that size from its heaps, and not from mappings of "
        "their own (it began at 128 KiB).";
    if (is_named) text += raise_text();
    if (given_.is_worth(free))
      text += " Free stretches of 128 KiB or more hold " + bytes_text(free) +
              ". Smaller blocks that were freed side by side look the same: `overhead --summary` of a recording tells "
              "whether such large blocks came from heaps. If so, MALLOC_MMAP_THRESHOLD_=131072 "
              "MALLOC_TRIM_THRESHOLD_=131072 keeps that from happening, at the cost of page faults for each of them.";
    lines.push_back(text);
  }

  std::string raise_text() const {
    if (!trace_->threshold_raised_by)
      return " The trace does not have that free, unless the block was aligned to more than a page.";
    return " The block: " + analysis::raise_text(*trace_->threshold_raised_by) + ".";
  }

  const Explanation& given_;
  const std::optional<TraceRow> trace_;
  std::vector<Thought> thoughts_;
  bool trim_is_idle_ = false;
};

}  // namespace

std::vector<std::string> advice_for(const Explanation& explanation) { return Adviser(explanation).advise(); }

}  // namespace cmt::watch::explain
