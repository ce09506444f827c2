#include "platform/probe/cgroup.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "platform/probe/text_file.hpp"

namespace anyccl::probe {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool has_word(std::string_view comma_list, std::string_view word) {
  const auto words = split(comma_list, ',');
  return std::ranges::find(words, word) != words.end();
}

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t k) { return text[k] >= '0' && text[k] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

enum class Version { v1, v2 };

/// The path of the process within the hierarchy that has a controller, such as cpu.
std::optional<std::string> own_path(std::string_view membership, Version version,
                                    std::string_view controller) {
  for (const std::string_view line : split(membership, '\n')) {
    // hierarchy:controllers:path; version 2 has no controllers, and the path may contain colons.
    const std::size_t first = line.find(':');
    if (first == line.npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool wanted = version == Version::v2 ? line.substr(0, first) == "0" && controllers.empty()
                                               : has_word(controllers, controller);
    if (wanted && line.substr(second + 1).starts_with('/'))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

struct Mount {
  std::string root;   ///< Which part of the hierarchy is mounted.
  std::string point;  ///< Where.
};

std::vector<Mount> cgroup_mounts(std::string_view mounts, Version version,
                                 std::string_view controller) {
  std::vector<Mount> found;
  for (const std::string_view line : split(mounts, '\n')) {
    // id parent device root point options [optional...] - type source super-options
    const auto fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const bool wanted = version == Version::v2
                            ? dash[1] == "cgroup2"
                            : dash[1] == "cgroup" && has_word(dash[3], controller);
    if (wanted) found.push_back({unescaped(fields[3]), unescaped(fields[4])});
  }
  return found;
}

/// `path` below the root of the mount; nothing if it lies elsewhere, as it can in a container that
/// shows the host's paths: then the mount point is the best that is known.
std::string below_root(const std::string& path, const std::string& root) {
  if (root == "/") return path == "/" ? "" : path;
  if (!path.starts_with(root)) return {};
  const std::string rest = path.substr(root.size());
  return rest.starts_with('/') ? rest : std::string();
}

double quota_in(const std::string& folder, Version version) {
  std::istringstream text(version == Version::v2 ? read_text(folder + "/cpu.max")
                                                 : read_text(folder + "/cpu.cfs_quota_us") + " " +
                                                       read_text(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;  // "max 100000" and "-1" mean no limit.
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return kNoLimit;
  return quota / period;
}

/// The number behind `key` in lines of "key number", or 0.
double value_of(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  std::string name;
  for (double value = 0; lines >> name >> value;)
    if (name == key) return value;
  return 0;
}

double memory_left_in(const std::string& folder, Version version) {
  const bool v2 = version == Version::v2;
  std::istringstream text(read_text(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes")) +
                          " " +
                          read_text(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes")));
  double most = 0, used = 0;  // "max": no limit
  if (!(text >> most >> used)) return kNoLimit;
  const std::string stat = read_text(folder + "/memory.stat"), prefix = v2 ? "" : "total_";
  // Pages of files can be had back.
  const double files =
      value_of(stat, prefix + "inactive_file") + value_of(stat, prefix + "active_file");
  return std::max(0.0, most - used + files);
}

/// The least of what `in` says of the process's own cgroup and those above it, as far up as they
/// are mounted.
double least_of(std::string_view membership, std::string_view mounts, std::string_view controller,
                double (*in)(const std::string& folder, Version version)) {
  double least = kNoLimit;
  for (const Version version : {Version::v1, Version::v2}) {
    const auto path = own_path(membership, version, controller);
    if (!path) continue;
    for (const Mount& mount : cgroup_mounts(mounts, version, controller)) {
      std::string below = below_root(*path, mount.root);
      while (true) {
        least = std::min(least, in(mount.point + below, version));
        if (below.empty()) break;
        below.erase(below.rfind('/'));
      }
    }
  }
  return least;
}

}  // namespace

double cgroup_quota(std::string_view membership, std::string_view mounts) {
  return least_of(membership, mounts, "cpu", quota_in);
}

double cgroup_memory_left(std::string_view membership, std::string_view mounts) {
  return least_of(membership, mounts, "memory", memory_left_in);
}

double memory_left() {
  return cgroup_memory_left(read_text("/proc/self/cgroup"), read_text("/proc/self/mountinfo"));
}

}  // namespace anyccl::probe
