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
