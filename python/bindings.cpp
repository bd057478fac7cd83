// foresay._foresay: the public header for Python. python/foresay makes the interface of it.
//
// Everything that reads a model or decodes runs without the GIL, one pass at a time, so Python looks at signals between
// passes. Nothing of Python is touched on the model's own thread.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <utility>

#include "foresay/foresay.h"
#include "without_gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace foresay {
namespace {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::checkpoint:
      return "checkpoint";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::mtp_required:
      return "mtp_required";
    case ErrorCode::capacity:
      return "capacity";
    case ErrorCode::check_failed:
      return "check_failed";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "internal";
}

/// foresay::Error as foresay.Error, which is written in Python.
void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object type = nb::module_::import_("foresay.error").attr("Error");
    const nb::str message(
        PyUnicode_DecodeUTF8(error.what(), static_cast<Py_ssize_t>(std::string_view(error.what()).size()), "replace"),
        nb::detail::steal_t());
    PyErr_SetObject(type.ptr(), type(message, name_of(error.code())).ptr());
  }
}

nb::dict stats_of(const Stats& stats) {
  nb::dict d;
  d["prompt_tokens"] = stats.prompt_tokens;
  d["generated"] = stats.generated;
  d["passes"] = stats.passes;
  d["depth"] = stats.depth;
  d["drafted"] = stats.drafted;
  d["accepted"] = stats.accepted;
  d["prompt_seconds"] = stats.prompt_seconds;
  d["decode_seconds"] = stats.decode_seconds;
  return d;
}

nb::list logprobs_of(const std::vector<TokenLogProbabilities>& logprobs) {
  nb::list all;
  for (const TokenLogProbabilities& token : logprobs) {
    nb::list top;
    for (const LogProbability& each : token.top) top.append(nb::make_tuple(each.id, each.value));
    all.append(nb::make_tuple(token.value, top));
  }
  return all;
}

nb::dict answer_of(const Answer& answer) {
  nb::dict d;
  d["text"] = answer.text;
  d["ids"] = answer.ids;
  d["prompt_ids"] = answer.prompt_ids;
  d["logprobs"] = logprobs_of(answer.logprobs);
  d["finish_reason"] = foresay::name_of(answer.finish);
  d["seed"] = answer.seed;
  d["stats"] = stats_of(answer.stats);
  d["drafted"] = answer.drafted;
  d["head_reason"] = answer.head_reason;
  d["warning"] = answer.warning;
  return d;
}

nb::dict description_of(const LanguageModel& model) {
  const ModelDescription& found = model.description();
  nb::dict d;
  d["folder"] = found.folder;
  d["family"] = found.family;
  d["model_type"] = found.model_type;
  d["lane"] = found.lane;
  d["context"] = found.context;
  d["vocab"] = found.vocab;
  d["has_tokenizer"] = found.has_tokenizer;
  d["has_head"] = found.has_head;
  d["max_depth"] = found.max_depth;
  d["head_reason"] = found.head_reason;
  d["stop_ids"] = found.stop_ids;
  return d;
}

using Listener = std::optional<std::function<void(std::string_view)>>;

LanguageModel load(const std::string& folder, const std::string& mtp, const std::string& lane,
    const std::string& device, int threads, int prefill_chunk, Listener note, Listener warning) {
  ModelOptions options{.mtp = mtp, .lane = lane, .device = device, .threads = threads, .prefill_chunk = prefill_chunk};
  if (note) options.on_note = std::move(*note);
  if (warning) options.on_warning = std::move(*warning);
  return LanguageModel::load(folder, options);
}

/// A batch that keeps the pieces of a pass until Python takes them.
class PieceBatch {
 public:
  explicit PieceBatch(const LanguageModel& model) : batch_(model.batch()) {}

  int add(const Request& request) {
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    return batch_.add(request, [this](const Piece& piece) {
      pieces_.push_back({piece.answer, std::string(piece.text), piece.id});
      return true;
    });
  }

  /// (whether anything is left to do, [(answer, text, id or None)])
  nb::tuple step() {
    std::vector<Kept> pieces;
    bool running = false;
    {
      const WithoutGil without_gil;
      const std::lock_guard lock(mutex_);
      running = batch_.step();
      pieces.swap(pieces_);
    }
    nb::list list;
    for (const Kept& piece : pieces) list.append(nb::make_tuple(piece.answer, piece.text, piece.id));
    return nb::make_tuple(running, list);
  }

  bool finished(int handle) {
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    return batch_.finished(handle);
  }

  void cancel(int handle) {
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    batch_.cancel(handle);
  }

  nb::dict take(int handle) {
    Answer answer;
    {
      const WithoutGil without_gil;
      const std::lock_guard lock(mutex_);
      answer = batch_.take(handle);
    }
    return answer_of(answer);
  }

 private:
  struct Kept {
    int answer;
    std::string text;
    std::optional<TokenId> id;
  };

  std::mutex mutex_;  ///< guards pieces_, which the model's thread fills during a step; taken without the GIL
  std::vector<Kept> pieces_;
  RequestBatch batch_;  // last: it fills pieces_
};

void bind_options(nb::module_& m) {
  nb::enum_<Acceptance>(m, "Acceptance").value("ratio", Acceptance::ratio).value("coupled", Acceptance::coupled);
  nb::enum_<SamplingStep>(m, "SamplingStep")
      .value("top_p", SamplingStep::top_p)
      .value("min_p", SamplingStep::min_p)
      .value("xtc", SamplingStep::xtc)
      .value("top_k", SamplingStep::top_k)
      .value("temperature", SamplingStep::temperature);
  nb::class_<SamplingOptions>(m, "SamplingOptions")
      .def_rw("temperature", &SamplingOptions::temperature)
      .def_rw("top_k", &SamplingOptions::top_k)
      .def_rw("top_p", &SamplingOptions::top_p)
      .def_rw("min_p", &SamplingOptions::min_p)
      .def_rw("min_keep", &SamplingOptions::min_keep)
      .def_rw("xtc_probability", &SamplingOptions::xtc_probability)
      .def_rw("xtc_threshold", &SamplingOptions::xtc_threshold)
      .def_rw("xtc_exempt", &SamplingOptions::xtc_exempt)
      .def_rw("repetition_penalty", &SamplingOptions::repetition_penalty)
      .def_rw("presence_penalty", &SamplingOptions::presence_penalty)
      .def_rw("frequency_penalty", &SamplingOptions::frequency_penalty)
      .def_rw("repetition_window", &SamplingOptions::repetition_window)
      .def_rw("presence_window", &SamplingOptions::presence_window)
      .def_rw("frequency_window", &SamplingOptions::frequency_window)
      .def_rw("logit_bias", &SamplingOptions::logit_bias)
      .def_rw("bad_words", &SamplingOptions::bad_words)
      .def_rw("order", &SamplingOptions::order)
      .def_rw("seed", &SamplingOptions::seed, nb::arg().none())
      .def_rw("choice", &SamplingOptions::choice)
      .def_rw("acceptance", &SamplingOptions::acceptance, nb::arg().none());
  nb::class_<Request>(m, "Request")
      .def(nb::init<>())
      .def_rw("prompt", &Request::prompt)
      .def_rw("ids", &Request::ids)
      .def_rw("sampling", &Request::sampling)
      .def_rw("depth", &Request::depth)
      .def_rw("draft_vocabulary", &Request::draft_vocabulary)
      .def_rw("max_tokens", &Request::max_tokens)
      .def_rw("min_tokens", &Request::min_tokens)
      .def_rw("top_logprobs", &Request::top_logprobs, nb::arg().none())
      .def_rw("stop", &Request::stop)
      .def_rw("stop_ids", &Request::stop_ids)
      .def_rw("ignore_eos", &Request::ignore_eos)
      .def_rw("n", &Request::n);
  m.def("validate", [](const Request& request) { validate(request); });
}

}  // namespace
}  // namespace foresay

NB_MODULE(_foresay, m) {
  using namespace foresay;
  nb::set_leak_warnings(false);  // what a sleeping thread holds at the end (without_gil.h) stays, and is no mistake
  nb::register_exception_translator(translate);
  bind_options(m);
  m.def("interpreter_ends", &WithoutGil::interpreter_ends);
  nb::class_<LanguageModel>(m, "LanguageModel")
      .def("description", description_of)
      .def("encode", &LanguageModel::encode, "text"_a, nb::call_guard<WithoutGil>())
      .def("decode", &LanguageModel::decode, "ids"_a, "skip_special"_a, nb::call_guard<WithoutGil>())
      .def("chat_prompt", &LanguageModel::chat_prompt_json, "messages"_a, "variables"_a, nb::call_guard<WithoutGil>());
  m.def("load", load, "folder"_a, "mtp"_a, "lane"_a, "device"_a, "threads"_a, "prefill_chunk"_a, "on_note"_a.none(),
      "on_warning"_a.none(), nb::call_guard<WithoutGil>());
  nb::class_<PieceBatch>(m, "Batch")
      .def(nb::init<const LanguageModel&>(), "model"_a)
      .def("add", &PieceBatch::add, "request"_a)
      .def("step", &PieceBatch::step)
      .def("finished", &PieceBatch::finished, "handle"_a)
      .def("cancel", &PieceBatch::cancel, "handle"_a)
      .def("take", &PieceBatch::take, "handle"_a);
}
