#include "base/fifo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

namespace anyccl {
namespace {

bool are_equal(const Fifo<int>& fifo, const std::deque<int>& wanted) {
  return fifo.size() == wanted.size() && fifo.empty() == wanted.empty() &&
         std::equal(fifo.begin(), fifo.end(), wanted.begin()) &&
         (wanted.empty() || (fifo.front() == wanted.front() && fifo.back() == wanted.back()));
}

TEST(Fifo, is_as_a_deque_whatever_is_done) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Fifo<int> fifo;
  std::deque<int> wanted;
  for (int i = 0; i < 20000; ++i) {
    switch (random() % (wanted.size() > 40 ? 8 : 5)) {
      case 0:
      case 1:
      case 2:
        fifo.push_back(i);
        wanted.push_back(i);
        break;
      case 3:
        if (wanted.empty()) break;
        {
          const auto at = static_cast<std::ptrdiff_t>(random() % wanted.size());
          const auto behind = fifo.erase(fifo.begin() + at);
          wanted.erase(wanted.begin() + at);
          ASSERT_EQ(behind - fifo.begin(), at);
        }
        break;
      default:
        if (wanted.empty()) break;
        fifo.pop_front();
        wanted.pop_front();
    }
    if (random() % 1000 == 0) {
      fifo.clear();
      wanted.clear();
    }
    ASSERT_TRUE(are_equal(fifo, wanted)) << "after " << i;
  }
}

TEST(Fifo, keeps_nothing_that_was_popped) {
  const auto item = std::make_shared<int>(1);
  Fifo<std::shared_ptr<int>> fifo;
  fifo.push_back(item);
  fifo.push_back(nullptr);
  fifo.pop_front();
  EXPECT_EQ(item.use_count(), 1);
}

}  // namespace
}  // namespace anyccl
