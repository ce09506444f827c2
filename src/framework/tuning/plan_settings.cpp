#include "framework/tuning/plan_settings.hpp"

#include <memory>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl {
namespace {

std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

/// A choice that cannot be used does not count, unless it is forced.
template <typename Rules>
Status parse_into(Rules& into, std::string_view text, std::string_view setting, bool forced) {
  Result<Rules> rules = Rules::parse(text, setting);
  if (rules.ok()) {
    into = *std::move(rules);
  } else if (forced) {
    return rules.status();
  } else {
    log(LogSubsystem::tuning, "{}: it does not count, as forceAlgSelection is 0",
        rules.status().message());
  }
  return {};
}

}  // namespace

CallSettingsTable::~CallSettingsTable() {
  for (std::atomic<Entry*>& entry : entries_) delete entry.load(std::memory_order_relaxed);
}

std::size_t CallSettingsTable::find(const Text& text, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& entry = *entries_[i].load(std::memory_order_acquire);
    if (entry.settings.chunk_bytes == text.chunk_bytes && entry.settings.level == text.level &&
        entry.settings.forced == text.forced && entry.settings.output == text.output &&
        entry.settings.accumulate == text.accumulate && entry.settings.leaves == text.leaves &&
        entry.algorithms == text_of(text.algorithms) && entry.protocols == text_of(text.protocols))
      return i;
  }
  return count;
}

Status CallSettingsTable::parse(const Text& text, Entry& into) {
  into.algorithms = text_of(text.algorithms);
  into.protocols = text_of(text.protocols);
  CallSettings& settings = into.settings;
  settings.forced = text.forced;
  settings.chunk_bytes = text.chunk_bytes;
  settings.level = text.level;
  settings.output = text.output;
  settings.accumulate = text.accumulate;
  settings.leaves = text.leaves;
  ANYCCL_CHECK(
      parse_into(settings.algorithms, into.algorithms, "config->algSelection", text.forced));
  return parse_into(settings.protocols, into.protocols, "config->proto", text.forced);
}

Result<std::uint8_t> CallSettingsTable::number_of(const Text& text) {
  const bool changes_nothing = text_of(text.algorithms).empty() &&
                               text_of(text.protocols).empty() && text.chunk_bytes == 0 &&
                               text.level == 0 && !text.output && !text.accumulate &&
                               text.leaves == 0;
  if (changes_nothing && text.tag == 0) return std::uint8_t{0};
  const auto known = count_.load(std::memory_order_acquire);
  std::size_t place = find(text, known);
  if (place == known) {
    const std::lock_guard lock(mutex_);
    const auto count = count_.load(std::memory_order_relaxed);
    place = find(text, count);  // another thread may have been first
    if (place == count) {
      if (count == kMost)
        return error(Code::invalid_usage,
                     "a communicator can have calls of {} different configurations, and this is "
                     "one more",
                     kMost);
      auto entry = std::make_unique<Entry>();
      ANYCCL_CHECK(parse(text, *entry));
      entry->settings.changes_plans = !changes_nothing;
      entries_[count].store(entry.release(), std::memory_order_release);
      count_.store(count + 1, std::memory_order_release);
    }
  }
  std::atomic<std::uint64_t>& tag = entries_[place].load(std::memory_order_acquire)->settings.tag;
  if (tag.load(std::memory_order_relaxed) != text.tag)
    tag.store(text.tag, std::memory_order_relaxed);
  return static_cast<std::uint8_t>(place + 1);
}

}  // namespace anyccl
