// A root server that knows the secret and answers nonsense must not harm whoever joins.

#include <gtest/gtest.h>

#include "platform/bootstrap/group/table.hpp"
#include "platform/bootstrap/rendezvous/frame.hpp"
#include "unauthenticated.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

class JoinReply : public testing::Test {
 protected:
  void SetUp() override {
    Result<TcpListener> listener = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
    ASSERT_OK(listener.status());
    listener_ = *std::move(listener);
  }

  /// Joins as rank 0 of 2 at a root that answers `payload` as `kind`, properly sealed unless
  /// `seals` is false.
  Status answer_to_join(Frame kind, Bytes payload, bool seals = true) {
    std::thread root([&] {
      Acceptor acceptor({{listener_.socket.get(), false}}, secret_, kToRoot, Trust::secret);
      const Connection peer = wait_for_authenticated(acceptor);
      std::vector<std::byte> hello(sizeof(FrameHeader) + sizeof(HelloFrame));
      EXPECT_OK(recv_all(peer.socket.get(), hello, soon(), "member"));
      Result<FrameHeader> header = seal(peer.session, kind, payload);
      if (!seals) header->mac[0] ^= std::byte{1};
      EXPECT_OK(send_all(peer.socket.get(), bytes_of(*header), soon(), "member"));
      static_cast<void>(send_all(peer.socket.get(), payload, soon(), "member").ok());
    });
    const Status s =
        join(id_at(listener_.address, secret_), make_member(0, 2).hello, soon()).status();
    root.join();
    return s;
  }

  /// A table as a root server sends it, of the given hellos.
  static std::vector<std::byte> table_of(const std::vector<Hello>& hellos) {
    std::vector<std::byte> payload(sizeof(GroupHead));
    const std::vector<std::byte> table = encode_table(hellos);
    payload.insert(payload.end(), table.begin(), table.end());
    return payload;
  }

  TcpListener listener_;
  Secret secret_ = *Secret::random();
};

TEST_F(JoinReply, with_every_rank_in_its_place_is_accepted) {
  const auto table = table_of({make_member(0, 2).hello, make_member(1, 2).hello});
  EXPECT_OK(answer_to_join(Frame::table, table));
}

TEST_F(JoinReply, that_is_not_sealed_is_refused) {
  const auto table = table_of({make_member(0, 2).hello, make_member(1, 2).hello});
  EXPECT_EQ(answer_to_join(Frame::table, table, false).code(), Code::remote_error);
}

TEST_F(JoinReply, with_ranks_in_other_places_is_refused) {
  const auto table = table_of({make_member(1, 2).hello, make_member(0, 2).hello});
  EXPECT_EQ(answer_to_join(Frame::table, table).code(), Code::remote_error);
}

TEST_F(JoinReply, of_another_size_is_refused) {
  for (const int size : {0, 1, 3}) {
    std::vector<Hello> hellos;
    for (int r = 0; r < size; ++r) hellos.push_back(make_member(r, 3).hello);
    EXPECT_EQ(answer_to_join(Frame::table, table_of(hellos)).code(), Code::remote_error) << size;
  }
}

TEST_F(JoinReply, of_random_bytes_is_an_error) {
  std::mt19937 random = seeded();
  for (const std::size_t size :
       {0UL, 1UL, 4UL, 100UL, sizeof(GroupHead) + 2 * sizeof(Hello), 5000UL})
    for (const std::uint32_t kind : {0U, 1U, 2U, 3U, 4U, 6U, 77U})
      EXPECT_FALSE(answer_to_join(static_cast<Frame>(kind), random_text(random, size)).ok())
          << size << " bytes of kind " << kind;
}

TEST_F(JoinReply, that_says_why_is_passed_on) {
  const Status why(Code::invalid_usage, "rank 1 joined twice");
  const Status s = answer_to_join(Frame::failure, failure_payload(why));
  EXPECT_EQ(s.code(), why.code());
  EXPECT_EQ(s.message(), why.message());
}

TEST_F(JoinReply, that_says_failure_without_a_failure_is_an_error) {
  EXPECT_EQ(answer_to_join(Frame::failure, failure_payload(Status())).code(), Code::remote_error);
}

}  // namespace
}  // namespace anyccl::bootstrap
