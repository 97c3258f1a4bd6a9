// Finds the entry of a function (FDE) through .eh_frame_hdr, and reads it with its common entry (CIE).

#include "preload/cfi/cursor.h"

enum { entry_bytes_max = 1 << 24 };

// Returns a cursor over the body of the entry at `at`. A length is before the body.
static struct CfiCursor open_entry(const struct CfiTables* tables, uint64_t at) {
  struct CfiCursor in = cfi_cursor(tables, at, UINT64_MAX);
  uint64_t bytes = cfi_read_number(&in, 4, false);
  if (bytes == 0xffffffff) bytes = cfi_read_number(&in, 8, false);
  if (in.failed || bytes == 0 || bytes > entry_bytes_max || bytes > in.end - in.at)
    cfi_fail(&in);
  else
    cfi_end_after(&in, bytes);
  return in;
}

// Reads what the letters of the CIE's augmentation after 'z' announce.
static bool read_augmentation(struct CfiCursor letters, struct CfiCursor data, struct CfiFunction* function) {
  for (uint8_t letter = cfi_read_byte(&letters); letter; letter = cfi_read_byte(&letters)) {
    if (letter == 'R') function->encoding = cfi_read_byte(&data);
    if (letter == 'L') cfi_read_byte(&data);
    if (letter == 'P') cfi_read_encoded(&data, cfi_read_byte(&data) & 0x7f);
    if (letter == 'S') function->is_signal_frame = true;
  }
  return !letters.failed && !data.failed;
}

static bool read_common(const struct CfiTables* tables, uint64_t at, struct CfiFunction* function) {
  struct CfiCursor in = open_entry(tables, at);
  if (cfi_read_number(&in, 4, false) != 0) return false;
  const uint8_t version = cfi_read_byte(&in);
  const uint8_t first_letter = cfi_read_byte(&in);
  const struct CfiCursor letters = in;
  if (in.failed || (version != 1 && version != 3) || (first_letter && first_letter != 'z')) return false;
  for (uint8_t letter = first_letter; letter;) letter = cfi_read_byte(&in);
  function->code_factor = cfi_read_uleb(&in);
  function->data_factor = cfi_read_sleb(&in);
  function->return_register = version == 1 ? cfi_read_byte(&in) : cfi_read_uleb(&in);
  function->has_data = first_letter == 'z';
  if (function->has_data) {
    const uint64_t bytes = cfi_read_uleb(&in);
    struct CfiCursor data = in;
    cfi_skip(&in, bytes);
    if (in.failed) return false;
    cfi_end_after(&data, bytes);
    if (!read_augmentation(letters, data, function)) return false;
  }
  function->common_program = in.at;
  function->common_end = in.end;
  return !in.failed;
}

static bool read_function(const struct CfiTables* tables, uint64_t at, struct CfiFunction* function) {
  struct CfiCursor in = open_entry(tables, at);
  const uint64_t place = in.at, distance = cfi_read_number(&in, 4, false);
  if (in.failed || distance == 0 || distance > place) return false;
  if (!read_common(tables, place - distance, function)) return false;
  function->begin = cfi_read_encoded(&in, function->encoding);
  function->bytes = cfi_read_encoded(&in, function->encoding & 15);
  if (function->has_data) cfi_skip(&in, cfi_read_uleb(&in));
  function->own_program = in.at;
  function->own_end = in.end;
  return !in.failed;
}

// Reads the n-th number of the table in .eh_frame_hdr: the begin of a function or, after it, of its entry.
static bool read_table(struct CfiCursor table, uint64_t n, int64_t* number) {
  cfi_skip(&table, 4 * n);
  *number = (int64_t)cfi_read_number(&table, 4, true);
  return !table.failed;
}

// The last function in the table of .eh_frame_hdr that begins at or before an address.
struct Found {
  struct CfiCursor table;
  uint64_t count, number;
};

// The table has pairs of (begin of a function, its entry), each relative to the header, sorted by begin.
static bool find_in_table(const struct CfiTables* tables, uint64_t address, struct Found* found) {
  enum { count_of_4_bytes = 0x03, table_of_4_bytes = 0x3b };
  struct CfiCursor in = cfi_cursor(tables, tables->header, UINT64_MAX);
  const uint8_t version = cfi_read_byte(&in), frame_encoding = cfi_read_byte(&in);
  const uint8_t count_encoding = cfi_read_byte(&in), table_encoding = cfi_read_byte(&in);
  if (version != 1 || count_encoding != count_of_4_bytes || table_encoding != table_of_4_bytes) return false;
  cfi_read_encoded(&in, frame_encoding);
  const uint64_t count = cfi_read_number(&in, 4, false);
  const int64_t wanted = (int64_t)(address - tables->header);
  int64_t begin;
  uint64_t low = 0, high = count;  // the last function that begins at or before `address` is in [low, high)
  if (in.failed || count == 0 || !read_table(in, 0, &begin) || begin > wanted) return false;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (!read_table(in, 2 * middle, &begin)) return false;
    *(begin <= wanted ? &low : &high) = middle;
  }
  cfi_must(low < count);
  *found = (struct Found){in, count, low};
  return true;
}

// Returns the address of the entry, or 0.
static uint64_t find_entry(const struct CfiTables* tables, uint64_t address) {
  struct Found found;
  int64_t entry;
  if (!find_in_table(tables, address, &found)) return 0;
  return read_table(found.table, 2 * found.number + 1, &entry) ? tables->header + (uint64_t)entry : 0;
}

uint64_t cfi_distance_of_neighbours(const struct CfiTables* tables, uint64_t address) {
  struct Found found;
  int64_t before, after;
  if (!tables->header || !find_in_table(tables, address, &found) || found.number + 1 >= found.count) return 0;
  if (!read_table(found.table, 2 * found.number, &before)) return 0;
  return read_table(found.table, 2 * (found.number + 1), &after) ? (uint64_t)(after - before) : 0;
}

bool cfi_find_function(const struct CfiTables* tables, uint64_t address, struct CfiFunction* function) {
  *function = (struct CfiFunction){0};
  const uint64_t entry = tables->header ? find_entry(tables, address) : 0;
  return entry && read_function(tables, entry, function) && address - function->begin < function->bytes;
}
