// --lane and --device: what runs, what is said about it, and what is refused before anything is loaded.
#include "cli/program.h"
#include "model/ops.h"

namespace foresay {
namespace {

const std::string kNowhere = "/nonexistent/model";  // a refusal that comes first never looks there

std::string lane_of(const Arguments& more) {
  Arguments arguments = {"--prompt-ids", "1,2,3", "--max-tokens", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return generate_json(kBundled, arguments)["stats"]["lane"];
}

TEST(Lane, TheCpuLaneIsTheDefaultWithoutAGpuAndSaysSo) {
  EXPECT_TRUE(lane_of({"--lane", "cpu"}).starts_with("cpu, "));
  EXPECT_TRUE(lane_of({"--threads", "1"}).starts_with("cpu, 1 thread, "));  // only the CPU lane takes threads
  EXPECT_TRUE(lane_of({"--device", "cpu"}).starts_with("cpu, "));
  EXPECT_TRUE(lane_of({"--threads", "0"}).starts_with(has_mlx_gpu() ? "mlx " : "cpu, "));
  const auto d = json_of(foresay({"inspect", kBundled, "--lane", "cpu", "--threads", "1", "--json"}));
  EXPECT_TRUE(d["lane"].get<std::string>().starts_with("cpu, 1 thread, "));
  expect_parts(foresay({"inspect", kBundled, "--lane", "cpu", "--threads", "1"}).out, {"lane", "cpu, 1 thread, "});
}

TEST(Lane, AnInstructionSetMayBeAskedForAndThePlainOneIsTold) {
  Command command;
  command.environment["FORESAY_ISA"] = "reference";
  const Arguments arguments = {
      "generate", kBundled, "--prompt-ids", "259,497,259", "--max-tokens", "4", "--lane", "cpu"};
  const Outcome plain = foresay(arguments, command), best = foresay(arguments);
  EXPECT_EQ(plain.status, 0);
  EXPECT_EQ(plain.out, best.out);
  const auto first = plain.err.find("plain C++ kernels");
  EXPECT_NE(first, std::string::npos) << plain.err;
  EXPECT_EQ(plain.err.find("plain C++ kernels", first + 1), std::string::npos) << plain.err;
  command.environment["FORESAY_ISA"] = "mmx";
  const Outcome unknown = foresay(arguments, command);
  EXPECT_EQ(unknown.status, 2);
  expect_parts(unknown.err, {"FORESAY_ISA", "reference", "\"mmx\""});
}

TEST(Lane, ActivationsAreInt8UnlessFloatIsAskedFor) {
  for (const auto& [asked, told] :
      {std::pair{"auto", "int8 activations"}, {"int8", "int8 activations"}, {"float", "float activations"}}) {
    EXPECT_NE(lane_of({"--lane", "cpu", "--cpu-activations", asked}).find(told), std::string::npos) << asked;
  }
  expect_refused({"inspect", kNowhere, "--cpu-activations", "int4"}, 2, {"--cpu-activations", "float", "\"int4\""});
}

TEST(Lane, OptionsThatContradictEachOtherAreRefusedByName) {
  expect_refused({"inspect", kNowhere, "--lane", "gpu"}, 2, {"--lane", "auto, cpu, mlx", "\"gpu\""});
  expect_refused({"inspect", kNowhere, "--device", "tpu"}, 2, {"--device", "auto, cpu, gpu", "\"tpu\""});
  expect_refused({"generate", kNowhere, "--prompt-ids", "1", "--lane", "cpu", "--device", "gpu"}, 2,
      {"--device gpu", "--lane mlx", "--lane cpu"});
  expect_refused({"inspect", kNowhere, "--lane", "mlx", "--threads", "2"}, 2, {"--threads", "mlx", "found 2"});
}

TEST(Lane, ALaneOrDeviceThatIsNotThereIsRefusedWithTheWayToGetIt) {
  if (!has_mlx()) {
    for (const Arguments& asked : {Arguments{"--lane", "mlx"}, {"--device", "gpu"}}) {
      Arguments arguments = {"generate", kNowhere, "--prompt-ids", "1"};
      arguments.insert(arguments.end(), asked.begin(), asked.end());
      expect_refused(arguments, 2, {"[mlx]", "this build has no MLX lane", "pip install", ".venv", "build again"});
    }
    return;
  }
  EXPECT_TRUE(lane_of({"--lane", "mlx", "--device", "cpu"}).ends_with(", cpu"));
  const auto d = json_of(foresay({"inspect", kBundled, "--lane", "mlx", "--device", "cpu", "--json"}));
  EXPECT_TRUE(d["lane"].get<std::string>().starts_with("mlx "));
  if (!has_mlx_gpu()) {
    expect_refused({"inspect", kNowhere, "--device", "gpu"}, 2, {"[mlx]", "GPU", "found none", "--device cpu"});
  }
}

}  // namespace
}  // namespace foresay
