/// Where reports go: files and streams, columns on a terminal, pictures.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "toolkit/picture/picture_file.h"
#include "toolkit/terminal/terminal_view.h"

namespace cmt::watch {

/// A file that a report is written to while it comes, or one of our own streams.
class Destination {
 public:
  /// Opens `path`, or where that is empty takes `stream` (1 or 2). Throws std::system_error.
  Destination(const std::string& path, int stream);
  ~Destination();
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  /// Throws std::system_error.
  void write(const std::string& text);
  int fd() const { return fd_; }

 private:
  std::string path_;
  int fd_;
  bool own_;
};

/// The last samples on a terminal: a line of text and below it a column for each sample, drawn over in place. Beside a
/// command that writes to the same terminal it is one line: the text, then the columns.
class LiveColumns {
 public:
  LiveColumns(int fd, output::Beside beside);

  /// Whether there is a terminal to draw on.
  bool active() const { return view_->active(); }

  void add(std::uint64_t bytes);
  bool empty() const { return recent_.empty(); }

  /// Whether a new drawing would be shown: the last one is older than a tenth of a second.
  bool due() const { return view_->due(); }
  /// `below` is shown where no command writes to the terminal.
  void show(const std::string& text, const std::vector<std::string>& below = {});

  /// The terminal has another size.
  void resized() { view_->resized(); }
  /// Erases the drawing: before anything else is written to the terminal, and before we stop.
  void clear() { view_->clear(); }

 private:
  output::Beside beside_;
  std::unique_ptr<output::TerminalView> view_;
  std::vector<std::uint64_t> recent_;
};

/// A line on standard error: "cmtwatch run: text".
void say(const std::string& name, const std::string& text);

/// Writes a picture and tells on standard error what the user should know of it. `numbers` is JSON. Throws as
/// PictureFile does.
void write_picture(output::PictureFile& file, const output::Picture& picture, const std::string& numbers,
                   const std::string& name);

}  // namespace cmt::watch
