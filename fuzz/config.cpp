#include "checkpoint/checkpoint.h"
#include "checkpoint/quantisation.h"
#include "fuzz/input.h"
#include "model/contract_sources.h"

namespace foresay::fuzz {
namespace {

/// Opens the folder and asks its files what loaders ask, before any weight is read.
void open(const Folder& folder) {
  expect_read_or_error([&] {
    Report report;
    const Checkpoint checkpoint = Checkpoint::open(folder.path(), report);
    refuse_vendor_formats(checkpoint.config());
    for (const char* module : {"model.layers.0.mlp.gate_proj", "lm_head", "mtp.fc"}) {
      (void)declared_geometry(checkpoint.config(), module);
    }
    const Config& text = checkpoint.text_config();
    (void)text.maybe_integer("num_hidden_layers", 0, 1000);
    (void)text.maybe_strings("layer_types");
    (void)text.maybe_integers("mlp_only_layers", 0, 1000);
    (void)text.maybe_number("rms_norm_eps", 0, 1);
    (void)text.maybe_boolean("tie_word_embeddings");
    (void)read_stated_contract(checkpoint, {});
    for (const auto* lines : {&report.notes(), &report.warnings()}) {
      for (const std::string& line : *lines) {
        if (!is_utf8(line)) broken("a note is UTF-8", line.c_str());
      }
    }
  });
}

}  // namespace

void config(Bytes input) {
  static const Folder folder("config");
  static const bool once = (folder.write("model.safetensors", small_weights(true)), true);
  (void)once;
  folder.write("config.json", input);
  open(folder);
}

void wiring(Bytes input) {
  static const Folder folder("wiring");
  static const bool once = (folder.write("model.safetensors", small_weights(true)),
      folder.write("config.json", R"({"model_type": "qwen3_5"})"), true);
  (void)once;
  folder.write("foresay.json", input);
  folder.write("mtplx_runtime.json", "{}");
  open(folder);
  folder.write("foresay.json", R"({"foresay": 1})");
  folder.write("mtplx_runtime.json", input);
  open(folder);
}

void index(Bytes input) {
  static const Folder folder("index");
  static const bool once = (folder.write("model-00001-of-00002.safetensors", small_weights(false)),
      folder.write("model-00002-of-00002.safetensors", R"(broken)"),
      folder.write("mtp.safetensors", small_weights(true)), folder.write("config.json", R"({"model_type": "qwen3_5"})"),
      true);
  (void)once;
  folder.write("model.safetensors.index.json", input);
  open(folder);
}

}  // namespace foresay::fuzz
