#include "cli/common.h"

#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <iostream>
#include <iterator>

#include "base/error.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace foresay::cli {
namespace {

std::atomic<bool> g_interrupted{false};

void on_interrupt(int) {
  g_interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

std::filesystem::path executable() {
  std::error_code ignored;
#if defined(__APPLE__)
  char path[4096];
  std::uint32_t size = sizeof path;
  return _NSGetExecutablePath(path, &size) == 0 ? std::filesystem::canonical(path, ignored) : std::filesystem::path();
#else
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
#endif
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option(
      "MODEL", options.folder, "Checkpoint folder (Hugging Face or MLX layout); default: the bundled tiny-qwen3_5");
  app.add_option(
         "--mtp", options.mtp, "The MTP head: on (an unusable head is an error), auto (it is a warning), off, required")
      ->check(CLI::IsMember({"on", "auto", "off", "required"}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "CPU threads; 0 is every core this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--cpu-activations", options.activations,
         "Arithmetic of the CPU lane: float (float32 activations and KV cache)")
      ->check(CLI::IsMember({"float"}))
      ->capture_default_str();
}

std::filesystem::path model_folder(const std::string& given) {
  if (!given.empty()) return given;
  const std::filesystem::path program = executable().parent_path();
  for (const char* place : {"../../models/tiny-qwen3_5", "../share/foresay/models/tiny-qwen3_5"}) {
    if (std::filesystem::exists(program / place / "config.json")) return (program / place).lexically_normal();
  }
  fail(ErrorCode::usage, "no MODEL was given and the bundled tiny-qwen3_5 is not beside {}; give a checkpoint folder",
      program.string());
}

MtpMode mtp_mode(const std::string& name) {
  for (const MtpMode mode : {MtpMode::on, MtpMode::automatic, MtpMode::off, MtpMode::required}) {
    if (name_of(mode) == name) return mode;
  }
  fail(ErrorCode::usage, "--mtp: expected on, auto, off or required, found {}", name);
}

OpenModel::OpenModel(const ModelOptions& options)
    : folder(model_folder(options.folder)),
      checkpoint(Checkpoint::open(folder, report)),
      ops(make_cpu_ops(options.threads)),
      loaded(load_model(checkpoint, *ops, {.mtp = mtp_mode(options.mtp), .contract = {}}, report)) {}

void print_report(const Report& report) {
  for (const std::string& text : report.warnings()) fmt::print(stderr, "warning: {}\n", text);
  for (const std::string& text : report.notes()) fmt::print(stderr, "note: {}\n", text);
}

std::vector<TokenId> parse_ids(const std::string& option, std::string_view text) {
  std::vector<TokenId> ids;
  const char* const separators = ", \t\r\n";
  for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
      at = text.find_first_not_of(separators, at)) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    TokenId id = -1;
    const auto [stop, problem] = std::from_chars(piece.data(), piece.data() + piece.size(), id);
    if (problem != std::errc() || stop != piece.data() + piece.size() || id < 0) {
      fail(ErrorCode::usage, "{}: expected token ids such as 1,2,3; found \"{}\"", option, piece.substr(0, 40));
    }
    ids.push_back(id);
    at = end;
  }
  if (ids.empty()) fail(ErrorCode::usage, "{}: expected token ids such as 1,2,3; found none", option);
  return ids;
}

std::string value_or_stdin(const std::string& value) {
  if (value != "-") return value;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(ErrorCode::capacity, "cannot write to stdout: {}", std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

const std::atomic<bool>& interrupted() {
  return g_interrupted;
}

void watch_interrupts() {
  std::signal(SIGINT, on_interrupt);
}

}  // namespace foresay::cli
