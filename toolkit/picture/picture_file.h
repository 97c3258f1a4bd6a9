#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// The file that a picture goes to. It is opened at once, so that nobody waits for what cannot be written, and taken
/// away again where nothing was written to it. Its ending says how: .svg, .html, .png, .pdf. The last two are made by
/// rsvg-convert.
class PictureFile {
 public:
  enum class Form { svg, html, png, pdf };

  /// By a path's ending.
  static std::optional<Form> form_of(std::string_view path);

  /// What is wrong with the name of a file that a picture is to go to; empty: nothing is.
  static std::string fault_of(const std::string& path);

  /// `path` has one of the endings. Throws std::system_error, and std::runtime_error where rsvg-convert is needed and
  /// missing.
  explicit PictureFile(const std::string& path);
  ~PictureFile();
  PictureFile(const PictureFile&) = delete;
  PictureFile& operator=(const PictureFile&) = delete;

  /// `numbers` is JSON, for the page. Throws as the constructor does.
  void write(const Picture& picture, std::string_view numbers);

  /// What a user should know of the file, or nothing: that a page does not zoom.
  std::string_view remark() const;

 private:
  void write_bytes(std::string_view bytes);
  void convert(std::string_view svg);
  [[noreturn]] void fail() const;

  std::string path_;
  Form form_;
  int fd_ = -1;
  bool is_new_ = false;
  bool written_ = false;
};

}  // namespace cmt::output
