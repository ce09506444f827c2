#include "errors.hpp"

#include <c10/util/Exception.h>

namespace anyccl::torch {

std::string words_of(anycclResult_t code, std::string_view name) {
  std::string text = anycclGetLastError(nullptr);
  if (text.empty()) text = anycclGetErrorString(code);
  // Programs look for "Timed out".
  if (code == anycclTimeout) text = "Timed out in " + std::string(name) + ": " + text;
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
