// Files with algorithms, and what becomes of the list of all algorithms.

#include "algorithm/loaded/load.hpp"

#include <fstream>

#include "support.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::verify {
namespace {

using test::TemporaryFolder;

/// A barrier of two ranks; `more` makes another one of it.
std::string barrier(const std::string& name, const std::string& more = "") {
  return R"({"format": "anyccl.algorithm/1", "name": ")" + name +
         R"(", "collective": "barrier", "sizes": [{"ranks": 2, "steps": [)" +
         R"([["send", [1], "i0"], ["recv_reduce", [0, 1], "i0", "o0"])" + more +
         R"(],[["send", [0], "i0"], ["recv_reduce", [0, 1], "i0", "o0"]]]}]})";
}

std::string file_of(const TemporaryFolder& folder, const std::string& name,
                    const std::string& text) {
  const std::string path = folder.path() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(LoadAlgorithms, reads_files_and_folders_and_finds_them_by_name) {
  const TemporaryFolder folder, one;
  file_of(folder, "b.json", barrier("from_folder_b"));
  file_of(folder, "a.json", barrier("from_folder_a"));
  file_of(folder, "a.txt", "no algorithm");
  const auto before = all_algorithms();
  const auto loaded =
      load_algorithm_files(file_of(one, "c", barrier("from_file")) + ":" + folder.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ASSERT_EQ(loaded->size(), 3U);
  EXPECT_EQ((*loaded)[1]->text().name, "from_folder_a");
  EXPECT_EQ(find_algorithm(Collective::barrier, "from_folder_b"), &(*loaded)[2]->algorithm());
  EXPECT_EQ(all_algorithms().size(), before.size() + 3);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), all_algorithms().begin()));
}

TEST(LoadAlgorithms, the_same_twice_is_one) {
  const TemporaryFolder folder;
  const auto first = load_algorithm_files(file_of(folder, "a.json", barrier("once")));
  const auto second = load_algorithm_files(file_of(folder, "b.json", barrier("once")));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(LoadAlgorithms, another_one_of_the_same_name_is_refused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(load_algorithm_files(file_of(folder, "a.json", barrier("taken"))).ok());
  const std::string other = file_of(folder, "b.json", barrier("taken", R"(,["copy", "i0", "o0"])"));
  expect_words(load_algorithm_files(other).status(),
               {other + " has another barrier/taken than", "a.json", "loaded before"});
}

TEST(LoadAlgorithms, a_name_of_the_catalog_is_refused) {
  const TemporaryFolder folder;
  const std::string file = file_of(folder, "a.json", barrier("central"));
  expect_words(load_algorithm_files(file).status(), {file, "barrier/central of its own"});
}

TEST(LoadAlgorithms, says_which_file_is_missing_or_wrong) {
  const TemporaryFolder folder;
  expect_words(load_algorithm_files(folder.path() + "/none.json").status(),
               {"read ", "none.json", "No such file"});
  expect_words(load_algorithm_files(folder.path()).status(), {folder.path(), "has no *.json"});
  const std::string file = file_of(folder, "a.json", "{");
  expect_words(load_algorithm_files(file).status(), {file, "line 1"});
}

}  // namespace
}  // namespace anyccl::verify
