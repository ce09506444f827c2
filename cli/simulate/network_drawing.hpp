#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/network.hpp"

namespace anyccl::cli {

/// Where the nodes and cables of a network are in a picture, in pixels.
class NetworkDrawing {
 public:
  /// The radius of a node.
  static constexpr double kRadius = 11;
  /// `left`, `top`: margins of the picture, for text beside the network. The network outlives the
  /// drawing.
  NetworkDrawing(const Network& network, double left, double top);

  Network::Place at(std::uint32_t node) const { return at_[node]; }
  /// The right lower corner of the drawn nodes and cables.
  Network::Place end() const;
  /// A router of one end is drawn as that end, and the cable between them is not.
  bool is_hidden(const Network::Link& link) const;
  bool is_drawn(std::uint32_t node) const { return !has_map() || node < network_.ends(); }
  /// A path of SVG, bent around the nodes between two of one row or column.
  std::string path(const Network::Link& link) const;
  /// The link in the other direction.
  std::size_t back(std::size_t link) const;

 private:
  bool has_map() const { return !network_.map().empty(); }
  void place_map();
  void place_levels();
  const Network& network_;
  double left_, top_;
  std::vector<Network::Place> at_;  ///< By node.
};

}  // namespace anyccl::cli
