#pragma once
// A reader takes the frames of all contexts from the socket of a link. A payload that the reading
// thread asks for goes straight to its place, and everything else is kept until a rank asks for it.
// Links and channels call it. reader_socket.cpp reads the bytes, and reader.cpp makes frames of
// them.

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/secure_stream.hpp"
#include "platform/link/chaos.hpp"
#include "platform/link/flow.hpp"
#include "platform/link/resend.hpp"
#include "platform/link/seal.hpp"

namespace anyccl::link {

/// A data frame that a rank asks for.
struct Wanted {
  Key key;
  std::uint64_t digest = 0;
  bool sized = false;
  std::size_t bytes = 0;
  std::uint64_t total = 0;    ///< If `sized`.
  std::byte* into = nullptr;  ///< Null, or where its payload may be put.
};

bool same_call(const FrameHeader& header, const Wanted& in);
bool same_size(const FrameHeader& header, const Wanted& in);

/// The receiving half of a link. Frames come in the order in which the peer sent them.
///
/// Threads: one at a time, the holder of the link's lock.
class Reader {
 public:
  explicit Reader(bool carries_descriptors) : carries_descriptors_(carries_descriptors) {}
  /// As of Outbox.
  void set_up(bool seals, Chaos* chaos, Resend* resend = nullptr) {
    seals_ = seals;
    chaos_ = chaos;
    resend_ = resend;
  }
  /// Nothing arrives before. `secure`: what decrypts, or null.
  void connect(int fd, SecureStream* secure = nullptr);
  /// The connection is lost: what has not come whole comes once more, over another one.
  void disconnect();

  /// The context, which is made if the peer is the first that speaks of it. Null: there are too
  /// many of these.
  Flow* flow_of(ContextKey key);
  /// The context, which is made if there is none yet: this rank may speak of any number.
  Flow& own_flow(ContextKey key);
  bool has(ContextKey key) const { return flows_.contains(key); }
  void erase(ContextKey key);
  /// How many contexts of this rank the peer has not left.
  std::size_t count_present() const;
  /// How many contexts this rank has not left. One that it has aborted needs the link until then:
  /// ranks that survive a failure meet over it.
  std::size_t count_users() const;

  /// Takes in all that has arrived, or, with `wanted`, until that has come; whether it has. `mine`:
  /// the flow for which the thread reads; the threads of other contexts are told what came for
  /// them.
  bool read(Flow* mine, const Wanted* wanted) { return read(mine, wanted, kAll); }
  /// Takes in what has arrived, but no more than some data frames: a peer that only gives may send
  /// as fast as this rank reads, and others wait to be looked at. Frames of control have such a
  /// bound in each read.
  void read_some(Flow* mine) { read(mine, nullptr, kSome); }
  /// Takes in what has arrived until the first fragment of `message` of `mine` is next; returns the
  /// header of that, whose payload need not have come. Null: it is not there.
  const FrameHeader* peek(Flow* mine, std::uint64_t message);
  /// From now on what comes for `flow` is dropped, also the rest of a frame that has begun.
  void close(Flow& flow);

  bool ended() const { return ended_; }
  /// The stream ended before the frame that it had begun.
  bool ended_in_a_frame() const { return ended_ && in_frame_; }
  /// The errno that ended the stream; 0: none.
  int problem() const { return problem_; }
  /// Nothing will come any more, as there will be no connection, or nobody answers. `problem`: for
  /// all contexts, if it is one.
  void give_up(const Status& problem);
  /// The threads of all contexts look again.
  void tell_all();
  /// Whether bytes were read from the socket that no call has looked at yet.
  bool holds_unread() const { return unread_; }
  /// Reads and drops what has arrived, and some more if it comes at once; from now on it has
  /// ended(). Whether the end of the stream was reached, also by an error.
  bool drain();

 private:
  static constexpr std::size_t kSome = 1024, kAll = ~std::size_t{0};  // frames

  /// As read() and read_some(): takes in at most `most` data frames.
  bool read(Flow* mine, const Wanted* wanted, std::size_t most);
  std::size_t head_bytes() const { return seals_ ? sizeof(SealedHeader) : sizeof(FrameHeader); }
  bool next_header(const Wanted* wanted, std::size_t& controls);
  const char* problem_of_head(const FrameHeader& header);
  bool handle_control(const FrameHeader& header);
  bool take_acknowledgement(const FrameHeader& header);
  bool take_notice(const FrameHeader& header, const std::byte* payload, Flow& flow);
  /// Chooses `wanted->into` if this frame is wanted there, else memory of the pool. If there is
  /// none, the payload is dropped, and the context notes that problem.
  void choose_target(Flow* mine, const Wanted* wanted);
  bool receive_payload();
  bool finish_frame();

  bool fill(std::size_t most);
  /// Reads as readv(2), once the greeting of the connection is there.
  ssize_t receive(iovec* parts, std::size_t count);
  ssize_t receive_greeting();
  /// Reads as readv(2), through the encryption or the chaos of the link, if it has one.
  ssize_t receive_bytes(iovec* parts, std::size_t count);
  /// Reads as readv(2), straight from the socket, and keeps descriptors that come along.
  ssize_t receive_some(iovec* parts, std::size_t count);
  void keep_descriptors(msghdr& message);
  bool note_read(ssize_t result);
  void end();
  void malformed(const char* what);
  void damaged(const char* what);
  void tell(Flow& flow);
  void note_unread();
  std::size_t staged() const { return end_ - begin_; }
  /// Whether bytes were read from the socket that are no frame yet.
  bool holds_more() const {
    return staged() > 0 || (secure_ != nullptr && secure_->holds_unread());
  }

  int fd_ = -1;
  SecureStream* secure_ = nullptr;
  Resend* resend_ = nullptr;
  Resend::Greeting greeting_;       // The peer's, for this connection,
  std::size_t greeting_bytes_ = 0;  // of which so many bytes have come.
  std::uint64_t damaged_at_ = 0;    // What had been received when a frame was damaged,
  int damages_ = 0;                 // and how often it was there.
  const bool carries_descriptors_;
  bool seals_ = false;
  Chaos* chaos_ = nullptr;
  std::unordered_map<ContextKey, Flow> flows_;
  Flow* last_ = nullptr;  // The one found last.
  Context* reads_for_ = nullptr;
  bool ended_ = false;  // Nothing more will be read.
  int problem_ = 0;
  bool unread_ = false;
  // Those of each notice that was not looked at yet.
  std::list<std::vector<UniqueFd>> descriptors_;

  // The data frame that is being received.
  bool in_frame_ = false;
  FrameHeader frame_;
  Seal seal_;                      // The last frame's, and
  std::uint64_t next_number_ = 0;  // the number of the next one.
  Flow* flow_ = nullptr;
  Buffer buffer_;                // Empty if target_ is the caller's memory.
  std::byte* target_ = nullptr;  // Null until it is chosen, and if the payload is dropped.
  bool dropped_ = false;
  std::size_t received_ = 0;

  // Bytes read but not looked at: small frames come many at a time.
  std::size_t begin_ = 0, end_ = 0;
  struct alignas(64) Staging : std::array<std::byte, 16384> {};
  std::unique_ptr<Staging> staging_;  // Made with the first connection.
};

}  // namespace anyccl::link
