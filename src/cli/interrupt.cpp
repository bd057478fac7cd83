#include "cli/interrupt.h"

#include <csignal>

namespace foresay::cli {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

void on_interrupt(int) {
  g_interrupted = true;
}

}  // namespace

void watch_interrupts(Interrupts which) {
  g_interrupted = false;
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags =
      which == Interrupts::first ? static_cast<int>(SA_RESETHAND) : 0;  // no SA_RESTART: a read of stdin has to notice
  ::sigaction(SIGINT, &action, nullptr);
}

const std::atomic<bool>& interrupted() {
  return g_interrupted;
}

}  // namespace foresay::cli
