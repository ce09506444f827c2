#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace anyccl::cli {

/// Numbers as text, a character for each below 60 and rarely more than two, which a page of HTML
/// and JSON take as they are: digits of base 30, the most significant one first, and a last one of
/// base 60.
class PackedNumbers {
 public:
  PackedNumbers& add(std::uint64_t number) {
    char digits[16];
    std::size_t count = 0;
    for (std::uint64_t rest = number / kLast; rest > 0; rest /= kMore)
      digits[count++] = character(kLast + rest % kMore);
    while (count > 0) text_ += digits[--count];
    text_ += character(number % kLast);
    return *this;
  }
  PackedNumbers& append(const PackedNumbers& others) {
    text_ += others.text_;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr std::uint64_t kLast = 60, kMore = 30;
  /// Printable, and none of " & < and backslash.
  static char character(std::uint64_t digit) {
    constexpr char kCharacters[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
        "yz!#$%()*+,-./:;=>?@[]^_`{|}~ ";
    static_assert(sizeof kCharacters == kLast + kMore + 1);
    return kCharacters[digit];
  }
  std::string text_;
};

/// Texts that occur often, each once.
class Pool {
 public:
  std::uint64_t number_of(const std::string& text) {
    const auto [at, added] = numbers_.try_emplace(text, all_.size());
    if (added) all_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::unordered_map<std::string, std::uint64_t> numbers_;
  std::vector<std::string> all_;
};

}  // namespace anyccl::cli
