// Every file of the fuzz corpora, through the functions that libFuzzer runs (fuzz/targets.h). A broken promise aborts.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/targets.h"

namespace foresay::fuzz {
namespace {

class FuzzCorpus : public ::testing::TestWithParam<NamedTarget> {};

TEST_P(FuzzCorpus, KeepsTheReadersPromise) {
  int files = 0;
  for (const auto& entry :
      std::filesystem::directory_iterator(std::filesystem::path(FORESAY_FUZZ_CORPUS) / GetParam().name)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> content{std::istreambuf_iterator<char>(in), {}};
    GetParam().run({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
    ++files;
  }
  EXPECT_GE(files, 5);
}

INSTANTIATE_TEST_SUITE_P(
    , FuzzCorpus, ::testing::ValuesIn(kTargets), [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace foresay::fuzz
