// Writes a picture to its file, through rsvg-convert for PNG and PDF.

#include "toolkit/picture/picture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "toolkit/launch/spawn.h"
#include "toolkit/process/proc_file.h"

namespace cmt::picture {
namespace {

constexpr std::array<std::pair<std::string_view, PictureFile::Form>, 4> endings{{{".svg", PictureFile::Form::svg},
                                                                                 {".html", PictureFile::Form::html},
                                                                                 {".png", PictureFile::Form::png},
                                                                                 {".pdf", PictureFile::Form::pdf}}};

/// An unnamed file with these bytes, positioned at its beginning.
process::Fd memory_file(std::string_view bytes) {
  process::Fd file(memfd_create("picture", MFD_CLOEXEC));
  if (file.get() < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  process::write_all(file.get(), bytes, "memfd");
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// Runs rsvg-convert from one descriptor to another; -1 is /dev/null. Returns its exit status, empty where it could not
/// be started. A PDF contains its date, which SOURCE_DATE_EPOCH makes a fixed one.
std::optional<int> run_converter(std::vector<std::string> words, int in, int out) {
  const process::Fd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  launch::SpawnOptions options{.words = std::move(words),
                               .input_fd = in < 0 ? nowhere.get() : in,
                               .output_fd = out < 0 ? nowhere.get() : out,
                               .error_fd = nowhere.get()};
  if (getenv("SOURCE_DATE_EPOCH") == nullptr) options.environment.emplace_back("SOURCE_DATE_EPOCH", "0");
  try {
    const launch::Ended ended = launch::ChildProcess(options).wait();
    return ended.signal == 0 ? ended.status : 128 + ended.signal;
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<PictureFile::Form> PictureFile::form_of(std::string_view path) {
  for (const auto& [ending, form] : endings) {
    if (path.ends_with(ending)) return form;
  }
  return std::nullopt;
}

std::string PictureFile::fault_of(const std::string& path) {
  return form_of(path) ? "" : "expected a name that ends in .svg, .html, .png or .pdf, not " + path;
}

PictureFile::PictureFile(const std::string& path) : path_(path), form_(form_of(path).value()) {
  const bool converted = form_ == Form::png || form_ == Form::pdf;
  if (converted && run_converter({"rsvg-convert", "--version"}, -1, -1) != 0) {
    throw std::runtime_error(path_ +
                             ": png and pdf need rsvg-convert (Debian: librsvg2-bin), which is not installed; " +
                             "svg and html do not");
  }
  file_.emplace(path_);
}

void PictureFile::write(const Picture& picture, std::string_view numbers) {
  std::string bytes = form_ == Form::html ? to_html(picture, numbers) : to_svg(picture);
  if (form_ == Form::png || form_ == Form::pdf) bytes = convert(bytes);
  process::write_all(file_->fd(), bytes, path_);
  file_->commit();
}

std::string PictureFile::convert(std::string_view svg) const {
  const process::Fd in = memory_file(svg), out = memory_file("");
  const char* const format = form_ == Form::png ? "png" : "pdf";
  const auto status =
      run_converter({"rsvg-convert", "-f", format, "-z", form_ == Form::png ? "2" : "1"}, in.get(), out.get());
  if (status != 0) {
    throw std::runtime_error(path_ + ": rsvg-convert could not write it, exit status " +
                             std::to_string(status.value_or(127)));
  }
  return process::read_file("/proc/self/fd/" + std::to_string(out.get()));
}

std::string_view PictureFile::remark() const {
  return form_ == Form::html && !page_zooms()
             ? "the page does not zoom: built without uPlot (run script/bootstrap in the sources, and build again)"
             : "";
}

}  // namespace cmt::picture
