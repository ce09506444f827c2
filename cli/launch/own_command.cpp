#include "launch/own_command.hpp"

#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/error.hpp"

namespace anyccl::cli {

Result<std::string> own_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length < 0) return system_error(errno, "read /proc/self/exe");
  return std::string(path, static_cast<std::size_t>(length));
}

Result<std::vector<std::string>> own_command() {
  std::vector<std::string> command;
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(arguments, argument, '\0');) command.push_back(argument);
  if (command.empty()) return error(Code::system_error, "read /proc/self/cmdline: it is empty");
  ANYCCL_TRY(command.front(), own_path());
  return command;
}

}  // namespace anyccl::cli
