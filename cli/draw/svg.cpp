#include <fmt/format.h>

#include <map>
#include <string_view>

#include "draw/colours.hpp"
#include "draw/layout.hpp"
#include "draw/picture.hpp"

namespace anyccl::cli {
namespace {

constexpr std::string_view kStyle =
    "text{font-family:sans-serif;font-size:12px;fill:#222}"
    ".title{font-size:17px;font-weight:bold}"
    ".small{font-size:11px}"
    ".middle{text-anchor:middle}"
    ".name{font-weight:bold}"
    ".round{fill:#F6F6F6}"
    ".rank{stroke:#BBB;stroke-width:2}"
    ".frame{fill:none;stroke:#444}"
    ".message line{stroke:#444;stroke-width:1.5}"
    ".message:hover line{stroke:#C00;stroke-width:3}"
    ".mark{fill:#FFF;stroke:#222;stroke-width:1.5}"
    ".dot{fill:#444}";

std::string escaped(std::string_view text) {
  std::string safe;
  for (char c : text) switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  return safe;
}

std::string ranks_of(const Chunk& chunk) {
  return fmt::format("{} {}", chunk.ranks.count() == 1 ? "rank" : "ranks", contributors(chunk));
}

/// "chunk 3 of ranks 0+1, chunk 4 of rank 0"
std::string words(const std::vector<Chunk>& chunks) {
  std::string text;
  for (const Chunk& c : chunks)
    text += fmt::format("{}chunk {} of {}", text.empty() ? "" : ", ", c.number, ranks_of(c));
  return text;
}

class Writer {
 public:
  explicit Writer(const Movement& m) : m_(m), at_(layout_of(m)) {}

  std::string run() && {
    for (const Box& box : at_.boxes) fills_.try_emplace(key(box.chunk), fills_.size());
    const int height = at_.legend + at_.box_height + kLegendLine * legend_lines() + 10;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\">\n",
        at_.width, height);
    put("<title>{}</title>\n<style>{}</style>\n", escaped(title(m_)), kStyle);
    write_definitions();
    put("<rect width=\"{}\" height=\"{}\" fill=\"#FFF\"/>\n", at_.width, height);
    text({16, 26}, "title", title(m_));
    text({16, 46}, "", caption_of(m_));
    write_bands();
    write_ranks();
    for (const Arrow& arrow : at_.arrows) write_arrow(arrow);
    for (const Box& box : at_.boxes) write_box(box);
    for (const Mark& mark : at_.marks) write_mark(mark);
    write_legend();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void text(Point at, std::string_view style, std::string_view words) {
    put("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", style, at.x, at.y, escaped(words));
  }

  // --- boxes: equal ones are defined once

  static std::string key(const Chunk& chunk) { return contributors(chunk); }

  /// Writes the head of arrows and, for each set of contributors, the box that write_box() uses.
  void write_definitions() {
    out_ +=
        "<defs>\n<marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
        "markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
        "<path d=\"M0 1L10 5L0 9z\" fill=\"#222\"/></marker>\n";
    std::map<std::size_t, const Chunk*> by_fill;
    for (const Box& box : at_.boxes) by_fill.try_emplace(fills_.at(key(box.chunk)), &box.chunk);
    for (const auto& [fill, chunk] : by_fill) {
      put("<g id=\"c{}\">", fill);
      write_fill(*chunk);
      put("<rect class=\"frame\" width=\"{}\" height=\"{}\"/></g>\n", at_.box_width,
          at_.box_height);
    }
    out_ += "</defs>\n";
  }

  /// A chunk of one rank fills the box. Below the number of a sum each rank has its place, which is
  /// empty if the rank is missing.
  void write_fill(const Chunk& chunk) {
    const bool stripes = m_.combine != Combine::none;
    const int ranks = stripes ? m_.shape.size : 1;
    const int top = stripes ? kNumberHeight : 0;
    put("<rect width=\"{}\" height=\"{}\" fill=\"#EEE\"/>", at_.box_width, at_.box_height);
    put("<rect width=\"{}\" height=\"{}\" fill=\"#FFF\"/>", at_.box_width, top);
    for (std::size_t r = 0; r < chunk.ranks.size(); ++r)
      if (chunk.ranks.test(r))
        put("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>",
            stripes ? static_cast<double>(r) * at_.box_width / ranks : 0.0, top,
            static_cast<double>(at_.box_width) / ranks, at_.box_height - top, colour(r));
    if (stripes) put("<path class=\"frame\" d=\"M0 {}H{}\"/>", top, at_.box_width);
  }

  void write_box(const Box& box) {
    put("<g class=\"chunk\"><title>chunk {} of {}</title>", box.chunk.number, ranks_of(box.chunk));
    put("<use href=\"#c{}\" x=\"{}\" y=\"{}\"/>", fills_.at(key(box.chunk)), box.at.x, box.at.y);
    put("<text class=\"small middle\" x=\"{}\" y=\"{}\">{}</text></g>\n",
        box.at.x + at_.box_width / 2, box.at.y + 13, box.chunk.number);
  }

  // --- the background

  void write_bands() {
    const auto label = [&](const Band& band, std::string_view name) {
      text({16, (band.top + band.bottom) / 2 + 4}, "name", name);
    };
    label(at_.before, "before");
    for (std::size_t i = 0; i < at_.rounds.size(); ++i) {
      const Band& band = at_.rounds[i];
      if (i % 2 == 0)
        put("<rect class=\"round\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", band.top, at_.width,
            band.bottom - band.top);
      label(band, fmt::format("round {}", i + 1));
    }
    label(at_.after, "after");
  }

  /// Also marks inputs and outputs that are empty.
  void write_ranks() {
    for (std::size_t r = 0; r < at_.columns.size(); ++r) {
      const int x = at_.columns[r], left = x - at_.column_width / 2;
      const bool root = is_rooted(m_.shape.collective) && r == uindex(m_.shape.root);
      put("<line class=\"rank\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/>\n", x, at_.before.top,
          at_.after.top + 12);
      put("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\"/>\n", left,
          at_.heads, at_.column_width, kHeadHeight, colour(r));
      text({x, at_.heads + 15}, "name middle", fmt::format("rank {}{}", r, root ? " (root)" : ""));
      if (!m_.shape.host_of.empty())
        text({x, at_.heads + kHeadHeight + 13}, "small middle",
             fmt::format("host {}", m_.shape.host_of[r]));
    }
    for (std::size_t r = 0; r < at_.columns.size(); ++r) {
      if (m_.before[r].empty()) write_nothing({at_.columns[r], at_.before.top});
      if (m_.after[r].empty()) write_nothing({at_.columns[r], at_.after.top});
    }
  }

  void write_nothing(Point top) {
    put("<rect x=\"{}\" y=\"{}\" width=\"56\" height=\"{}\" fill=\"#FFF\"/>", top.x - 28,
        top.y + 12, at_.box_height);
    text({top.x, top.y + 16 + at_.box_height / 2}, "small middle", "nothing");
  }

  void write_arrow(const Arrow& arrow) {
    const Message& message = m_.messages[arrow.message];
    put("<g class=\"message\"><title>round {}: rank {} sends {} to rank {}: {}</title>",
        message.round, index(message.from), words(message.chunks), index(message.to),
        m_.actions[message.action].name);
    put("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" marker-end=\"url(#head)\"/></g>\n",
        arrow.from.x, arrow.from.y, arrow.to.x, arrow.to.y);
  }

  void write_mark(const Mark& mark) {
    const Action& action = m_.actions[mark.action];
    const bool sums = !action.sums.empty();
    put("<g class=\"{}\"><title>rank {}: {}{}</title>", sums ? "reduce" : "recv",
        index(action.rank), action.name, sums ? ", which makes " + words(action.sums) : "");
    write_pill(mark.at, mark.width, sums);
    out_ += "</g>\n";
  }

  void write_pill(Point at, int width, bool sums) {
    const int height = sums ? kMarkHeight : kDotHeight;
    put("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
        sums ? "mark" : "dot", at.x - width / 2, at.y - height / 2, width, height, height / 2);
    if (sums) put("<text class=\"name middle\" x=\"{}\" y=\"{}\">+</text>", at.x, at.y + 4);
  }

  // --- the legend: only the signs in the picture

  bool has_sums() const {
    for (const Action& action : m_.actions)
      if (!action.sums.empty()) return true;
    return false;
  }
  /// Whether some action only receives, and adds nothing up.
  bool has_kept_messages() const {
    for (const Action& action : m_.actions)
      if (action.sums.empty()) return true;
    return false;
  }
  /// Below the box.
  int legend_lines() const {
    return (m_.messages.empty() ? 0 : 1) + (has_sums() ? 1 : 0) + (has_kept_messages() ? 1 : 0);
  }

  std::string_view box_words() const {
    switch (m_.combine) {
      case Combine::none:
        return "a chunk and its number; the colour is that of the rank it comes from";
      case Combine::sum:
        return "a chunk and its number; the stripes are the ranks whose contributions are in it";
      default:
        return "a signal without bytes; the stripes are the ranks known to have come";
    }
  }

  /// Returns the first chunk with contributions of several ranks, or else the first one.
  const Chunk& example() const {
    for (const Box& box : at_.boxes)
      if (box.chunk.ranks.count() > 1) return box.chunk;
    return at_.boxes[0].chunk;
  }

  void write_legend() {
    int y = at_.legend;
    write_box({{kSigns - at_.box_width / 2, y}, example()});
    const bool repeats = at_.columns.size() > std::size(kColours);
    text({kWords, y + at_.box_height / 2 + 4}, "",
         fmt::format("{}{}", box_words(), repeats ? " (8 colours, in turn)" : ""));
    y += at_.box_height + 6;
    const auto line = [&](std::string_view words) {
      text({kWords, y + 13}, "", words);
      y += kLegendLine;
    };
    if (!m_.messages.empty()) {
      put("<g class=\"key message\"><line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" "
          "marker-end=\"url(#head)\"/></g>",
          kSigns - 18, y + 3, kSigns + 18, y + 14);
      line("a message: the chunks where the arrow starts");
    }
    if (has_sums()) {
      write_pill({kSigns, y + 9}, kMarkHeight, true);
      line(m_.combine == Combine::sum ? "the message is added to the rank's chunks"
                                      : "the message is merged with the rank's signal");
    }
    if (has_kept_messages()) {
      write_pill({kSigns, y + 9}, kDotHeight, false);
      line("the message is kept");
    }
  }

  // The legend.
  static constexpr int kSigns = 40, kWords = 72, kLegendLine = 24;
  const Movement& m_;
  Layout at_;
  std::map<std::string, std::size_t> fills_;  // by key
  std::string out_;
};

}  // namespace

std::string to_svg(const Movement& movement) {
  return Writer(movement).run();
}

}  // namespace anyccl::cli
