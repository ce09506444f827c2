// The one file that knows SimGrid, of version 3.32: later ones make hosts and zones in another way.
// The tool opens this module only when it is asked for it: SimGrid's libraries take longer to start
// than the tool.

#include <algorithm>
#include <functional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include "simulate/simgrid.hpp"

namespace anyccl::cli {

namespace {

namespace s4u = simgrid::s4u;
namespace routing = simgrid::kernel::routing;
using simgrid::kernel::timer::Timer;

/// Routes of our network, without SimGrid's tables. The latency belongs to a message and not to its
/// links.
class RouteZone : public routing::NetZoneImpl {
 public:
  RouteZone(const Network& network, const Machine& machine)
      : NetZoneImpl("anyccl"), network_(network), machine_(machine) {
    for (std::uint32_t end = 0; end < network.ends(); ++end)
      hosts_.push_back(get_iface()->create_host("end" + std::to_string(end), 1e9)->seal());
    for (std::size_t i = 0; i < network.links().size(); ++i) {
      const double own = network.classes()[network.links()[i].link_class].bytes_per_s;
      links_.push_back(
          get_iface()
              ->create_link("link" + std::to_string(i), own > 0 ? own : machine.bytes_per_s)
              ->set_latency(0)
              ->seal());
    }
    get_iface()->seal();
  }
  s4u::Host* host(std::uint32_t end) const { return hosts_[end]; }
  /// Returns the latency of a message, and leaves its route in way_.
  double latency_s(std::uint32_t from, std::uint32_t to) {
    way_.clear();
    network_.route(from, to, way_);
    return machine_.alpha_s + static_cast<double>(way_.size()) * machine_.hop_s;
  }

 private:
  void get_local_route(const routing::NetPoint* from, const routing::NetPoint* to,
                       routing::Route* into, double* latency) override {
    const double own =
        latency_s(static_cast<std::uint32_t>(from->id()), static_cast<std::uint32_t>(to->id()));
    for (const std::uint32_t link : way_) into->link_list_.push_back(links_[link]->get_impl());
    if (latency != nullptr) *latency += own;
  }
  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}

  const Network& network_;
  const Machine& machine_;
  std::vector<s4u::Host*> hosts_;
  std::vector<s4u::Link*> links_;
  std::vector<std::uint32_t> way_;
};

/// The steps of all ranks, taken in the callbacks of messages and timers: no rank is an actor.
class Run {
 public:
  Run(const RankPrograms& programs, const Network& network, const Machine& machine, double bytes,
      const std::vector<std::uint32_t>& place)
      : programs_(programs),
        machine_(machine),
        chunk_bytes_(programs.chunks_per_block() == 0 ? 0 : bytes / programs.chunks_per_block()),
        place_(place),
        zone_(new RouteZone(network, machine)),  // SimGrid's engine deletes it
        ranks_(programs.ranks()) {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].balance.resize(programs.senders(r).size());
    }
  }

  /// Runs the steps of all ranks to the end. False: a rank waits for ever.
  bool run(s4u::Engine& engine, ReplayResult& result) {
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
      if (const auto* message = activity.get_data<Message>()) arrive(*message);
    });
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) advance(r);
    engine.run();
    for (const RankState& rank : ranks_) result.done.push_back(rank.done);
    result.seconds = *std::max_element(result.done.begin(), result.done.end());
    result.messages = arrived_;
    return arrived_ == programs_.messages() &&
           std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& r) { return r.is_done; });
  }

 private:
  struct Message {
    std::uint32_t from = 0, to = 0;
    s4u::CommPtr comm;
  };
  struct RankState {
    std::uint32_t step = 0, missing = 0;
    bool waits = false, is_done = false;
    double done = 0;
    std::vector<std::int32_t> balance;  ///< As in Replay.
  };

  void later(double seconds, std::function<void()> what) {
    Timer::set(s4u::Engine::get_clock() + seconds, std::move(what));
  }

  void send(std::uint32_t from, std::uint32_t to, double bytes) {
    auto* message = new Message{from, to, nullptr};
    if (bytes < 1)  // a latency and no flow
      return later(zone_->latency_s(place_[from], place_[to]),
                   [this, message] { arrive(*message); });
    message->comm = s4u::Comm::sendto_init(zone_->host(place_[from]), zone_->host(place_[to]));
    message->comm->set_payload_size(static_cast<std::uint64_t>(bytes));
    message->comm->set_data(message);
    message->comm->start();
  }

  void arrive(const Message& message) {
    ++arrived_;
    const std::uint32_t to = message.to;
    const auto senders = programs_.senders(to);
    const auto sender =
        std::lower_bound(senders.begin(), senders.end(), programs_.distance(to, message.from));
    RankState& rank = ranks_[to];
    if (++rank.balance[static_cast<std::size_t>(sender - senders.begin())] > 0) return;
    if (--rank.missing == 0) advance(to);
  }

  void advance(std::uint32_t r) {
    RankState& rank = ranks_[r];
    const auto steps = programs_.steps(r);
    for (; rank.step < steps.size(); ++rank.step) {
      const ProgramStep& step = steps[rank.step];
      if (!step.sends && !take_or_expect(r, step)) return;
      const double cost =
          step.sends ? send_all(r, step)
                     : machine_.gamma_s_per_byte * chunk_bytes_ * step.chunks * step.additions;
      if (cost == 0) continue;
      return later(cost, [this, r] {
        ++ranks_[r].step;
        advance(r);
      });
    }
    rank.is_done = true;
    rank.done = s4u::Engine::get_clock();
  }

  /// Returns how long the rank is busy.
  double send_all(std::uint32_t r, const ProgramStep& step) {
    const double bytes = chunk_bytes_ * step.chunks;
    double leaves = 0;
    for (const std::uint32_t distance : programs_.peers_of(r, step)) {
      const std::uint32_t to = programs_.rank_after(r, distance);
      if (leaves == 0)
        send(r, to, bytes);
      else
        later(leaves, [this, r, to, bytes] { send(r, to, bytes); });
      leaves += machine_.overhead_s;
    }
    return leaves;
  }

  /// Returns whether all messages of the step are there.
  bool take_or_expect(std::uint32_t r, const ProgramStep& step) {
    RankState& rank = ranks_[r];
    if (!rank.waits)
      for (const std::uint32_t sender : programs_.peers_of(r, step))
        if (--rank.balance[sender] < 0) ++rank.missing;
    rank.waits = rank.missing > 0;
    return !rank.waits;
  }

  const RankPrograms& programs_;
  const Machine& machine_;
  const double chunk_bytes_;
  const std::vector<std::uint32_t>& place_;
  RouteZone* const zone_;
  std::vector<RankState> ranks_;
  std::uint64_t arrived_ = 0;
};

}  // namespace

/// See SimGridRun.
extern "C" [[gnu::visibility("default")]] bool anyccl_run_simgrid(
    const RankPrograms& programs, const Network& network, const Machine& machine, double bytes,
    const std::vector<std::uint32_t>& place, ReplayResult& result) {
  // CM02 without SimGrid's corrections for TCP over long distances: a message is a latency and a
  // flow.
  std::string words[] = {"anyccl",
                         "--cfg=network/model:CM02",
                         "--cfg=network/crosstraffic:0",
                         "--cfg=network/TCP-gamma:0",
                         "--cfg=surf/precision:1e-9",
                         "--log=root.thres:critical"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int count = static_cast<int>(std::size(words));
  s4u::Engine engine(&count, arguments.data());
  return (new Run(programs, network, machine, bytes, place))->run(engine, result);
}

}  // namespace anyccl::cli
