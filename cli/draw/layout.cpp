#include "draw/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace anyccl::cli {
namespace {

constexpr int kLeft = 84, kRight = 16, kTop = 64;  // around the columns
constexpr int kLeastWidth = 600;                   // the legend's
constexpr int kBetweenColumns = 36, kBetweenRacks = 6, kBetweenLines = 4, kBetweenMarks = 22;
constexpr int kPadding = 12;      // of a band
constexpr int kBoxesPerLine = 8;  // of a rack

/// Chunks that a rank sends at once, in one or more messages. They are drawn once.
struct Parcel {
  std::vector<Chunk> chunks;
  std::vector<std::size_t> messages;
};

/// All that a rank sends in a round.
using Parcels = std::vector<Parcel>;

struct Size {
  int width = 0, height = 0;
};

class Layouter {
 public:
  explicit Layouter(const Movement& m)
      : m_(m),
        ranks_(static_cast<std::size_t>(m.shape.size)),
        sent_(m.cost.rounds, std::vector<Parcels>(ranks_)),
        done_(m.cost.rounds, std::vector<std::vector<std::size_t>>(ranks_)),
        arriving_(m.actions.size()) {}

  Layout run() && {
    sort_messages();
    sort_actions();
    set_columns();
    to_.arrows.resize(m_.messages.size());
    to_.heads = kTop;
    int y = kTop + kHeadHeight + (m_.shape.host_of.empty() ? 0 : kHeadHeight / 2 + 4);
    to_.before = place_memory(m_.before, y);
    y = to_.before.bottom;
    for (std::size_t round = 0; round < sent_.size(); ++round) y = place_round(round, y);
    to_.after = place_memory(m_.after, y);
    to_.legend = to_.after.bottom + kPadding;
    to_.width = std::max(kLeastWidth, to_.columns.back() + to_.column_width / 2 + kRight);
    return std::move(to_);
  }

 private:
  // --- grouping

  /// Makes one parcel of messages with equal chunks that a rank sends in a round, and lists the
  /// messages that each action reads, by sender.
  void sort_messages() {
    for (std::size_t i = 0; i < m_.messages.size(); ++i) {
      const Message& message = m_.messages[i];
      Parcels& parcels = sent_[message.round - 1][uindex(message.from)];
      auto same = std::find_if(parcels.begin(), parcels.end(),
                               [&](const Parcel& p) { return p.chunks == message.chunks; });
      if (same == parcels.end()) same = parcels.insert(same, Parcel{message.chunks, {}});
      same->messages.push_back(i);
      arriving_[message.action].push_back(i);
    }
    for (auto& messages : arriving_)
      std::stable_sort(messages.begin(), messages.end(), [&](std::size_t a, std::size_t b) {
        return m_.messages[a].from < m_.messages[b].from;
      });
  }

  void sort_actions() {
    for (std::size_t i = 0; i < m_.actions.size() && !done_.empty(); ++i) {
      const std::uint32_t round = std::max(1U, m_.actions[i].round);
      done_[round - 1][uindex(m_.actions[i].rank)].push_back(i);
    }
  }

  // --- across

  /// Sets the size of the boxes, then columns wide enough for what ranks have and send.
  void set_columns() {
    Origin last = 0;
    std::size_t most = 1;
    const auto look_at = [&](const std::vector<Chunk>& chunks) {
      for (const Chunk& c : chunks) last = std::max(last, c.number);
      most = std::max(most, chunks.size());
    };
    for (const auto& chunks : m_.before) look_at(chunks);
    for (const auto& chunks : m_.after) look_at(chunks);
    for (const Message& message : m_.messages) look_at(message.chunks);
    const int digits = static_cast<int>(fmt::formatted_size("{}", last));
    const bool stripes = m_.combine != Combine::none;
    to_.box_width = std::max({stripes ? 28 : 22, 8 + 7 * digits, stripes ? m_.shape.size : 0});
    to_.box_height = kNumberHeight + (stripes ? kStripesHeight : 0);
    to_.column_width = std::max(104, rack_size(most).width + kBetweenRacks);
    for (const auto& round : sent_)
      for (const Parcels& parcels : round)
        to_.column_width = std::max(to_.column_width, std::min(width_of(parcels), widest_line()));
    for (int r = 0; r < m_.shape.size; ++r)
      to_.columns.push_back(kLeft + to_.column_width / 2 +
                            r * (to_.column_width + kBetweenColumns));
  }

  int widest_line() const { return kBoxesPerLine * (to_.box_width + kBetweenRacks); }

  int width_of(const Parcels& parcels) const {
    return line_size(parcels, 0, parcels.size()).width + kBetweenRacks;
  }

  Size rack_size(std::size_t chunks) const {
    const int count = static_cast<int>(chunks);
    return {std::min(count, kBoxesPerLine) * to_.box_width,
            (count + kBoxesPerLine - 1) / kBoxesPerLine * to_.box_height};
  }

  void place_rack(const std::vector<Chunk>& chunks, Point corner) {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const int n = static_cast<int>(i);
      to_.boxes.push_back({{corner.x + n % kBoxesPerLine * to_.box_width,
                            corner.y + n / kBoxesPerLine * to_.box_height},
                           chunks[i]});
    }
  }

  // --- down

  Band place_memory(const std::vector<std::vector<Chunk>>& memory, int top) {
    int height = to_.box_height;
    for (std::size_t r = 0; r < ranks_; ++r) {
      const Size size = rack_size(memory[r].size());
      place_rack(memory[r], {to_.columns[r] - size.width / 2, top + kPadding});
      height = std::max(height, size.height);
    }
    return {top, top + height + 2 * kPadding};
  }

  int place_round(std::size_t round, int top) {
    int parcels = to_.box_height;
    std::size_t actions = 0;
    for (std::size_t r = 0; r < ranks_; ++r) {
      parcels = std::max(parcels, height_of(sent_[round][r]));
      actions = std::max(actions, done_[round][r].size());
    }
    const int leave = top + kPadding + parcels;
    const int arrive = leave + arrows_height(round);
    for (std::size_t r = 0; r < ranks_; ++r) {
      place_parcels(sent_[round][r], r, leave);
      for (std::size_t i = 0; i < done_[round][r].size(); ++i)
        place_action(done_[round][r][i],
                     {to_.columns[r], arrive + static_cast<int>(i) * kBetweenMarks});
    }
    const int marks = std::max(0, static_cast<int>(actions) - 1) * kBetweenMarks;
    to_.rounds.push_back({top, arrive + marks + kMarkHeight / 2 + kPadding});
    return to_.rounds.back().bottom;
  }

  /// Room to keep the longest arrow from being flat, and to tell many at one rank apart.
  int arrows_height(std::size_t round) const {
    int span = 0;
    std::size_t most = 1;
    for (const Parcels& parcels : sent_[round])
      for (const Parcel& parcel : parcels)
        for (std::size_t i : parcel.messages)
          span = std::max(span, std::abs(to_.columns[uindex(m_.messages[i].to)] -
                                         to_.columns[uindex(m_.messages[i].from)]));
    for (const auto& actions : done_[round])
      for (std::size_t a : actions) most = std::max(most, arriving_[a].size());
    return 22 + std::min(span / 10, 200) + 6 * static_cast<int>(most);
  }

  /// The first parcel of each line, with the parcels side by side in as many lines as needed.
  std::vector<std::size_t> lines_of(const Parcels& parcels) const {
    std::vector<std::size_t> first;
    int width = 0;
    for (std::size_t i = 0; i < parcels.size(); ++i) {
      const int more = rack_size(parcels[i].chunks.size()).width + kBetweenRacks;
      if (first.empty() || width + more > to_.column_width) {
        first.push_back(i);
        width = 0;
      }
      width += more;
    }
    return first;
  }

  /// The size of the parcels [first, last) in one line.
  Size line_size(const Parcels& parcels, std::size_t first, std::size_t last) const {
    Size size{-kBetweenRacks, 0};
    for (std::size_t i = first; i < last; ++i) {
      const Size rack = rack_size(parcels[i].chunks.size());
      size = {size.width + rack.width + kBetweenRacks, std::max(size.height, rack.height)};
    }
    return size;
  }

  int height_of(const Parcels& parcels) const {
    const std::vector<std::size_t> first = lines_of(parcels);
    int height = 0;
    for (std::size_t i = 0; i < first.size(); ++i)
      height += line_size(parcels, first[i], end_of(first, i, parcels)).height + kBetweenLines;
    return height;
  }

  static std::size_t end_of(const std::vector<std::size_t>& first, std::size_t line,
                            const Parcels& parcels) {
    return line + 1 < first.size() ? first[line + 1] : parcels.size();
  }

  /// The last line ends at `bottom`. Sets where the arrows of the parcels' messages begin.
  void place_parcels(const Parcels& parcels, std::size_t rank, int bottom) {
    const std::vector<std::size_t> first = lines_of(parcels);
    int y = bottom - height_of(parcels) + kBetweenLines;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const std::size_t end = end_of(first, i, parcels);
      const Size line = line_size(parcels, first[i], end);
      int x = to_.columns[rank] - line.width / 2;
      for (std::size_t p = first[i]; p < end; ++p) {
        const Size rack = rack_size(parcels[p].chunks.size());
        place_rack(parcels[p].chunks, {x, y + line.height - rack.height});
        for (std::size_t m : parcels[p].messages) {
          to_.arrows[m].message = m;
          to_.arrows[m].from = {x + rack.width / 2, y + line.height};
        }
        x += rack.width + kBetweenRacks;
      }
      y += line.height + kBetweenLines;
    }
  }

  /// Puts the action's mark at `at`, where the arrows of its messages end side by side, in the
  /// order of their senders.
  void place_action(std::size_t action, Point at) {
    const std::vector<std::size_t>& messages = arriving_[action];
    const int count = static_cast<int>(messages.size());
    const int step = std::min(14, to_.column_width / std::max(1, count));
    const int height = m_.actions[action].sums.empty() ? kDotHeight : kMarkHeight;
    to_.marks.push_back({at, std::max(0, count - 1) * step + height, action});
    for (int i = 0; i < count; ++i)
      to_.arrows[messages[static_cast<std::size_t>(i)]].to = {at.x + (2 * i - count + 1) * step / 2,
                                                              at.y - height / 2};
  }

  const Movement& m_;
  std::size_t ranks_;
  std::vector<std::vector<Parcels>> sent_;                   // [round][rank]
  std::vector<std::vector<std::vector<std::size_t>>> done_;  // [round][rank]: actions
  std::vector<std::vector<std::size_t>> arriving_;           // [action]: messages
  Layout to_;
};

}  // namespace

Layout layout_of(const Movement& movement) {
  return Layouter(movement).run();
}

}  // namespace anyccl::cli
