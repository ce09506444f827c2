#pragma once

#include <cstdint>
#include <vector>

#include "simulate/event_queue.hpp"
#include "simulate/machine.hpp"
#include "simulate/network.hpp"

namespace anyccl::cli {

/// Messages on their way. After its latency a message is a flow over all links of its route at
/// once, whose rate is the least of what its links have for each of their flows; what a flow leaves
/// over is not given to others.
class Flows {
 public:
  struct Message {
    std::uint32_t from = 0, to = 0;  ///< Ends.
    std::uint32_t tag = 0;           ///< The caller's.
  };
  /// All three outlive it.
  Flows(const Network& network, const Machine& machine, EventQueue& queue);

  /// The message begins its way at `leaves`, is on its links after `latency_s` and the machine's
  /// time for each of them, and is never faster than `most_bytes_per_s`.
  void send(double leaves, const Message& message, double bytes, double latency_s,
            double most_bytes_per_s);
  /// The message is there at `time`, without links.
  void deliver(double time, const Message& message);
  /// Handles an event of the queue. Returns whether a message has arrived, which is then `arrived`.
  bool handle(double now, const Event& event, Message& arrived);
  /// Gives flows their rates again after events of one time.
  void update_rates(double now);
  /// What each link of the network has carried or will carry, in bytes.
  const std::vector<double>& carried() const { return carried_; }

 private:
  struct Flow {
    Message message;
    double left = 0, rate = 0, since = 0;  ///< Bytes, bytes/s, and when `left` was right.
    double most = 0;                       ///< Bytes/s.
    std::uint32_t version = 0;
    std::uint32_t first_hop = 0, hops = 0;
  };
  struct Hop {
    std::uint32_t link = 0, place = 0;  ///< Where this hop is in sharers_[link].
  };
  struct Sharer {
    std::uint32_t flow = 0, hop = 0;  ///< Number of the hop in hops_.
  };

  std::uint32_t new_flow();
  std::uint32_t take_hops(std::uint32_t hops);
  /// Enters the flow at its links; update_rates() gives it a rate.
  void begin(double now, std::uint32_t flow);
  /// Takes the flow off its links; handle() frees its number.
  void end(std::uint32_t flow);
  void note_changed(std::uint32_t link);
  void update_rates_of(double now, std::uint32_t link, double before);

  const Network& network_;
  const Machine& machine_;
  EventQueue& queue_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<Hop> hops_;
  std::vector<std::vector<std::uint32_t>> free_hops_;  ///< First hops, by how many follow.
  std::vector<std::vector<Sharer>> sharers_;           ///< By link.
  std::vector<double> capacity_, share_;  ///< By link, in bytes/s; of each of its flows.
  std::vector<double> carried_;
  std::vector<std::uint32_t> touched_;
  std::vector<bool> is_touched_;
  std::vector<double> shares_before_;
  std::vector<std::uint32_t> way_;  ///< That of the message that is being sent.
};

}  // namespace anyccl::cli
