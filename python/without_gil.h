// without_gil.h: computing without the GIL, also while the interpreter ends.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace foresay {

/// Releases the GIL for its lifetime.
///
/// Before 3.14 an interpreter that ends kills daemon threads where they ask for the GIL, by an unwinding that C++ takes
/// for a failure, and the process aborts. So interpreter_ends(), an atexit function, waits for the passes that run, and
/// the threads that ran them stay asleep instead of asking.
class WithoutGil {
 public:
  WithoutGil() {
    ++inside();  // with the GIL, so interpreter_ends() misses no one
    state_ = PyEval_SaveThread();
  }
  ~WithoutGil() {
    if (ending() && std::this_thread::get_id() != ending_thread()) {
      --inside();
      while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    PyEval_RestoreThread(state_);
    --inside();
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  static void interpreter_ends() {
    ending_thread() = std::this_thread::get_id();  // it goes on: other atexit functions may still generate
    ending() = true;
    PyThreadState* const state = PyEval_SaveThread();
    while (inside() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }

 private:
  static std::atomic<int>& inside() {
    static std::atomic<int> count{0};
    return count;
  }
  static std::atomic<bool>& ending() {
    static std::atomic<bool> flag{false};
    return flag;
  }
  static std::thread::id& ending_thread() {
    static std::thread::id id;
    return id;
  }

  PyThreadState* state_ = nullptr;
};

}  // namespace foresay
