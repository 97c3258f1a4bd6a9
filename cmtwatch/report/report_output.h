/// Where reports go: files and streams, columns on a terminal, pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/files/output_file.h"
#include "toolkit/picture/picture.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::watch {

/// A file that a report is written to, or one of our own streams.
class Destination {
 public:
  /// When the file gets its name: at once, so that others can read rows while they come, or when commit() says that it
  /// is whole.
  enum class Names { at_once, whole };

  /// Opens `path`, or uses `stream` (1 or 2) if the path is empty. Throws std::system_error.
  Destination(const std::string& path, int stream, Names names = Names::at_once);
  /// Replaces characters that a terminal would obey, as command::print() does. Throws std::system_error.
  void write(const std::string& text);
  int fd() const { return fd_; }
  /// To be called once, last. Throws std::system_error.
  void commit();

 private:
  std::string path_;
  process::Fd file_;                        ///< none: it is a stream, or has its name later
  std::optional<files::OutputFile> whole_;  ///< a file that has its name later
  int fd_;
};

/// The last samples on a terminal: a line of text and below it a column for each sample, drawn over in place. If a
/// command writes to the same terminal, the drawing is one line: the text, then the columns.
class LiveColumns {
 public:
  /// The line of text, and lines below the columns, which are left out if a command runs.
  struct Text {
    std::string head;
    std::vector<std::string> below{};
  };

  /// `text` is called for each drawing.
  LiveColumns(int fd, terminal::Beside beside, std::function<Text()> text);

  /// Whether there is a terminal to draw on.
  bool active() const { return view_->active(); }

  /// Adds a column, and draws unless the last drawing is younger than a tenth of a second.
  void add(std::uint64_t bytes);

  /// The terminal has another size.
  void resized();
  /// Erases the drawing: before anything else is written to the terminal, and before we stop.
  void clear() { view_->clear(); }

 private:
  void draw();

  terminal::Beside beside_;
  std::function<Text()> text_;
  std::unique_ptr<terminal::TerminalView> view_;
  std::vector<std::uint64_t> recent_;
};

/// With a unit, or `plain`: "12.4 MiB", "13002342".
std::string amount(std::uint64_t bytes, bool plain);

/// A time since 1970 in the local time zone, to the millisecond: "2026-11-22T00:53:10.123".
std::string wall_text(std::int64_t wall_ns);

/// Returns the last nanosecond of the span that such a text names: of its second, or of the last digit of its fraction.
/// Returns nullopt for any other text.
std::optional<std::int64_t> parse_wall(const std::string& text);

/// A panel without series.
picture::Panel bytes_over_time(const std::string& title, const std::string& y_title);

/// Writes a picture and prints notes on it to standard error. `numbers` is JSON. Throws as PictureFile does.
void write_picture(picture::PictureFile& file, const picture::Picture& picture, const std::string& numbers,
                   const std::string& name);

}  // namespace cmt::watch
