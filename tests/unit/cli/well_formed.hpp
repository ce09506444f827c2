#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace anyccl::cli {

/// Reads the XML that the tool writes: elements, quoted attributes and text; no more of XML.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : rest_(text) {}

  /// What is wrong; empty if the text is one well-formed element.
  std::string fault() {
    while (!rest_.empty() && fault_.empty()) {
      if (rest_[0] == '<')
        tag();
      else
        words();
    }
    if (fault_.empty() && !open_.empty()) fault_ = "<" + open_.back() + "> is not closed";
    if (fault_.empty() && roots_ != 1) fault_ = std::to_string(roots_) + " roots";
    return fault_;
  }

 private:
  void words() {
    const std::string_view text = take(std::min(rest_.find('<'), rest_.size()));
    const bool blank =
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) != 0; });
    if (open_.empty() && !blank) fault_ = "text outside of the root";
    check_escapes(text);
  }

  void tag() {
    const std::size_t end = rest_.find('>');
    if (end == std::string_view::npos) return void(fault_ = "a tag without an end");
    std::string_view inside = take(end + 1).substr(1, end - 1);
    if (inside.starts_with('/')) return close(inside.substr(1));
    const bool empty = inside.ends_with('/');
    if (empty) inside.remove_suffix(1);
    const std::size_t name = std::min(inside.find(' '), inside.size());
    roots_ += open_.empty() ? 1 : 0;
    if (name == 0) fault_ = "a tag without a name";
    attributes(inside.substr(name));
    if (!empty) open_.emplace_back(inside.substr(0, name));
  }

  void close(std::string_view name) {
    if (open_.empty() || open_.back() != name)
      fault_ = "</" + std::string(name) + "> closes another element, or none";
    else
      open_.pop_back();
  }

  void attributes(std::string_view text) {
    std::vector<std::string_view> names;
    while (!text.empty() && fault_.empty()) {
      const std::size_t equals = text.find("=\"");
      const std::size_t end =
          equals == std::string_view::npos ? equals : text.find('"', equals + 2);
      if (text[0] != ' ' || end == std::string_view::npos)
        return void(fault_ = "no attribute: " + std::string(text));
      const std::string_view name = text.substr(1, equals - 1);
      if (std::find(names.begin(), names.end(), name) != names.end() ||
          name.find(' ') != std::string_view::npos)
        fault_ = "attribute " + std::string(name);
      names.push_back(name);
      check_escapes(text.substr(equals + 2, end - equals - 2));
      text.remove_prefix(end + 1);
    }
  }

  void check_escapes(std::string_view text) {
    for (std::size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1))
      if (const std::string_view entity = text.substr(at);
          !entity.starts_with("&amp;") && !entity.starts_with("&lt;") &&
          !entity.starts_with("&gt;") && !entity.starts_with("&quot;"))
        fault_ = "a bare &";
    if (text.find('<') != std::string_view::npos) fault_ = "a bare <";
  }

  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  int roots_ = 0;
  std::string fault_;
};

}  // namespace anyccl::cli
