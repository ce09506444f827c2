#pragma once
// A program can look at a message before it receives it. MessageMatcher shows a Probe what comes.

#include <fmt/core.h>

#include "framework/call/call.hpp"
#include "framework/call/operation.hpp"

namespace anyccl {

/// A message as its receiver sees it before it receives it.
struct MessageFacts {
  Rank source{};
  std::uint32_t tag = 0;
  DType dtype{};
  std::size_t count = 0;
};

/// Waits until there is a message that a receive would get if it were called now. The message stays
/// where it is.
class Probe final : public Operation {
 public:
  /// `source` may be kAnySource.
  Probe(Rank source, std::uint32_t tag) : source_(source), tag_(tag) {}
  bool advance() override { return false; }  // the MessageMatcher finds what it looks for
  void awaited(std::vector<Rank>& ranks) const override {
    if (source_ != kAnySource) ranks.push_back(source_);
  }

  std::string what() const override { return fmt::format("a probe with tag {}", tag_); }

  Rank source() const { return source_; }
  std::uint32_t tag() const { return tag_; }
  bool looks_at(Rank from) const { return !done() && (source_ == kAnySource || source_ == from); }
  void find(const MessageFacts& message) {
    message_ = message;
    complete({});
  }
  /// Once it is done without error.
  const MessageFacts& message() const { return message_; }

 private:
  Rank source_;
  std::uint32_t tag_;
  MessageFacts message_;
};

}  // namespace anyccl
