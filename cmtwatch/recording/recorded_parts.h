/// The parts of the resident memory of processes, as cmtwatch explain finds them, in a recording:
///
///     `part`         Each part that a process had once: its word for scripts, and its name for people.
///     `part_sample`  A row for each part of a process at a look: its bytes. They add up to the process's resident
///     memory.
///
/// A look is at a tick, but not each tick has one (record --explain). Recordings of cmt 0.1.0 lack both tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/explain/explanation.h"
#include "toolkit/database/database.h"
#include "toolkit/output/fields.h"

namespace cmt::watch {

struct RecordedPart {
  std::string part, name;
  bool is_likely = false;
  std::int64_t bytes = 0;
  std::optional<std::uint64_t> live_bytes{};
};

template <class Visitor, output::DescribedAs<RecordedPart> P>
void describe(Visitor& field, P& part) {
  field("part", part.part, "a word for scripts, as in cmt.explain/1");
  field("name", part.name, "the same for people, or the owner");
  field("is_likely", part.is_likely, "the owner is a guess");
  field("bytes", part.bytes, "resident; negative only for `changed`");
  field("live_bytes", part.live_bytes, "of an owner's memory, what is in use; null: not known");
}

/// A look at a process, before a moment or at it.
struct PartLook {
  std::int64_t begin_ns = 0;
  std::int64_t age_ns = 0;
  std::vector<RecordedPart> parts{};
};

template <class Visitor, output::DescribedAs<PartLook> L>
void describe(Visitor& field, L& look) {
  field("begin_ns", look.begin_ns, "of the moment of the look, since the recording began");
  field("age_ns", look.age_ns, "so long before this moment");
  field("parts", look.parts, "add up to the resident memory at the look; the largest first");
}

/// The texts that make the tables. `create` is "create table" or "create table if not exists".
std::string part_schema(const std::string& create);

/// Whether a recording has the tables.
bool has_parts(database::Database& database);

/// Returns the last look at a process, by its id in the recording, at a tick or before it.
std::optional<PartLook> last_look(database::Database& database, std::int64_t process, std::int64_t tick);

/// The parts of all processes that were looked at, added up look by look. Bytes below 0 count as 0.
struct PartSeries {
  struct Band {
    std::string part, name;
    std::vector<std::uint64_t> bytes{};  ///< at each look
  };
  std::vector<std::int64_t> time_ns{};  ///< of each look
  std::vector<Band> bands{};            ///< the largest ones, and the rest as "others"
};
PartSeries read_part_series(database::Database& database);

/// Writes parts into a recording that has the tables.
class PartWriter {
 public:
  explicit PartWriter(database::Database& database);
  void write(std::int64_t tick, std::int64_t process, const std::vector<explain::Part>& parts);

 private:
  database::Database& database_;
  database::Statement add_, find_, add_sample_;
};

}  // namespace cmt::watch
