#include "errors.hpp"

#include <c10/util/Exception.h>

namespace anyccl::torch {

std::string words_of(anycclResult_t code, std::string_view name) {
  std::string text = anycclGetLastError(nullptr);
  if (text.empty()) text = anycclGetErrorString(code);
  // Programs look for the words of Gloo and NCCL.
  const auto says = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (code == anycclTimeout)
    text = "Timed out in " + std::string(name) + ": " + text;
  else if (says(" died") || says(" has left the communicator"))
    text += " (Connection closed by peer)";
  if (const auto at = text.find("timeout after"); at != std::string::npos)
    text.replace(at, sizeof "timeout" - 1, "timed out");
  return "anyccl: " + text;
}

std::exception_ptr backend_error(const std::string& text) {
  return std::make_exception_ptr(
      c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text));
}

void throw_backend_error(const std::string& text) {
  C10_THROW_ERROR(DistBackendError, text);
}

}  // namespace anyccl::torch
