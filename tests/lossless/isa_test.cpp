// The promise on every instruction set of this machine, in both arithmetic modes: whole models give the bits of the
// plain reference, and drafting changes nothing on any set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/cpu_features.h"
#include "lossless/subject.h"

namespace foresay {
namespace {

const std::string kIsaSubjects[] = {
    "tiny_hybrid", "tiny_hybrid_int8", "tiny_hybrid_4bit", "tiny_hybrid_4bit_int8", "random_qwen3_5"};

class EverySet : public ::testing::TestWithParam<std::tuple<std::string, Isa>> {
 protected:
  void TearDown() override { use_isa(available_isas().back()); }
};

TEST_P(EverySet, GivesTheBitsOfTheReferenceAtAnyDepth) {
  const auto& [name, isa] = GetParam();
  Subject& tested = subject(name);
  ASSERT_TRUE(tested.is_present()) << tested.folder() << " is not there";
  for (const int sampling_index : {0, 7}) {
    DecodeOptions options;
    options.max_tokens = 12;
    options.sampling = sampling(sampling_index);
    if (!options.sampling.greedy()) options.sampling.seed = 5;
    const Ids prompt = tested.prompt(70, 2);
    use_isa(Isa::reference);
    const Truth truth(tested.model(), prompt, options);
    use_isa(isa);
    for (const int depth : {0, 1, 3, 8}) {
      for (const int threads : {1, 2}) {
        options.depth = depth;
        const std::vector<Ids> texts = {truth.text};
        for (const bool with_head : {true, false}) {
          Witness witness(tested.model(threads));
          HeadDrafter head(witness.model);
          Oracle oracle(texts);
          Drafter& drafter = with_head ? static_cast<Drafter&>(head) : oracle;
          const Generation result = decode(witness.model, &drafter, prompt, options, 7);
          const std::string run =
              fmt::format("depth {}, {} threads, {}", depth, threads, with_head ? "head" : "oracle");
          ASSERT_EQ(result.ids, truth.ids) << run;
          ASSERT_TRUE(witness.equals(truth)) << run;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, EverySet,
    ::testing::Combine(::testing::ValuesIn(kIsaSubjects), ::testing::ValuesIn(available_isas())),
    [](const auto& test) { return fmt::format("{}_{}", std::get<0>(test.param), name_of(std::get<1>(test.param))); });

}  // namespace
}  // namespace foresay
