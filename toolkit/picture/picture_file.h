#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// The file that a picture is written to. Its ending chooses the form: .svg, .html, .png or .pdf; the last two are made
/// by rsvg-convert. The constructor opens it, so that an error shows before the work begins; the destructor removes a
/// new file that nothing was written to.
class PictureFile {
 public:
  enum class Form { svg, html, png, pdf };

  /// By a path's ending.
  static std::optional<Form> form_of(std::string_view path);

  /// The fault of a path as the name of a picture; empty where there is none.
  static std::string fault_of(const std::string& path);

  /// `path` must have one of the endings. Throws std::system_error, and std::runtime_error where rsvg-convert is needed
  /// and missing.
  explicit PictureFile(const std::string& path);
  ~PictureFile();
  PictureFile(const PictureFile&) = delete;
  PictureFile& operator=(const PictureFile&) = delete;

  /// `numbers` is the JSON that a page contains. Throws as the constructor does.
  void write(const Picture& picture, std::string_view numbers);

  /// A note for the user, that a page does not zoom; empty otherwise.
  std::string_view remark() const;

 private:
  void convert(std::string_view svg);
  [[noreturn]] void fail() const;

  std::string path_;
  Form form_;
  int fd_ = -1;
  bool is_new_ = false;
  bool written_ = false;
};

}  // namespace cmt::output
