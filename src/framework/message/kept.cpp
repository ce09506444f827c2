// Messages that are kept in memory, as no receive wants them yet.

#include <cstring>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "framework/message/message_matcher.hpp"

namespace anyccl {

void MessageMatcher::keep_early(Rank from, const Envelope& envelope) {
  Pair& pair = pairs_[uindex(from)];
  Call call;
  call.collective = Collective::recv;
  call.dtype = message_digest::dtype_of(envelope.digest);
  call.tag = message_digest::tag_of(envelope.digest);
  const std::size_t element = bytes_of(call.dtype);
  const bool in_queues = message_digest::is_in_queues(envelope.digest);
  Early early;
  if (element > 0 && envelope.total % element == 0)
    early.bytes.reset(new (std::nothrow) std::byte[in_queues ? 0 : envelope.total]);
  if (early.bytes == nullptr) {
    if (problem_.ok())
      problem_ =
          error(Code::system_error,
                "rank {} cannot keep a message of {} bytes from rank {} with tag {}, which no "
                "receive wants yet",
                index(me_), envelope.total, index(from), call.tag);
    return;
  }
  call.count = envelope.total / element;
  call.output = early.bytes.get();
  early.request = make(call, Gate::open);
  if (in_queues) early.request->set_in_queues(nullptr);
  early.request->bind(*route_[uindex(from)], from, ++pair.received, envelope);
  Exchange& open = exchange(from);
  early.answered = open.answered == pair.received;
  open.arriving = early.request;
  open.early.push_back(std::move(early));
}

void MessageMatcher::copy_to_receive(const MessageRequest& sent, MessageRequest& receive) {
  const Call &from = sent.call(), &to = receive.call();
  if (from.count != to.count || from.dtype != to.dtype) {
    const int source = index(to.root);
    Status status =
        error(Code::invalid_usage, "rank {} sends {} {} to rank {}, which receives {} {}", source,
              from.count, name_of(from.dtype), index(me_), to.count, name_of(to.dtype));
    if (problem_.ok() && source != index(me_)) problem_ = status;
    return receive.complete(std::move(status));
  }
  if (sent.is_in_queues() != receive.is_in_queues()) {
    Status status = message_digest::other_type({index(to.root), sent.digest(), sent.bytes()},
                                               {index(me_), receive.digest(), receive.bytes()});
    if (problem_.ok()) problem_ = status;
    return receive.complete(std::move(status));
  }
  if (sent.is_in_queues()) return receive.end_receive();
  const std::byte* bytes = from.collective == Collective::send ? from.input : from.output;
  if (sent.bytes() > 0) std::memmove(to.output, bytes, sent.bytes());
  receive.complete({});
}

}  // namespace anyccl
