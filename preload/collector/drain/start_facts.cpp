// Copies the fields, and checks the copies: the program may change what is shared in between.

#include "preload/collector/drain/start_facts.h"

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

std::optional<StartFacts> StartFacts::read(const Control& control) {
  StartFacts facts;
  facts.process = process_of(&control);
  facts.own_process = control.process;
  facts.is_outside = control.process_outside != 0;
  facts.start_stamp = control.start_stamp;
  facts.start_ns = control.start_ns;
  facts.start_wall = control.start_wall;
  facts.rings_limit = control.rings_limit;
  facts.forked = control.forked;
  facts.outputs = control.outputs;
  facts.stacks_at = control.stacks_at;
  facts.touched_min = control.touched_min;
  facts.sample_bytes = control.sample_bytes;
  facts.has_stacks_of_frees = control.stacks_of_frees != 0;
  facts.clock_is_ns = control.clock_is_ns != 0;
  facts.has_made_control = control.made_control != 0;
  bool is_sound = facts.rings_limit <= rings_max && facts.outputs <= outputs_max &&
                  take(control.program, facts.program) && take(control.allocator, facts.allocator) &&
                  take(control.command, facts.command) && take(control.rings_path, facts.rings_path) &&
                  take(control.control_path, facts.control_path) && take(control.status_path, facts.status_path) &&
                  take(control.pprof_path, facts.pprof_path);
  for (std::size_t i = 0; i < std::size(control.paths); ++i)
    is_sound = is_sound && take(control.paths[i], facts.paths[i]);
  return is_sound ? std::optional(facts) : std::nullopt;
}

}  // namespace cmt::collector
