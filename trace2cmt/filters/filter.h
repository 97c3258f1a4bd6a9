#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"

namespace trace2cmt {

/// Takes an event; its label lives until the call returns.
using Emit = std::function<void(const cmt::Event&)>;

/// A step between what is read and what is written: a slice, a choice of threads, …
class Filter {
 public:
  virtual ~Filter() = default;

  /// What becomes of the header. Called once, before the first event.
  virtual void change(cmt::Header&) {}

  /// Passes on what becomes of an event: nothing, the event, or others.
  virtual void add(const cmt::Event& event, const Emit& emit) = 0;

  /// Passes on what stands after the last event.
  virtual void finish(const Emit&) {}

  /// Whether no later event can matter.
  virtual bool done() const { return false; }
};

/// Filters, each fed by the one before.
class Filters {
 public:
  Filters(std::vector<std::unique_ptr<Filter>> filters, Emit last);
  Filters(const Filters&) = delete;
  Filters& operator=(const Filters&) = delete;

  void change(cmt::Header& header);
  void add(const cmt::Event& event) { emits_.front()(event); }
  void finish();
  bool done() const;

 private:
  std::vector<std::unique_ptr<Filter>> filters_;
  std::vector<Emit> emits_;  // the i-th feeds the i-th filter, the last one what comes behind them
};

}  // namespace trace2cmt
