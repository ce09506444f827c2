#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace anyccl::cli {

/// What ranks are connected by: ends, at which ranks are, switches, and links in one direction
/// each. Nodes are numbered level by level; the ends are the first level.
class Network {
 public:
  struct Level {
    std::string name;  ///< One node's: "edge switch".
    std::uint32_t first = 0, count = 0;
  };
  struct LinkClass {
    std::string name;
    double bytes_per_s = 0;  ///< 0: what the machine has.
  };
  struct Link {
    std::uint32_t from = 0, to = 0, link_class = 0;
  };
  struct Place {
    double x = 0, y = 0;
  };
  /// Appends the nodes from one end to another one, both included.
  using Path = std::function<void(std::uint32_t, std::uint32_t, std::vector<std::uint32_t>&)>;

  const std::string& kind() const { return kind_; }
  /// The kind with all its parameters: "torus:dims=4x4". Another network of this text is equal.
  const std::string& text() const { return text_; }
  std::uint32_t ends() const { return levels_[0].count; }
  std::uint32_t nodes() const { return levels_.back().first + levels_.back().count; }
  const std::vector<Level>& levels() const { return levels_; }
  const std::vector<Link>& links() const { return links_; }
  const std::vector<LinkClass>& classes() const { return classes_; }
  /// Where routers are drawn that belong to one end each, in the order of the ends; empty if there
  /// are none.
  const std::vector<Place>& map() const { return map_; }
  std::string name_of(std::uint32_t node) const;
  /// "rank 3 > router 3"
  std::string name_of(const Link& link) const;
  /// Appends the links on the way from one end to another one.
  void route(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& way) const;

 private:
  friend class NetworkWriter;
  std::uint32_t link_between(std::uint32_t from, std::uint32_t to) const;
  std::string kind_, text_;
  std::vector<Level> levels_;
  std::vector<LinkClass> classes_;
  std::vector<Link> links_;                ///< By `from`, then by `to`.
  std::vector<std::uint32_t> first_link_;  ///< By node, and the number of links at the end.
  std::vector<Place> map_;
  Path path_;
};

/// Makes a Network.
class NetworkWriter {
 public:
  NetworkWriter(std::string kind, std::string text);
  /// Returns the number of its first node.
  std::uint32_t add_level(std::string_view name, std::uint32_t count);
  std::uint32_t add_link_class(std::string_view name, double bytes_per_s = 0);
  /// A link in each direction.
  void add_cable(std::uint32_t a, std::uint32_t b, std::uint32_t link_class);
  void map(std::vector<Network::Place> places) { network_.map_ = std::move(places); }
  Network finish(Network::Path path) &&;

 private:
  Network network_;
};

}  // namespace anyccl::cli
