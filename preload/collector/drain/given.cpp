// Copies the fields, and checks the copies: the program may change what is shared in between.

#include "preload/collector/drain/given.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace cmt::collector {
namespace {

/// Returns false if the text does not end within the field.
template <std::size_t bytes>
bool take(const char (&field)[bytes], std::string& text) {
  const std::size_t length = ::strnlen(field, bytes);
  text.assign(field, length);
  text.resize(std::min(text.find('\0'), text.size()));
  return length < bytes;
}

}  // namespace

std::optional<Given> Given::read(const Control& control) {
  Given given;
  given.process = process_of(&control);
  given.own_process = control.process;
  given.is_outside = control.process_outside != 0;
  given.start_stamp = control.start_stamp;
  given.start_ns = control.start_ns;
  given.start_wall = control.start_wall;
  given.rings_limit = control.rings_limit;
  given.forked = control.forked;
  given.outputs = control.outputs;
  given.stacks_at = control.stacks_at;
  given.touched_min = control.touched_min;
  given.sample_bytes = control.sample_bytes;
  given.has_stacks_of_frees = control.stacks_of_frees != 0;
  given.has_made_control = control.made_control != 0;
  bool is_sound = given.rings_limit <= rings_max && given.outputs <= outputs_max &&
                  take(control.program, given.program) && take(control.allocator, given.allocator) &&
                  take(control.command, given.command) && take(control.rings_path, given.rings_path) &&
                  take(control.control_path, given.control_path) && take(control.status_path, given.status_path) &&
                  take(control.pprof_path, given.pprof_path);
  for (std::size_t i = 0; i < std::size(control.paths); ++i)
    is_sound = is_sound && take(control.paths[i], given.paths[i]);
  return is_sound ? std::optional(given) : std::nullopt;
}

}  // namespace cmt::collector
