// foresay inspect: what a checkpoint is, and what will run and why. Reads headers and norm vectors, not weights, unless
// costs are asked for.
#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/inspect_cost.h"
#include "cli/inspect_probe.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "model/contract_sources.h"
#include "model/registry.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ModelOptions model;
  CostOptions cost;
  bool json = false, write = false, probe = false;
};

template <typename T>
Json decided(const Decided<T>& d) {
  return {{"value", name_of(d.value)}, {"source", d.source}};
}

Json contract_json(const Contract& contract, bool head) {
  Json out = {{"trunk_norms", decided(contract.trunk_norms)}};
  if (head) {
    out["head_norms"] = decided(contract.head_norms);
    out["base_hidden"] = decided(contract.base_hidden);
    out["recycled_hidden"] = decided(contract.recycled_hidden);
    out["concat_order"] = decided(contract.concat_order);
    out["position_mode"] = decided(contract.position_mode);
    out["head_packing"] = decided(contract.head_packing);
  }
  return out;
}

/// What a sequence's caches take on this lane: by the length of its text, and besides.
Json memory_json(const Model& model) {
  CacheFootprint all = model.make_caches()->footprint(), head;
  if (model.info().head_layers > 0) {
    for (const auto& caches : model.make_head_caches()) head += caches->footprint();
  }
  all += head;
  return {{"per_1k_tokens", 1000 * all.per_position}, {"fixed", all.fixed},
      {"of_which_head", {{"per_1k_tokens", 1000 * head.per_position}, {"fixed", head.fixed}}}};
}

/// What the folder holds, whether or not it can be run. `status` receives the exit status.
Json describe(const Options& options, int& status) {
  Json out;
  Report report;
  const auto ops = make_ops(options.model.lane, report);
  const std::filesystem::path folder = model_folder(options.model.folder);
  out["model"] = folder.string();
  out["lane"] = ops->describe();
  std::vector<std::string> reasons;
  try {
    const Checkpoint checkpoint = Checkpoint::open(folder, report);
    out["model_type"] = checkpoint.config().string("model_type");
    out["weights_bytes"] = checkpoint.mapped_bytes();
    out["trunk_tensors"] = checkpoint.trunk().size();
    const LoadedModel loaded =
        load_model(checkpoint, *ops, {.mtp = mtp_mode(options.model.mtp), .contract = options.model.contract}, report);
    const ModelInfo& info = loaded.model->info();
    out["family"] = info.family;
    out["layers"] = info.layers;
    out["hidden"] = info.hidden;
    out["vocab"] = info.vocab;
    out["context"] = info.context;
    out["mtp"] = {{"layers", info.head_layers}, {"max_depth", info.max_depth}, {"tensors", loaded.head.tensors.size()},
        {"found_in", loaded.head.found_in.empty() ? Json() : Json(loaded.head.found_in)},
        {"requested", options.model.mtp}, {"reason", loaded.mtp_reason}};
    std::map<std::string, int> formats;
    Json modules;
    for (const StorageEntry& entry : loaded.storage) {
      ++formats[entry.format];
      modules[entry.module] = entry.format;
    }
    out["quantisation"] = {{"summary", formats}, {"modules", modules}};
    out["memory"] = memory_json(*loaded.model);
    out["bytes_read"] = {{"per_token", loaded.bytes_per_token()}, {"per_draft_step", loaded.bytes_per_draft()}};
    out["contract"] = contract_json(loaded.model->contract(), info.head_layers > 0);
    out["verdict"] = info.head_layers > 0 ? "mtp" : "ar-only";
    reasons.push_back(loaded.mtp_reason);
    if (options.write) {
      if (info.head_layers == 0) fail(ErrorCode::usage, "--write: there is no wiring to write: {}", loaded.mtp_reason);
      write_contract(folder, loaded.model->contract());
      report.note(fmt::format("the contract is written to {}", (folder / "foresay.json").string()));
    }
    if (options.probe) {
      Report again;  // the same notes once more
      const OpenModel open({.folder = folder,
                               .mtp = mtp_mode(options.model.mtp),
                               .contract = options.model.contract,
                               .lane = options.model.lane},
          again);
      out["probe"] = probe_json(open, options.cost.again, report);
    }
    if (options.cost.wanted) out["cost"] = cost_json(checkpoint, *loaded.model, report, options.cost);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) throw;
    status = exit_code(error.code());
    out["verdict"] = "refused";
    reasons.push_back(error.what());
    say(fmt::format("foresay: {}\n", error.what()));
  }
  out["reasons"] = reasons;
  out["notes"] = report.notes();
  out["warnings"] = report.warnings();
  return out;
}

void print_text(const Json& d) {
  const auto line = [](const std::string& key, const std::string& value) {
    write_out(fmt::format("{:<16} {}\n", key, value));
  };
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  line("model", text(d["model"]));
  line("lane", text(d["lane"]));
  if (d.contains("model_type")) line("model_type", text(d["model_type"]));
  if (d.contains("family")) {
    line("family", text(d["family"]));
    line("sizes", fmt::format("{} layers, hidden {}, vocabulary {}, context {}", text(d["layers"]), text(d["hidden"]),
                      text(d["vocab"]), text(d["context"])));
    std::string formats;
    for (const auto& [format, count] : d["quantisation"]["summary"].items()) {
      formats += fmt::format("{}{} ({} matrices)", formats.empty() ? "" : ", ", format, text(count));
    }
    line("stored as", formats);
    const auto megabytes = [](const Json& bytes) { return fmt::format("{:.4g} MB", bytes.get<double>() / 1e6); };
    line("memory", fmt::format("{} per 1000 tokens of a sequence, and {} besides",
                       megabytes(d["memory"]["per_1k_tokens"]), megabytes(d["memory"]["fixed"])));
    line("reads", fmt::format("{} of weights per token, {} per draft step", megabytes(d["bytes_read"]["per_token"]),
                      megabytes(d["bytes_read"]["per_draft_step"])));
    const auto& mtp = d["mtp"];
    line("head", mtp["layers"] == 0 ? "none in use: " + text(mtp["reason"])
                                    : fmt::format("{} layer, {} tensors in {}, drafts up to {}", text(mtp["layers"]),
                                          text(mtp["tensors"]), text(mtp["found_in"]), text(mtp["max_depth"])));
    for (const auto& [field, value] : d["contract"].items())
      line(field, fmt::format("{}  [{}]", text(value["value"]), text(value["source"])));
  }
  if (d.contains("cost")) {
    for (const auto& [key, value] : cost_lines(d["cost"])) line(key, value);
  }
  if (d.contains("probe")) {
    for (const auto& [key, value] : probe_lines(d["probe"])) line(key, value);
  }
  line("verdict", text(d["verdict"]));
  for (const auto& reason : d["reasons"]) line("because", text(reason));
  for (const auto& warning : d["warnings"]) line("warning", text(warning));
  for (const auto& note : d["notes"]) line("note", text(note));
}

}  // namespace

std::function<int()> add_inspect(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_model_options(app, options->model);
  app.add_flag("--probe", options->probe,
      "Also say how often the head agrees with the model, as it is wired and with each value changed: three prompts "
      "are "
      "decoded with each, then the result is kept in $XDG_CACHE_HOME/foresay/probes (~/.cache)");
  add_cost_options(app, options->cost);
  app.add_flag(
      "--measure-again", options->cost.again, "Measure also where costs or a probe are kept, and keep the new ones");
  app.add_flag("--json", options->json, "Print one JSON document");
  app.add_flag(
      "--write", options->write, "Write the head's wiring to foresay.json in the folder; later runs follow it");
  app.footer(
      "The exit status is 0 when the checkpoint runs, 3 when it is damaged, 4 when its architecture is not supported, "
      "5 when\n--mtp required cannot be met.\n\nExample:\n  foresay inspect models/tiny-qwen3_5 --json\n"
      "  foresay inspect models/tiny-qwen3_5 --cost --acceptance 0.85,0.72,0.60");
  return [options] {
    check_cost_options(options->cost);
    if (options->cost.again && !options->cost.wanted && !options->probe) {
      fail(ErrorCode::usage, "--measure-again: expected --cost or --probe beside it");
    }
    int status = 0;
    const Json document = describe(*options, status);
    if (options->json) {
      write_json(document, 2);
    } else {
      print_text(document);
    }
    return status;
  };
}

}  // namespace foresay::cli
