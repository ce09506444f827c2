#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "launch/rendezvous.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

Status write_new_file(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return system_error(errno, "make the file {}", path);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_error(errno, "write {}", path);
  return {};
}

/// Writes it to a new file, or to the standard output if `path` is empty.
Status make_secret(const std::string& path) {
  ANYCCL_TRY(const std::string secret, random_secret());
  if (!path.empty()) return write_new_file(path, secret + "\n");
  fmt::print("{}\n", secret);
  return {};
}

Body declare(CLI::App& app, const Command&) {
  const auto path = std::make_shared<std::string>();
  app.add_option("file", *path, "New file, which only this user can read; default: print it");
  app.footer(
      "Whoever knows the secret of a job can join it. Make a new one for every job, and bring it "
      "to\n"
      "all nodes: anyccl run --secret-file FILE, or the variable ANYCCL_SECRET.");
  return [path] {
    const Status made = make_secret(*path);
    if (made.ok()) return 0;
    fmt::print(stderr, "anyccl secret: {}\n", made.message());
    return 1;
  };
}

}  // namespace

const Verb verb_secret{"secret", "Make a secret for a job on several nodes", declare};

}  // namespace anyccl::cli
