#include "platform/bootstrap/mesh/on_demand.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/group/known_paths.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

/// In which a call of the higher rank comes, if it wants the connection, too.
constexpr milliseconds kHeadStart{5};
/// A call that got nowhere until then may never get there: a firewall lets only the other one
/// through.
constexpr milliseconds kYieldTime{250};
/// Sockets that are being connected at the same time.
constexpr std::size_t kMostDials = 64;

}  // namespace

OnDemand::OnDemand(Listeners listeners, std::shared_ptr<const std::vector<Hello>> members, Rank me,
                   const Secret& secret, bool force_tcp, OwnNetwork own, milliseconds limit,
                   bool encrypts, bool reconnects)
    : unix_listener_(std::move(listeners.unix_socket)),
      tcp_listeners_([&] {
        std::vector<PrivateFd> all;
        for (TcpListener& tcp : listeners.tcp) all.emplace_back(std::move(tcp.socket));
        return all;
      }()),
      members_(std::move(members)),
      me_(uindex(me)),
      secret_(secret),
      force_tcp_(force_tcp),
      encrypts_(encrypts),
      reconnects_(reconnects),
      limit_(limit),
      own_(std::move(own)),
      acceptor_(
          this->listeners(), secret, me_, Trust::secret,
          [this](std::uint32_t from) { return make_way_for(from); }, encrypts),
      connected_(members_->size()),
      excluded_(members_->size()) {
  excluded_[me_] = true;
}

std::vector<Acceptor::Listener> OnDemand::listeners() const {
  std::vector<Acceptor::Listener> all{{unix_listener_.get(), true}};
  for (const PrivateFd& tcp : tcp_listeners_) all.push_back({tcp.get(), false});
  return all;
}

void OnDemand::want(Rank peer) {
  if (!connected_[uindex(peer)]) call(peer, limit_);
}

void OnDemand::want_again(Rank peer, milliseconds limit) {
  connected_[uindex(peer)] = false;
  call(peer, limit);
}

void OnDemand::give_up() {
  calls_.clear();
  outcomes_.clear();
  std::fill(excluded_.begin(), excluded_.end(), true);
}

void OnDemand::call(Rank peer, milliseconds limit) {
  if (excluded_[uindex(peer)]) return;
  const bool leads = me_ > uindex(peer);
  const milliseconds wait = leads ? milliseconds(0) : kHeadStart;
  calls_.try_emplace(uindex(peer),
                     Call{Deadline::in(wait), Deadline::in(kYieldTime), Deadline::in(limit), {}});
}

void OnDemand::append_wanted(std::vector<pollfd>& entries) {
  const std::size_t before = entries.size();
  acceptor_.append_wanted(entries);
  accepting_entries_ = entries.size() - before;
  for (const auto& [peer, call] : calls_)
    if (call.dial) call.dial->append_wanted(entries);
}

int OnDemand::poll_ms(int most) const {
  most = acceptor_.poll_ms(most);
  for (const auto& [peer, call] : calls_)
    most = call.limit.poll_ms(call.dial ? call.dial->poll_ms(most) : call.begins.poll_ms(most));
  return most;
}

void OnDemand::progress(std::span<const pollfd> entries) {
  if (const Status s = acceptor_.progress(entries.first(accepting_entries_)); !s.ok())
    log(LogSubsystem::net, "rank {} could not let a rank in: {}", me_, s.message());
  take_accepted();
  advance_calls();
}

// --- calls from others ---------------------------------------------------------------------------

bool OnDemand::make_way_for(std::uint32_t from) {
  if (from >= members_->size() || excluded_[from] || (connected_[from] && !reconnects_))
    return false;
  const auto call = calls_.find(from);
  if (call == calls_.end() || !call->second.dial) return true;
  const bool leads = me_ > from;
  if (leads && (call->second.dial->committed() || !call->second.yields.passed())) return false;
  call->second.dial.reset();
  call->second.begins = Deadline::in(kHeadStart);  // if nothing comes of it
  return true;
}

void OnDemand::take_accepted() {
  for (Connection& connection : acceptor_.take_authenticated()) {
    const std::uint32_t peer = connection.from;
    if (!connected_[peer] || reconnects_) note_connected(std::move(connection), peer);
  }
}

void OnDemand::note_connected(Connection connection, std::uint32_t peer) {
  connected_[peer] = true;
  calls_.erase(peer);
  const bool is_here = same_process((*members_)[me_], (*members_)[peer]) &&
                       leads_to_this_process(connection.socket.get());
  outcomes_.push_back({Rank{static_cast<std::int32_t>(peer)},
                       {},
                       {.rank = Rank{static_cast<std::int32_t>(peer)},
                        .fd = std::move(connection.socket),
                        .local = connection.local,
                        .same_process = is_here,
                        .session = connection.session,
                        .secure = std::move(connection.secure)}});
}

// --- own calls -----------------------------------------------------------------------------------

std::size_t OnDemand::count_dials() const {
  return static_cast<std::size_t>(std::count_if(
      calls_.begin(), calls_.end(), [](const auto& call) { return call.second.dial.has_value(); }));
}

void OnDemand::advance_calls() {
  std::size_t dials = count_dials();
  for (auto it = calls_.begin(); it != calls_.end();) {
    const auto at = it++;  // the call may end
    auto& [peer, call] = *at;
    const bool waits = !call.dial && (!call.begins.passed() || dials >= kMostDials);
    if (waits && !call.limit.passed()) continue;
    if (!call.dial) ++dials;
    advance(peer, call);
  }
}

void OnDemand::advance(std::uint32_t peer, Call& call) {
  Status problem;
  if (!call.dial) problem = start_dial(peer, call);
  if (problem.ok()) problem = call.dial->advance();
  if (!problem.ok()) return note_failed(peer, std::move(problem));
  if (call.dial->done()) {
    Connection made = call.dial->take_connection();
    if (!made.local) KnownPaths::of_process().remember((*members_)[peer], made.to);
    return note_connected(std::move(made), peer);
  }
  if (call.dial->is_refused())
    return note_failed(peer,
                       error(Code::remote_error, "it died or has left: {}", call.dial->problems()));
  if (call.limit.passed())
    note_failed(peer, error(Code::timeout, "no connection in time: {}", call.dial->problems()));
}

Status OnDemand::start_dial(std::uint32_t peer, Call& call) {
  const Hello &mine = (*members_)[me_], &theirs = (*members_)[peer];
  std::vector<Endpoint> endpoints = endpoints_of(mine, theirs, own_, force_tcp_);
  if (endpoints.empty())
    return error(Code::system_error, "it has no network address that this rank could reach");
  std::string note = own_.missing_family(endpoints);
  call.dial.emplace(secret_, Dial::Target{std::move(endpoints), me_, peer, Trust::secret,
                                          std::move(note), encrypts_});
  return {};
}

void OnDemand::note_failed(std::uint32_t peer, Status why) {
  const Rank rank{static_cast<std::int32_t>(peer)};
  const Hello &mine = (*members_)[me_], &theirs = (*members_)[peer];
  calls_.erase(peer);
  excluded_[peer] = true;
  outcomes_.push_back({rank, error(why.code(), "{} cannot reach {}: {}", describe(mine),
                                   describe(theirs), why.message())});
}

}  // namespace anyccl::bootstrap
