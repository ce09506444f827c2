// Algorithms as text: what is read, refused, replayed and checked.

#include "algorithm/loaded/loaded_algorithm.hpp"
#include "algorithm/schedule/print.hpp"
#include "support.hpp"

namespace anyccl::verify {
namespace {

constexpr std::uint32_t kSlots = 16;

Result<WrittenAlgorithm> read(const std::string& text) {
  return parse_algorithm(text, "mine.json");
}

LoadedAlgorithm loaded(const std::string& text) {
  Result<WrittenAlgorithm> read_text = read(text);
  EXPECT_TRUE(read_text.ok()) << read_text.status().message();
  return {*std::move(read_text), "mine.json"};
}

/// An algorithm of two ranks and one part.
std::string two_ranks(const std::string& steps, const std::string& collective = "all_reduce",
                      const std::string& more = "") {
  return R"({"format": "anyccl.algorithm/1", "name": "mine", "collective": ")" + collective +
         R"(", "sizes": [{"ranks": 2, )" + more + R"("steps": )" + steps + "}]}";
}

/// Each rank adds up both inputs itself.
const std::string kOneShot = two_ranks(
    R"([[["send", [1], "i0"], ["recv_reduce", [0, 1], "i0", "o0"]],
        [["send", [0], "i0"], ["recv_reduce", [0, 1], "i0", "o0"]]])");

Status checked(const std::string& text) {
  return loaded(text).check({Collective::all_reduce, 2}, kSlots);
}

bool same(const Schedule& a, const Schedule& b) {
  return a.steps == b.steps && a.scratch == b.scratch &&
         a.contract.chunks_per_block() == b.contract.chunks_per_block();
}

class WrittenCatalog : public ::testing::TestWithParam<const Algorithm*> {};
INSTANTIATE_TEST_SUITE_P(All, WrittenCatalog, ::testing::ValuesIn(algorithms_for(4)),
                         [](const auto& tested) {
                           return std::string(name(tested.param->collective)) + "_" +
                                  std::string(tested.param->name);
                         });

TEST_P(WrittenCatalog, is_the_same_when_it_is_read_again) {
  const Algorithm& algorithm = *GetParam();
  std::vector<Shape> shapes;
  for (int n = 1; n <= 9; ++n) {
    const Shape shape{algorithm.collective, n};
    if (algorithm.supports(shape)) shapes.push_back(shape);
  }
  const Shape on_hosts{algorithm.collective, 8, Rank{0}, false, {0, 0, 0, 1, 1, 2, 2, 2}};
  if (algorithm.supports(on_hosts)) shapes.push_back(on_hosts);
  const LoadedAlgorithm again = loaded(to_text(anyccl::written_form(algorithm, shapes)));
  for (const Shape& shape : shapes) {
    ASSERT_TRUE(again.supports(shape));
    for (int r = 0; r < shape.size; ++r)
      EXPECT_TRUE(same(again.build(shape, Rank{r}), algorithm.build(shape, Rank{r})))
          << shape.size << " ranks, rank " << r;
  }
}

TEST_P(WrittenCatalog, is_right_for_every_root_and_in_place) {
  const Shape shape{GetParam()->collective, 4};
  const LoadedAlgorithm again = loaded(to_text(anyccl::written_form(*GetParam(), {&shape, 1})));
  const Status status = again.check(shape, kSlots);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto report = check_algorithm(again.algorithm(), 4, 4);
  EXPECT_TRUE(report.ok()) << report.status().message();
}

TEST_P(WrittenCatalog, adds_up_in_the_order_that_the_original_promises) {
  const Shape shape{GetParam()->collective, 4};
  const LoadedAlgorithm again = loaded(to_text(anyccl::written_form(*GetParam(), {&shape, 1})));
  EXPECT_GE(again.order(shape), GetParam()->order(shape));
  const Shape of_root_1{GetParam()->collective, 4, Rank{1}};  // turned, and so is the order
  if (is_rooted(GetParam()->collective)) {
    EXPECT_EQ(again.order(of_root_1), Order::position);
  }
}

TEST(LoadedAlgorithm, that_a_ring_adds_up_in_many_orders_is_known) {
  const Shape shape{Collective::all_reduce, 4};
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  EXPECT_EQ(loaded(to_text(anyccl::written_form(ring, {&shape, 1}))).order(shape), Order::position);
}

TEST(LoadedAlgorithm, hosts_are_matched_whatever_their_numbers) {
  const LoadedAlgorithm mine = loaded(two_ranks("[[],[]]", "barrier", R"("hosts": [7, 3], )"));
  EXPECT_TRUE(mine.supports({Collective::barrier, 2, Rank{0}, false, {0, 1}}));
  EXPECT_FALSE(mine.supports({Collective::barrier, 2, Rank{0}, false, {0, 0}}));
  EXPECT_FALSE(mine.supports({Collective::barrier, 2}));
  EXPECT_FALSE(mine.supports({Collective::barrier, 3}));
}

TEST(LoadedAlgorithm, is_for_root_0_only_on_given_hosts) {
  const LoadedAlgorithm mine = loaded(two_ranks("[[],[]]", "broadcast", R"("hosts": [0, 1], )"));
  EXPECT_TRUE(mine.supports({Collective::broadcast, 2, Rank{0}, false, {0, 1}}));
  EXPECT_FALSE(mine.supports({Collective::broadcast, 2, Rank{1}, false, {0, 1}}));
}

TEST(LoadedAlgorithm, says_for_how_many_ranks_it_is) {
  expect_words(loaded(kOneShot).check({Collective::all_reduce, 6}, kSlots),
               {"all_reduce/mine does not support 6 ranks", "2 ranks, for which mine.json has it"});
}

TEST(LoadedAlgorithm, what_changes_nothing_does_not_change_its_hash) {
  std::string other = kOneShot;
  other.replace(other.find("\"i0\"]"), 5, "\"i0\", \"@mine.py:3\"]");
  other.replace(other.find("\"sizes\""), 7, "\"about\": \"both add\", \"sizes\"");
  EXPECT_EQ(loaded(kOneShot).hash(), loaded(other).hash());
  other.replace(other.find("[0, 1], \"i0\""), 6, "[1, 0]");
  EXPECT_NE(loaded(kOneShot).hash(), loaded(other).hash());
}

TEST(LoadedAlgorithm, an_error_names_file_rank_step_chunk_and_source_line) {
  const std::string twice = two_ranks(
      R"([[["send", [1], "i0"], ["recv_reduce", [0, 1], "i0", "o0"], ["reduce", "i0", "o0", "@mine.py:7"]],
          [["send", [0], "i0"], ["recv_reduce", [0, 1], "i0", "o0"]]])");
  expect_words(checked(twice), {"mine.json: all_reduce/mine with 2 ranks",
                                "rank 0 step 2 (reduce, mine.py:7)", "output chunk 0", "twice"});
}

TEST(LoadedAlgorithm, a_message_that_never_comes_is_named) {
  expect_words(checked(two_ranks(R"([[["recv", [1], "o0"]], [["copy", "i0", "o0"]]])")),
               {"mine.json", "rank 0 step 0 (recv)", "rank 1"});
}

TEST(LoadedAlgorithm, ranks_with_other_bits_are_refused) {
  const LoadedAlgorithm mine = loaded(
      R"({"format": "anyccl.algorithm/1", "name": "mine", "collective": "all_reduce", "sizes": [
        {"ranks": 3, "steps": [
          [["send", [1, 2], "i0"], ["recv_reduce", [0, 1, 2], "i0", "o0"]],
          [["send", [0, 2], "i0"], ["recv_reduce", [0, 1, 2], "i0", "o0"]],
          [["send", [0, 1], "i0"], ["recv_reduce", [1, 2, 0], "i0", "o0"]]]}]})");
  expect_words(mine.check({Collective::all_reduce, 3}, kSlots),
               {"mine.json", "rank 2 output chunk 0", "at rank 0", "other bits"});
}

TEST(LoadedAlgorithm, copies_its_input_where_it_would_overwrite_it) {
  const std::string swapped = two_ranks(
      R"([[["copy", "i0", "o0"], ["send", [1], "i1"], ["recv", [1], "o1"]],
          [["copy", "i1", "o1"], ["recv", [0], "o0"], ["send", [0], "i0"]]])",
      "all_to_all");
  const LoadedAlgorithm mine = loaded(swapped);
  Shape shape{Collective::all_to_all, 2};
  const Status status = mine.check(shape, kSlots);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(mine.build(shape, Rank{1}).scratch.size(), 0U);
  shape.in_place = true;
  EXPECT_EQ(mine.build(shape, Rank{1}).scratch.size(), 2U);
  const auto report = check_algorithm(mine.algorithm(), 2, 2);
  EXPECT_TRUE(report.ok()) << report.status().message();
}

TEST(LoadedAlgorithm, that_needs_more_slots_than_there_are_is_refused) {
  // All is sent before anything is received.
  std::string sends, receives, scratch;
  for (int i = 0; i < 20; ++i) {
    const std::string chunk = std::to_string(i), comma = i == 0 ? "" : ",";
    sends += comma + R"(["send", [%], "i)" + chunk + "\"]";
    receives += R"(,["recv_reduce", [0, 1], "i)" + chunk + R"(", "o)" + chunk + "\"]";
  }
  const auto rank = [&](const char* peer) {
    std::string all = sends;
    for (std::size_t at = 0; (at = all.find('%')) != std::string::npos;) all.replace(at, 1, peer);
    return "[" + all + receives + "]";
  };
  const LoadedAlgorithm mine =
      loaded(two_ranks("[" + rank("1") + "," + rank("0") + "]", "all_reduce", R"("parts": 20, )"));
  const Shape shape{Collective::all_reduce, 2};
  expect_words(mine.check(shape, kSlots),
               {"mine.json: all_reduce/mine needs 20 slots", "2 ranks has 16", "receive earlier"});
  EXPECT_TRUE(mine.check(shape, 32).ok());
}

struct Wrong {
  std::string text;
  std::vector<std::string> words;
};

TEST(LoadedAlgorithm, text_that_is_wrong_is_refused_with_its_place) {
  const auto step = [](const std::string& text) {
    return two_ranks("[[" + text + "],[]]", "all_reduce", R"("scratch": [[0], []], )");
  };
  const std::string head = R"({"format": "anyccl.algorithm/1", "collective": "all_reduce", )";
  const Wrong all[] = {
      {"", {"mine.json", "line 1"}},
      {"{\n\"format\": x}", {"mine.json", "line 2"}},
      {"[]", {"is not an object"}},
      {"{}", {"there is no \"format\""}},
      {R"({"format": "anyccl.algorithm/2", "more": 1})", {"means nothing"}},
      {R"({"format": "anyccl.algorithm/2"})", {"format", "anyccl.algorithm/1"}},
      {head + R"("name": "a,b", "sizes": []})", {"name", "letters, digits and _"}},
      {head + R"("name": "a", "sizes": []})", {"sizes", "no number of ranks"}},
      {head + R"("name": "a", "sizes": [{"ranks": 0, "steps": []}]})", {"sizes[0].ranks", "0"}},
      {head + R"("name": "a", "sizes": [{"ranks": 2, "steps": []}]})",
       {"sizes[0].steps", "0 lists for 2 ranks"}},
      {head + R"("name": "a", "sizes": [{"ranks": 2, "part": 1, "steps": [[],[]]}]})",
       {"sizes[0]", "\"part\" means nothing"}},
      {head +
           R"("name": "a", "sizes": [{"ranks": 1, "steps": [[]]}, {"ranks": 1, "steps": [[]]}]})",
       {"sizes[1]", "listed twice"}},
      {two_ranks("[[],[]]", "all_reduces"), {"collective", "all_reduces"}},
      {two_ranks("[[],[]]", "send"), {"collective", "send"}},
      {two_ranks("[[],[]]", "all_gather_v", R"("parts": 2, )"), {"parts", "2", "1 to 1"}},
      {two_ranks("[[],[]]", "all_gather", R"("parts": 1000000, )"), {"sizes[0]", "chunks"}},
      {R"({"format": "anyccl.algorithm/1", "name": "a", "collective": "all_to_all", "sizes": )"
       R"([{"ranks": 128, "parts": 2048, "steps": []}]})",
       {"sizes[0]", "2048 parts are more than 16777216 chunks of all ranks together"}},
      {two_ranks("[[],[]]", "all_gather", R"("hosts": [0], )"), {"hosts", "1 hosts for 2 ranks"}},
      {step(R"(["resv", [1], "o0"])"),
       {"sizes[0].steps[0][0]", "\"resv\" is none of send, recv, recv_reduce, copy, reduce"}},
      {step("7"), {"sizes[0].steps[0][0]", "is not a step"}},
      {step(R"(["send", [2], "i0"])"), {"sizes[0].steps[0][0][1][0]", "0 to 1"}},
      {step(R"(["send", [], "i0"])"), {"names no rank"}},
      {step(R"(["send", 1, "i0"])"), {"is not a list"}},
      {step(R"(["send", [1]])"), {"followed by [RANK...], SOURCE"}},
      {step(R"(["send", [1], "x0"])"), {"is not a slice"}},
      {step(R"(["send", [1], "i0:0"])"), {"input of rank 0", "1 chunks"}},
      {step(R"(["send", [1], "i0:2"])"), {"input of rank 0", "1 chunks"}},
      {step(R"(["send", [1], "i99999999999"])"), {"is not a slice"}},
      {step(R"(["send", [1, 1], "i0:1+1048576"])"), {"input of rank 0", "1 chunks"}},
      {step(R"(["send", [1], "s1"])"), {"scratch of rank 0", "1 chunks"}},
      {step(R"(["recv", [0, 1], "s0+1"])"), {"scratch of rank 0"}},
      {step(R"(["recv", [1], "i0"])"), {"\"i0\" is input, which stays as it is"}},
      {step(R"(["copy", "o0", "i0"])"), {"sizes[0].steps[0][0][2]", "is input"}},
      {step(R"(["recv", [1, 0], "o0"])"), {"names rank 0 itself"}},
      {step(R"(["copy", "i0", "o0", "o0"])"), {"followed by SOURCE, TARGET"}},
      {two_ranks("[[],[]]", "all_reduce", R"("scratch": [[1], []], )"),
       {"sizes[0].scratch[0][0]", "0 to 0"}},
  };
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(wrong.text);
    expect_words(read(wrong.text).status(), wrong.words);
    EXPECT_EQ(read(wrong.text).status().code(), Code::invalid_argument);
  }
}

}  // namespace
}  // namespace anyccl::verify
