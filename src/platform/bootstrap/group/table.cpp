#include "platform/bootstrap/group/table.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "platform/bootstrap/group/hosts.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::size_t kHello = sizeof(Hello);

// So many equal bytes end a run: no fewer than the numbers before the next one take, so that a run
// never takes more than it saves.
constexpr std::size_t kGap = 4;
static_assert(kHello < std::size_t{1} << 14, "skip and length take two bytes each at most");

struct Run {
  std::size_t begin = 0, end = 0;
};

std::vector<Run> runs_that_differ(Bytes a, Bytes b) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (runs.empty() || i - runs.back().end >= kGap) runs.push_back({i, i});
    runs.back().end = i + 1;
  }
  return runs;
}

void put_number(std::vector<std::byte>& into, std::size_t number) {
  for (; number >= 0x80; number >>= 7U) into.push_back(static_cast<std::byte>(number | 0x80U));
  into.push_back(static_cast<std::byte>(number));
}

void put_entry(std::vector<std::byte>& into, std::size_t distance, const Hello& like,
               const Hello& hello) {
  const Bytes bytes = bytes_of(hello);
  const std::vector<Run> runs = runs_that_differ(bytes_of(like), bytes);
  put_number(into, distance);
  put_number(into, runs.size());
  std::size_t at = 0;
  for (const Run& run : runs) {
    put_number(into, run.begin - at);
    put_number(into, run.end - run.begin);
    const Bytes replaced = bytes.subspan(run.begin, run.end - run.begin);
    into.insert(into.end(), replaced.begin(), replaced.end());
    at = run.end;
  }
}

/// Numbers and bytes one after the other; what is asked for beyond the end is 0, and spoils it.
class Reader {
 public:
  explicit Reader(Bytes bytes) : left_(bytes) {}

  std::size_t number() {
    std::size_t value = 0;
    for (unsigned shift = 0; shift < 28; shift += 7) {
      const auto byte = std::to_integer<std::size_t>(take(1)[0]);
      value |= (byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    spoiled_ = true;
    return 0;
  }
  /// Takes `size` bytes, or one zero if there are not so many, here or in an earlier call.
  Bytes take(std::size_t size) {
    spoiled_ = spoiled_ || size > left_.size();
    if (spoiled_) return Bytes(&kZero, 1);
    const Bytes taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  bool spoiled() const { return spoiled_; }
  bool at_end() const { return left_.empty() && !spoiled_; }
  std::size_t left() const { return left_.size(); }

 private:
  static constexpr std::byte kZero{0};
  Bytes left_;
  bool spoiled_ = false;
};

Status malformed() {
  return error(Code::remote_error, "the root server sent a table that cannot be understood");
}

/// Replaces what differs in `hello`.
Status apply_runs(Reader& reader, Hello& hello) {
  std::span<std::byte> rest = std::as_writable_bytes(std::span(&hello, 1));
  for (std::size_t runs = reader.number(); runs > 0; --runs) {
    const std::size_t skip = reader.number(), length = reader.number();
    if (length == 0 || skip > rest.size() || length > rest.size() - skip) return malformed();
    const Bytes replaced = reader.take(length);
    if (reader.spoiled()) return malformed();
    std::copy(replaced.begin(), replaced.end(), rest.subspan(skip).begin());
    rest = rest.subspan(skip + length);
  }
  return reader.spoiled() ? malformed() : Status();
}

/// Appends the next hello to those before it.
Status read_entry(Reader& reader, std::vector<Hello>& hellos) {
  const std::size_t distance = reader.number();
  if (reader.spoiled() || distance > hellos.size()) return malformed();
  if (distance == 0)
    hellos.emplace_back();
  else
    hellos.push_back(hellos[hellos.size() - distance]);
  return apply_runs(reader, hellos.back());
}

}  // namespace

/// Each hello is likest to the last one of its host, and else to the one before.
std::vector<std::byte> encode_table(std::span<const Hello> hellos) {
  const std::vector<int> host_of = number_hosts(hellos);
  std::vector<std::size_t> last_of_host;
  std::vector<std::byte> encoded;
  for (std::size_t r = 0; r < hellos.size(); ++r) {
    const auto host = static_cast<std::size_t>(host_of[r]);
    const bool is_first = host == last_of_host.size();
    if (is_first) last_of_host.push_back(r);
    const std::size_t distance = !is_first ? r - last_of_host[host] : r == 0 ? 0 : 1;
    put_entry(encoded, distance, distance == 0 ? Hello() : hellos[r - distance], hellos[r]);
    last_of_host[host] = r;
  }
  return encoded;
}

Result<std::vector<Hello>> decode_table(Bytes encoded, std::uint32_t size) {
  constexpr std::size_t kLeastEntryBytes = 2;
  Reader reader(encoded);
  std::vector<Hello> hellos;
  if (encoded.size() < kLeastEntryBytes * size) return malformed();
  hellos.reserve(size);
  for (std::uint32_t r = 0; r < size; ++r) {
    ANYCCL_CHECK(read_entry(reader, hellos));
    const Hello& hello = hellos.back();
    ANYCCL_CHECK(check_hello(hello));
    if (hello.rank != r || hello.size != size)
      return error(Code::remote_error, "the root server sent {} in the place of rank {}",
                   describe(hello), r);
  }
  if (!reader.at_end()) return malformed();
  return hellos;
}

}  // namespace anyccl::bootstrap
