#include "launch/order.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "base/error.hpp"

namespace anyccl::cli {
namespace {

constexpr std::size_t kMostBytes = 96 * 1024;
constexpr std::string_view kFirstWords = "anyccl order ";

/// Texts, one after the other, each with a zero byte at its end.
class Writer {
 public:
  void put(std::string_view text) { bytes_.append(text).push_back('\0'); }
  void put(int number) { put(std::to_string(number)); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  /// An empty text when there is nothing any more, and good() is false.
  std::string text() {
    const std::size_t end = rest_.find('\0');
    good_ = good_ && end != std::string_view::npos;
    if (!good_) return {};
    std::string found(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return found;
  }
  int number() {
    const std::string digits = text();
    int value = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    good_ = good_ && problem == std::errc{} && end == digits.data() + digits.size();
    return value;
  }
  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

/// The text of `fd` before its first newline, without reading further.
std::string read_line(int fd) {
  constexpr std::size_t kLongest = 100;
  std::string line;
  char next = 0;
  while (line.size() < kLongest) {
    const ssize_t got = ::read(fd, &next, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || next == '\n') break;
    line.push_back(next);
  }
  return line;
}

bool read_all(int fd, std::string& into) {
  std::size_t have = 0;
  while (have < into.size()) {
    const ssize_t got = ::read(fd, into.data() + have, into.size() - have);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return true;
}

Result<Order> parse(std::string_view bytes) {
  Reader in(bytes);
  Order order;
  Job& job = order.job;
  HostPart& part = job.part.emplace();
  job.ranks = in.number();
  part.first_rank = in.number();
  part.world_size = in.number();
  part.master_addr = in.text();
  part.master_port = in.number();
  part.secret = in.text();
  order.folder = in.text();
  job.prefix_output = in.number() != 0;
  job.coloured = in.number() != 0;
  job.keep_going = in.number() != 0;
  job.user_grace = std::chrono::seconds(in.number());
  for (int left = in.number(); left > 0 && in.good(); --left) {
    std::string name = in.text();
    job.settings.emplace_back(std::move(name), in.text());
  }
  while (in.good() && !in.at_end()) job.command.push_back(in.text());
  if (!in.good() || job.command.empty())
    return error(Code::invalid_argument, "the launcher's order is incomplete");
  return order;
}

}  // namespace

Result<std::string> text_of(const Order& order) {
  const Job& job = order.job;
  const HostPart& part = *job.part;
  Writer out;
  out.put(job.ranks);
  out.put(part.first_rank);
  out.put(part.world_size);
  out.put(part.master_addr);
  out.put(part.master_port);
  out.put(part.secret);
  out.put(order.folder);
  for (const bool flag : {job.prefix_output, job.coloured, job.keep_going}) out.put(flag ? 1 : 0);
  out.put(static_cast<int>(job.user_grace.count()));
  out.put(static_cast<int>(job.settings.size()));
  for (const auto& [name, value] : job.settings) {
    out.put(name);
    out.put(value);
  }
  for (const std::string& word : job.command) out.put(word);
  if (out.bytes().size() > kMostBytes)
    return error(Code::invalid_argument,
                 "the command and the variables for other hosts have {} bytes; {} are possible",
                 out.bytes().size(), kMostBytes);
  return fmt::format("{}{} {}\n{}", kFirstWords, ANYCCL_VERSION_TEXT, out.bytes().size(),
                     out.bytes());
}

Result<Order> read_order(int fd) {
  const std::string line = read_line(fd);
  const std::string start = fmt::format("{}{} ", kFirstWords, ANYCCL_VERSION_TEXT);
  if (!line.starts_with(kFirstWords))
    return error(Code::invalid_argument,
                 "--ordered is for `anyccl run --hosts`, which tells on the standard input what to "
                 "run; there it says '{}'",
                 line);
  if (!line.starts_with(start))
    return error(Code::invalid_argument, "this is anyccl {}, and the launcher says '{}'",
                 ANYCCL_VERSION_TEXT, line);
  std::size_t size = 0;
  std::from_chars(line.data() + start.size(), line.data() + line.size(), size);
  std::string bytes(std::min(size, kMostBytes), '\0');
  if (!read_all(fd, bytes))
    return error(Code::invalid_argument, "the launcher's order is incomplete");
  return parse(bytes);
}

}  // namespace anyccl::cli
