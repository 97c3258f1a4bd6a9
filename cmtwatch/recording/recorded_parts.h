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

/// The texts that make the tables. `create` is "create table" or "create table if not exists".
std::string part_schema(const std::string& create);

/// Whether a recording has the tables.
bool has_parts(database::Database& database);

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
