#include "platform/probe/process_state.hpp"

#include "platform/probe/text_file.hpp"

namespace anyccl::probe {

/// proc(5): "pid (name) state ...". The name may have any characters, also parentheses.
bool is_stopped(int pid) {
  const std::string line = read_line("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'T' || state == 't';
}

}  // namespace anyccl::probe
