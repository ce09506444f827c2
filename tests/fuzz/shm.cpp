// What a peer shows in shared memory, and what it says beside it.

#include "input.hpp"
#include "unit/shm/hostile_peer.hpp"

namespace anyccl::fuzz {
namespace {

constexpr std::size_t kMost = 65536;

void write_memory(Input& input, const shm::test::HostilePeer& peer) {
  const std::span<std::byte> memory = peer.memory();
  const std::size_t at = input.take<std::uint32_t>() % memory.size();
  const auto bytes =
      input.take_bytes(std::min<std::size_t>(input.take<std::uint8_t>(), memory.size() - at));
  std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
}

void say(Input& input, shm::test::HostilePeer& peer) {
  shm::ControlMessage message;
  message.kind = static_cast<shm::ControlMessage::Kind>(shm::ControlMessage::segment +
                                                        input.take<std::uint8_t>() % 6);
  message.code = input.take<std::int32_t>();
  message.number = input.take<std::uint8_t>() % 4;
  message.address = input.take<std::uint64_t>();
  message.bytes = input.take<std::uint32_t>();
  const auto text = input.take_bytes(input.take<std::uint8_t>());
  std::copy(text.begin(), text.end(), reinterpret_cast<std::byte*>(message.text));
  static const auto memory = shm::create_shared(kMost, false, "fuzz");
  peer.say(message, input.take<std::uint8_t>() % 2 != 0 ? memory->fd.get() : -1);
}

void publish(Input& input, const shm::test::HostilePeer& peer) {
  const std::uint64_t operation = input.take<std::uint8_t>() % 4U;
  const std::uint32_t number = input.take<std::uint8_t>() % 4;
  peer.publish(operation, number, input.take<shm::Descriptor>());
}

void poll(Input& input, Transport& victim, std::vector<std::byte>& place) {
  const std::uint64_t operation = input.take<std::uint8_t>() % 4U;
  const std::uint32_t number = input.take<std::uint8_t>() % 4U;
  const auto bytes = input.take<std::uint16_t>();
  Incoming in = test::from(1, operation, number, bytes);
  const auto how = input.take<std::uint8_t>();
  in.sized = how % 2 != 0;
  in.total = in.bytes;
  if (how % 4 >= 2) in.into = place.data();
  if (const std::byte* const found = victim.publications().poll(in))
    std::memmove(place.data(), found, in.bytes);
  if (how % 8 >= 4) static_cast<void>(victim.publications().finished(in.operation, false));
}

/// As a receive that believes the envelope.
void receive(Transport& victim, std::vector<std::byte>& place) {
  Envelope envelope;
  if (!victim.messages().peek(Rank{1}, 1, envelope) || envelope.total > place.size()) return;
  const std::size_t most = envelope.lent ? envelope.total : victim.messages().fragment_bytes();
  const Fragment in{.peer = Rank{1},
                    .digest = envelope.digest,
                    .message = 1,
                    .bytes = std::min<std::size_t>(envelope.total, most),
                    .total = envelope.total};
  static_cast<void>(victim.messages().receive(in, 0, place.data()));
}

}  // namespace

void run(Input input) {
  shm::test::HostilePeer peer;
  std::vector<std::byte> place(kMost);
  while (!input.empty()) {
    switch (input.take<std::uint8_t>() % 7) {
      case 0:
        write_memory(input, peer);
        break;
      case 1:
        say(input, peer);
        break;
      case 2:
        publish(input, peer);
        break;
      case 3:
        poll(input, peer.victim(), place);
        break;
      case 4:
        receive(peer.victim(), place);
        break;
      case 5:
        static_cast<void>(peer.victim().check());
        break;
      default:
        CallRecord record;
        static_cast<void>(peer.victim().call_of(Rank{1}, input.take<std::uint8_t>(), record));
        static_cast<void>(peer.victim().calls_of(Rank{1}));
    }
  }
}

}  // namespace anyccl::fuzz
