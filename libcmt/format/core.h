#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "format/forms.h"

namespace cmt::format {

/// What a block of the core stream starts from; its header states it, so that the block decodes alone.
struct CoreState {
  Tag next_tag = 1;          ///< that the next allocation gets
  Tag named_tag = 0;         ///< the last that an event was given
  std::uint32_t thread = 0;  ///< that the next event is of
};

/// Collects the events of one block, and encodes them. The essay on how is in core_encoder.cpp.
class CoreEncoder {
 public:
  /// Starts a block.
  explicit CoreEncoder(CoreState start = {}) { reset(start); }

  void reset(CoreState start);

  /// Takes the next event. Its tag, if it has one, is not below the state's next_tag.
  void add(const Event& event);

  std::uint32_t events() const { return events_; }

  /// Whether the block should be closed: there may be no room for the next event.
  bool full() const { return forms_.size() + 3 > forms_limit || labels_.size() > label_bytes_limit; }

  const CoreState& state() const { return state_; }

  /// The core stream, not compressed.
  std::string finish() const;

 private:
  static constexpr std::size_t label_bytes_limit = 1 << 20;

  void put(Form form, std::uint64_t first);
  void make_room();
  void put_switches(const Event& event);
  void put_rest(const Event& event, bool size_follows);
  std::uint8_t number_of(Form form);

  CoreState state_;
  std::uint32_t events_ = 0;
  std::vector<std::uint8_t> items_;      // the form of each item
  std::vector<std::uint64_t> operands_;  // of all items, one after the other
  std::string labels_;
  std::vector<Form> forms_;
  std::vector<BitHistogram> widths_;              // by form: of the operands that share a number with the code
  std::array<std::uint8_t, 512> form_numbers_{};  // by wire value; 0: not yet met, else the number + 1
};

/// Decodes one block. Throws WireError, with the offset in the stream.
class CoreDecoder {
 public:
  /// `bytes` have to outlive the decoder: labels point into them.
  CoreDecoder(std::string_view bytes, CoreState start, std::uint32_t events);

  /// Fills in the next events of the block and returns how many; fewer than asked only at its end. Fields that the core
  /// does not know get their defaults.
  std::size_t next(std::span<Event> events);

  const CoreState& state() const { return state_; }

 private:
  /// What the low 7 bits of an item's first number say.
  struct Code {
    std::uint8_t length = 0;  // 0: no form has this code
    bool plain = false;       // a malloc, or a free: the first number says all
    bool releases = false;    // and it is the free
    bool shares = false;      // the first operand stands above the code
    Form form;
  };

  void decode_other(Event& event, std::uint64_t first);
  void decode_operands(Event& event, const Code& code, std::uint64_t first);
  Tag old_tag(const Form& form, std::uint64_t operand) const;
  bool switch_state(const Code& code, std::uint64_t first);

  Cursor cursor_;
  CoreState state_;
  std::uint32_t left_;
  std::array<Code, forms_limit> codes_{};
};

}  // namespace cmt::format
