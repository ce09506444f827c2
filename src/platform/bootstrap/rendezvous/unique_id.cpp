#include "platform/bootstrap/rendezvous/unique_id.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "platform/bootstrap/socket/listeners.hpp"
#include "platform/bootstrap/socket/wire.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::array<char, 8> kMagic{'a', 'n', 'y', 'c', 'c', 'l', 'I', 'D'};
constexpr std::uint32_t kVersion = 3;

Result<std::array<std::byte, 8>> check_of(const UniqueId& id) {
  const Bytes covered = bytes_of(id).first(offsetof(UniqueId, check));
  ANYCCL_TRY(const Mac mac, hmac(id.secret, "unique id", {covered}));
  std::array<std::byte, 8> check{};
  std::copy_n(mac.begin(), check.size(), check.begin());
  return check;
}

}  // namespace

Result<UniqueId> UniqueId::make(const Secret& secret, std::span<const Address> addresses,
                                std::uint32_t meeting) {
  UniqueId id;
  id.magic = kMagic;
  id.version = kVersion;
  id.meeting = meeting;
  std::copy_n(secret.bytes().begin(), Secret::kBytes, id.secret.begin());
  pack(addresses, id.packed);
  ANYCCL_TRY(id.check, check_of(id));
  return id;
}

Result<UniqueId> UniqueId::from_bytes(std::span<const char, kUniqueIdBytes> bytes) {
  const auto id = read_as<UniqueId>(std::as_bytes(bytes));
  if (id.magic != kMagic)
    return error(Code::invalid_argument,
                 "this is not an anyccl unique id (it does not begin like one)");
  if (id.version != kVersion)
    return error(
        Code::invalid_argument,
        "this unique id has version {}, made by another version of anyccl; this one reads {}",
        id.version, kVersion);
  ANYCCL_TRY(const auto check, check_of(id));
  if (check != id.check || id.addresses().empty())
    return error(Code::invalid_argument,
                 "this unique id is damaged: copy all {} bytes of it (they may contain zeros)",
                 kUniqueIdBytes);
  return id;
}

std::vector<Address> UniqueId::addresses() const {
  const Result<std::vector<Address>> addresses = unpack(packed);
  return addresses.ok() ? *addresses : std::vector<Address>();
}

void UniqueId::to_bytes(std::span<char, kUniqueIdBytes> bytes) const {
  std::memcpy(bytes.data(), this, kUniqueIdBytes);
}

Result<Rendezvous> make_rendezvous(std::string_view interfaces, PortRange ports,
                                   std::uint32_t meeting) {
  ANYCCL_TRY(std::vector<TcpListener> listeners, listen_on_interfaces(interfaces, ports));
  if (listeners.empty())
    return error(Code::system_error,
                 "no network interface is up and has an address, not even loopback");
  std::vector<Address> addresses;
  std::vector<UniqueFd> sockets;
  for (TcpListener& listener : listeners) {
    addresses.push_back(listener.address);
    sockets.push_back(std::move(listener.socket));
  }
  ANYCCL_TRY(const Secret secret, Secret::random());
  ANYCCL_TRY(UniqueId id, UniqueId::make(secret, addresses, meeting));
  ANYCCL_TRY(auto server,
             RootServer::start(std::move(sockets), secret, Trust::secret, {}, meeting));
  return Rendezvous{id, std::move(server)};
}

/// Absent: its server has ended.
Result<std::optional<UniqueId>> UniqueIds::make_beside(const Open& other) {
  const auto& [id, server] = other.rendezvous;
  ANYCCL_TRY(const Secret secret, Secret::random());
  ANYCCL_TRY(const UniqueId made, UniqueId::make(secret, id.addresses(), first_meeting_ + made_));
  return server->serve(made.meeting, secret) ? std::optional(made) : std::nullopt;
}

Result<UniqueId> UniqueIds::make(std::string_view interfaces, PortRange ports) {
  const std::lock_guard lock(mutex_);
  if (made_ == 0) ANYCCL_CHECK(random_bytes(std::as_writable_bytes(std::span(&first_meeting_, 1))));
  std::erase_if(open_, [](const Open& one) {
    return !one.rendezvous.server->serves(one.rendezvous.id.meeting);
  });
  for (const Open& other : open_) {
    if (other.interfaces != interfaces || other.ports != ports) continue;
    ANYCCL_TRY(const std::optional<UniqueId> id, make_beside(other));
    if (!id) continue;
    ++made_;
    open_.push_back({{*id, other.rendezvous.server}, other.interfaces, ports});
    return *id;
  }
  ANYCCL_TRY(Rendezvous rendezvous, make_rendezvous(interfaces, ports, first_meeting_ + made_));
  ++made_;
  open_.push_back({std::move(rendezvous), std::string(interfaces), ports});
  return open_.back().rendezvous.id;
}

void UniqueIds::drop(const UniqueId& id, bool waits_for_late) {
  std::shared_ptr<RootServer> server;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](const Open& one) { return one.rendezvous.id == id; });
    if (found == open_.end()) return;
    server = std::move(found->rendezvous.server);
    open_.erase(found);
  }
  server->end_meeting(id.meeting, waits_for_late);
}

bool UniqueIds::was_made_here(const UniqueId& id) {
  const std::lock_guard lock(mutex_);
  return id.meeting - first_meeting_ < made_;
}

}  // namespace anyccl::bootstrap
