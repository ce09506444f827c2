#include "errors.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

namespace anyccl::torch {
namespace {

bool says(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

/// The peer may live, and the way to it is broken.
bool is_of_network(std::string_view text) {
  constexpr std::array kWords = {"acknowledged nothing", "damaged",         "cannot connect to",
                                 "cannot reach",         "could not reach", "no connection in time",
                                 "no network address",   "find the address"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view words) { return says(text, words); });
}

/// In the words of Gloo and NCCL that programs look for.
std::string words_of(anycclResult_t code, std::string_view name, std::string text) {
  if (text.empty()) text = anycclGetErrorString(code);
  if (code == anycclTimeout)
    text = "Timed out in " + std::string(name) + ": " + text;
  else if (says(text, " died") || says(text, " has left the communicator") ||
           says(text, "all others are gone"))
    text += " (Connection closed by peer)";
  if (const auto at = text.find("timeout after"); at != std::string::npos)
    text.replace(at, sizeof "timeout" - 1, "timed out");
  return "anyccl: " + text;
}

template <typename Error>
std::exception_ptr make_error(const std::string& text) {
  return std::make_exception_ptr(
      Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text));
}

}  // namespace

std::exception_ptr failure(anycclResult_t code, std::string_view name, std::string text) {
  const std::string words = words_of(code, name, std::move(text));
  if (code == anycclInvalidArgument) return make_error<c10::Error>(words);
  return is_of_network(words) ? make_error<c10::DistNetworkError>(words)
                              : make_error<c10::DistBackendError>(words);
}

std::exception_ptr failure(anycclResult_t code, std::string_view name) {
  return failure(code, name, anycclGetLastError(nullptr));
}

void throw_backend_error(const std::string& text) {
  C10_THROW_ERROR(DistBackendError, text);
}

std::string awaited_text() {
  const std::string text = anycclGetLastError(nullptr);
  const auto at = text.find(": ");
  return at == std::string::npos ? "" : text.substr(at);
}

void throw_timed_out(std::chrono::milliseconds time, c10d::OpType operation,
                     const std::string& awaited) {
  throw_backend_error("anyccl: Timed out waiting " + std::to_string(time.count()) + " ms for " +
                      c10d::opTypeToString(operation) + "; it goes on" + awaited);
}

}  // namespace anyccl::torch
