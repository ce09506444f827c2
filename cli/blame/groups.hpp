#pragma once

#include <map>
#include <string>
#include <vector>

#include "blame/dumps.hpp"

namespace anyccl::cli {

/// A communicator, as its ranks have written of it.
struct Group {
  std::string id, name;
  int size = 0;
  std::map<int, const RankDump*> dumps;  ///< By rank; borrowed.

  std::string title() const { return "communicator " + (name.empty() ? id : name); }
  /// Null: it has written none.
  const RankDump* dump_of(int rank) const;
  /// The last collective that it is known to have called; 0: none.
  std::uint64_t entered(int rank) const;
  /// "dead", "left", "stopped", or "": what others saw of it. A rank that has failed itself only
  /// follows others when it leaves.
  std::string fate(int rank) const;
  /// "host n7, pid 12"; empty: not known.
  std::string process(int rank) const;
  /// The same for all ranks of a process, unless it has several ranks here.
  std::string node(int rank) const;
};

/// By id. Of two dumps of one rank the later one counts.
std::vector<Group> groups_of(const std::vector<RankDump>& dumps);

}  // namespace anyccl::cli
