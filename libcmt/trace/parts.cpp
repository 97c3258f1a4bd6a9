#include "cmt/parts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <vector>

namespace cmt {
namespace {

/// The number of the first event of each part, and the end.
std::vector<std::uint64_t> bounds_of(Reader& reader, const ReadOptions& options) {
  std::vector<std::uint64_t> bounds;
  for (const BlockStart& block : reader.blocks()) {
    if (bounds.empty() || block.keyframe || !options.addresses) bounds.push_back(block.first_event);
  }
  if (bounds.empty()) bounds.push_back(0);
  bounds.push_back(unknown);
  return bounds;
}

}  // namespace

std::size_t for_each_part(const std::string& path, const ReadOptions& options, unsigned threads,
                          const std::function<void(std::size_t part, std::span<const Event> events)>& visit) {
  Reader first(path, options);
  const std::vector<std::uint64_t> bounds = bounds_of(first, options);
  const std::size_t count = bounds.size() - 1;
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&](Reader& reader) {
    for (std::size_t part; (part = next++) < count;) {
      try {
        if (part != 0) reader.seek(bounds[part]);
        for (auto events = reader.read(); !events.empty(); events = reader.read()) {
          visit(part, events);
          if (reader.first_event() + events.size() >= bounds[part + 1]) break;
        }
      } catch (...) {
        errors[part] = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::future<void>> others;
  const std::size_t useful = path == "-" ? 1 : std::min<std::size_t>(threads, count);
  for (std::size_t i = 1; i < useful; ++i) {
    others.push_back(std::async(std::launch::async, [&] {
      Reader own(path, options);
      work(own);
    }));
  }
  work(first);
  for (std::future<void>& other : others) other.get();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return count;
}

}  // namespace cmt
