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
  /// What `rank` has written; null if it has written nothing.
  const RankDump* dump_of(int rank) const;
  /// Gathers from all dumps what entered(), fate(), process() and node() return. Call it once,
  /// before these: each dump knows all ranks, so to look through them for each question takes hours
  /// where there are a thousand.
  void index_by_rank();
  /// The last collective that it is known to have called; 0: none.
  std::uint64_t entered(int rank) const { return at(rank).entered; }
  /// "dead", "silent", "left", "stopped", or "": as others saw it. A rank that has failed
  /// itself only follows others when it leaves.
  const std::string& fate(int rank) const { return at(rank).fate; }
  /// "host n7, pid 12"; empty: not known.
  const std::string& process(int rank) const { return at(rank).process; }
  /// Equal for all ranks of a process, unless it has several ranks here.
  const std::string& node(int rank) const { return at(rank).node; }

 private:
  struct Known {
    std::uint64_t entered = 0;
    std::string fate, process, node;
  };
  Known& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Known& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  /// Merges in what one dump says of a rank: its last collective, its surest fate and, where it
  /// wrote no dump itself, its process.
  void add(const DumpedPeer& peer);

  std::vector<Known> ranks_;
};

/// By name, then by id. Of two dumps of one rank the later one counts.
std::vector<Group> groups_of(const std::vector<RankDump>& dumps);

}  // namespace anyccl::cli
