#pragma once
// Random calls, the same on all ranks of a communicator, and where each rank's elements lie.

#include <random>
#include <string>
#include <vector>

#include "soak/numbers.hpp"

namespace anyccl::soak {

using Random = std::mt19937_64;
/// In [0, end).
inline std::size_t below(Random& random, std::size_t end) {
  return random() % end;
}

/// One call of all ranks, or, as Collective::send, a message from `root` to `to`.
struct RandomCall {
  Collective collective = Collective::barrier;
  Elements elements;
  std::size_t count = 0;            ///< Of the vector or block.
  std::vector<std::size_t> counts;  ///< V-forms: by rank; all_to_all_v: by sender, then receiver.
  int root = 0, to = 0;
  int tag = 0;
  int config = 0;  ///< Which of the communicator's configurations.

  /// `largest`: about so many elements at most. `tag`: of a message.
  static RandomCall draw(Random& random, int ranks, std::size_t largest, int tag);
  std::string text() const;
};

/// One rank's buffer for a call; the vector that it sends and the one that it receives are both in
/// it.
struct CallLayout {
  bool takes_part = true, sends = false, receives = false;
  std::size_t elements = 0;     ///< Of the buffer.
  std::size_t in = 0, out = 0;  ///< Where the two vectors begin.
  std::vector<Piece> given;     ///< Before the call.
  std::vector<Piece> wanted;    ///< After it; everything else must stay as it was.
  std::vector<std::size_t> sent, sent_at, received, received_at;  ///< V-forms.
};
CallLayout layout_of(const RandomCall& call, int me);

}  // namespace anyccl::soak
