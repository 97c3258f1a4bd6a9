// Tables of code objects and lines. Threads look lines up without a lock; those that add or forget some take turns,
// with signals blocked.
#include "preload/program/frames/names.h"

#include <stddef.h>
#include <string.h>

#include "preload/program/frames/python.h"
#include "preload/program/kernel.h"
#include "preload/program/rings.h"

enum {
  sites_max = 1 << 18,
  codes_max = 1 << 16,
  lines_max = 1 << 17,
  texts_max = 1 << 17,
  probes_max = 2048,
  type_dealloc = 48,  // in a type object
  text_bytes_max = 1024,
  backed_at_once = 64 << 10,
};

// An instruction of a code object at which a frame was seen.
struct Site {
  uint64_t key;    // 0: free; key_gone: its code object has died
  uint32_t index;  // of the frame, as records have it
  uint32_t next;   // of the same code object: number + 1
};
static const uint64_t key_gone = 1;

struct Code {
  uint64_t address;  // 0: free; key_gone: it has died
  uint32_t function_at, file_at;
  uint32_t first;  // of its sites: number + 1
};

struct Tables {
  struct Site site[sites_max];
  struct Code code[codes_max];
  uint32_t line[lines_max];  // by a hash of function, file and line: number of the frame
  uint32_t text[texts_max];  // by a hash of the bytes: where they are
};

uint32_t names_epoch;
static struct InterpreterFrames* share;
static struct Tables* tables;
static uint32_t lock;
static uint64_t backed_frames, backed_text;
static void (*code_dealloc)(void*);

static uint32_t scatter(uint64_t key) { return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32); }
// Neighbours stay near, so that few pages of the tables are touched: each first touch is a fault. An interpreter that
// ends looks all of its code objects up.
static uint32_t first_site(uint64_t key) { return (uint32_t)(key >> 3) + scatter(key >> 21); }
static uint32_t first_code(uint64_t address) { return (uint32_t)(address >> 8) + scatter(address >> 24); }
// Where a text or a line is looked for: among few slots at first, then among the others. None of these is ever freed.
static uint32_t slot_of(uint32_t hash, int probes) {
  enum { dense_slots = 2048, dense_probes = 16, dense_end = dense_slots + dense_probes };
  _Static_assert(lines_max == texts_max, "both tables have as many slots");
  if (probes < dense_probes) return (hash & (dense_slots - 1)) + (uint32_t)probes;
  return dense_end + (hash + (uint32_t)probes) % (lines_max - dense_end);
}

// In a sandbox nobody forks, which would leave a lock of a thread that the child does not have.
static void take_turn(uint64_t* signals) {
  if (!sandbox_entered) block_signals(signals);
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
    if (!sandbox_entered) sys(SYS_sched_yield, 0);
}
static void end_turn(const uint64_t* signals) {
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  if (!sandbox_entered) restore_signals(signals);
}

// The shared memory is of a file, whose pages are made before they are written to.
static bool back(char* begin, uint64_t needed, uint64_t* backed) {
  for (; *backed < needed; *backed += backed_at_once)
    if (!rings_back(begin + *backed, backed_at_once)) return false;
  return true;
}

static uint32_t hash_of_bytes(const char* text, uint32_t bytes) {
  uint64_t hash = bytes;
  for (uint32_t i = 0; i < bytes; i++) hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
  return scatter(hash);
}

// Where a text is that ends with a zero; 0: there is no room.
static uint32_t keep_text(const char* text, uint32_t bytes) {
  if (bytes == 0) return 0;
  const uint32_t hash = hash_of_bytes(text, bytes);
  for (int probes = 0; probes < probes_max; probes++) {
    uint32_t* const slot = &tables->text[slot_of(hash, probes)];
    if (*slot && strcmp(share->text + *slot, text) == 0) return *slot;
    if (*slot) continue;
    const uint32_t begin = share->text_used ? share->text_used : 1;
    const uint64_t end = (uint64_t)begin + bytes + 1;
    if (end > sizeof share->text - backed_at_once || !back(share->text, end, &backed_text)) return 0;
    memcpy(share->text + begin, text, bytes + 1);
    share->text_used = (uint32_t)end;
    return *slot = begin;
  }
  return 0;
}

static uint32_t put_utf8(char* to, uint32_t character) {
  if (character < 0x80) {
    to[0] = (char)(character ? character : ' ');
    return 1;
  }
  const uint32_t more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  if (character >> 11 == 0x1b) return put_utf8(to, '?');  // a surrogate, in the place of a byte that is no text
  static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
  to[0] = (char)(leads[more] | character >> 6 * more);
  for (uint32_t i = 1; i <= more; i++) to[i] = (char)(0x80 | (character >> 6 * (more - i) & 0x3f));
  return 1 + more;
}

// Reads a text; if it is long, its end: the file's name is there.
static uint32_t read_string(uintptr_t string, char text[text_bytes_max + 8]) {
  uint32_t bytes = 0;
  const long length = string ? python_symbols.text_length((void*)string) : 0;
  for (long i = length > text_bytes_max / 4 ? length - text_bytes_max / 4 : 0; i < length; i++)
    bytes += put_utf8(text + bytes, python_symbols.text_character((void*)string, i));
  text[bytes] = 0;
  return bytes;
}

static uint32_t keep_string(uintptr_t string) {
  char text[text_bytes_max + 8];
  const uint32_t bytes = read_string(string, text);
  return keep_text(text, bytes);
}

// The number of the frame of a line. 0: there is no room.
static uint32_t keep_line(uint32_t function_at, uint32_t file_at, uint32_t line) {
  const uint32_t hash = scatter(((uint64_t)function_at << 32 | file_at) + (uint64_t)line * 0x2545f4914f6cdd1du);
  for (int probes = 0; probes < probes_max; probes++) {
    uint32_t* const slot = &tables->line[slot_of(hash, probes)];
    const struct InterpreterFrame* const there = &share->frame[*slot];
    if (*slot && there->function_at == function_at && there->file_at == file_at && there->line == line) return *slot;
    if (*slot) continue;
    const uint32_t number = share->used ? share->used : 1;
    const uint64_t end = offsetof(struct InterpreterFrames, frame) + (number + 1) * sizeof *there;
    if (number >= interpreter_frames_max || !back((char*)share, end, &backed_frames)) return 0;
    share->frame[number] = (struct InterpreterFrame){function_at, file_at, line};
    __atomic_store_n(&share->used, number + 1, __ATOMIC_RELEASE);
    return *slot = number;
  }
  return 0;
}

static struct Code* find_code(uintptr_t address) {
  uint32_t at = first_code(address);
  for (int probes = 0; probes < probes_max; probes++, at++) {
    struct Code* const code = &tables->code[at & (codes_max - 1)];
    const uint64_t there = __atomic_load_n(&code->address, __ATOMIC_ACQUIRE);
    if (there == address) return code;
    if (there == 0) break;
  }
  return NULL;
}

// NULL: there is no room.
static struct Code* keep_code(uintptr_t address) {
  struct Code* const known = find_code(address);
  if (known) return known;
  uint32_t at = first_code(address);
  for (int probes = 0; probes < probes_max; probes++, at++) {
    struct Code* const code = &tables->code[at & (codes_max - 1)];
    if (code->address > key_gone) continue;
    code->function_at = keep_string(python_word(address + python.function));
    code->file_at = keep_string(python_word(address + python.file));
    code->first = 0;
    __atomic_store_n(&code->address, address, __ATOMIC_RELEASE);
    return code;
  }
  return NULL;
}

// The index of a key, or 0. No other thread changes the entry of a code object that this one executes.
static uint32_t look_up(uint64_t key) {
  uint32_t at = first_site(key);
  for (int probes = 0; probes < probes_max; probes++, at++) {
    const struct Site* const site = &tables->site[at & (sites_max - 1)];
    const uint64_t there = __atomic_load_n(&site->key, __ATOMIC_ACQUIRE);
    if (there == key) return site->index;
    if (there == 0) break;
  }
  return 0;
}

static void keep_site(uint64_t key, struct Code* code, uint32_t index) {
  uint32_t at = first_site(key);
  for (int probes = 0; probes < probes_max; probes++, at++) {
    struct Site* const site = &tables->site[at & (sites_max - 1)];
    if (site->key > key_gone) continue;
    site->index = index;
    site->next = code->first;
    code->first = (at & (sites_max - 1)) + 1;
    __atomic_store_n(&site->key, key, __ATOMIC_RELEASE);
    return;
  }
}

static uint32_t make_index(uintptr_t address, uintptr_t instruction, uint64_t key) {
  struct Code* const code = keep_code(address);
  if (!code) return interpreter_frames_first;
  const int line = python_symbols.line((void*)address, python_offset(address, instruction));
  const uint32_t number = keep_line(code->function_at, code->file_at, line > 0 ? (uint32_t)line : 0);
  if (number == 0) __atomic_fetch_add(&share->nameless, 1, __ATOMIC_RELAXED);
  keep_site(key, code, interpreter_frames_first + number);
  return interpreter_frames_first + number;
}

uint32_t names_find(uintptr_t code, uintptr_t instruction) {
  const uint64_t key = python_line_key(code, instruction);
  uint32_t index = look_up(key);
  if (index) return index;
  uint64_t signals;
  take_turn(&signals);
  index = look_up(key);
  if (!index) index = make_index(code, instruction, key);
  end_turn(&signals);
  return index;
}

// A free slot ends a search. So the last gone slots before a free one are free too.
static void free_site(uint32_t number) {
  tables->site[number].key = key_gone;
  if (tables->site[(number + 1) & (sites_max - 1)].key != 0) return;
  for (; tables->site[number].key == key_gone; number = (number - 1) & (sites_max - 1)) tables->site[number].key = 0;
}

static void forget(struct Code* code) {
  for (uint32_t number = code->first; number != 0;) {
    const uint32_t next = tables->site[number - 1].next;
    free_site(number - 1);
    number = next;
  }
  code->first = 0;
  const uint32_t at = (uint32_t)(code - tables->code);
  const bool is_last = tables->code[(at + 1) & (codes_max - 1)].address == 0;
  __atomic_store_n(&code->address, is_last ? 0 : key_gone, __ATOMIC_RELEASE);
  __atomic_fetch_add(&names_epoch, 1, __ATOMIC_RELEASE);
}

// The interpreter's tp_dealloc of code objects.
static void code_dies(void* object) {
  if (tables && find_code((uintptr_t)object)) {
    uint64_t signals;
    take_turn(&signals);
    struct Code* const code = find_code((uintptr_t)object);
    if (code) forget(code);
    end_turn(&signals);
  }
  code_dealloc(object);
}

bool names_begin(struct InterpreterFrames* of_process) {
  enum { dont_need = 4 };
  if (!tables) tables = sys_map_quietly(sizeof *tables);
  if (!tables) return false;
  sys(SYS_madvise, tables, sizeof *tables, dont_need);  // a parent's
  share = of_process;
  lock = 0;
  backed_frames = backed_text = 0;
  __atomic_fetch_add(&names_epoch, 1, __ATOMIC_RELEASE);
  return back((char*)share, sizeof(struct InterpreterFrame), &backed_frames);
}

static void (**place_of_dealloc(void))(void*) {
  return (void (**)(void*))(void*)(python_symbols.code_type + type_dealloc);
}

void names_watch_code(void) {
  void (** const place)(void*) = place_of_dealloc();
  void (*const now)(void*) = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (now == code_dies) return;
  code_dealloc = now;
  __atomic_store_n(place, code_dies, __ATOMIC_RELEASE);
}

void names_end(void) {
  if (!code_dealloc) return;
  void (*ours)(void*) = code_dies;
  __atomic_compare_exchange_n(place_of_dealloc(), &ours, code_dealloc, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

#ifdef CMT_CHECK_FRAMES
static bool is_string(uintptr_t string, uint32_t at) {
  char text[text_bytes_max + 8];
  read_string(string, text);
  return strcmp(text, share->text + at) == 0;
}

bool names_are_right(uintptr_t code, uintptr_t instruction, uint32_t index) {
  const struct InterpreterFrame* const frame = &share->frame[index - interpreter_frames_first];
  if (index == interpreter_frames_first) return share->nameless != 0;
  const int line = python_symbols.line((void*)code, python_offset(code, instruction));
  return is_string(python_word(code + python.function), frame->function_at) &&
         is_string(python_word(code + python.file), frame->file_at) && frame->line == (line > 0 ? (uint32_t)line : 0);
}
#endif
