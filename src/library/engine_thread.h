// library/engine_thread.h: the one thread that touches a model.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace foresay {

/// Runs work, one piece after the other in the order it came, on a thread of its own. A lane may tie a model to the
/// thread that opened it, so that thread opens it, runs it and drops it.
class EngineThread {
 public:
  EngineThread() : thread_([this] { work(); }) {}
  ~EngineThread();  ///< must not run on the thread itself
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  [[nodiscard]] bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }

  /// Does `work` on the thread and returns what it returns or throws what it throws. Any thread but that one: throws
  /// ErrorCode::usage there, which is a callback that calls the model again.
  template <typename Work>
  auto run(Work&& work) -> std::invoke_result_t<Work&> {
    using Result = std::invoke_result_t<Work&>;
    if constexpr (std::is_void_v<Result>) {
      wait_for(work);
    } else {
      std::optional<Result> result;
      wait_for([&] { result.emplace(work()); });
      return std::move(*result);
    }
  }

 private:
  /// One call, on the stack of the thread that waits for it.
  struct Task {
    const std::function<void()>& work;
    std::exception_ptr error = {};
    bool done = false;
  };

  void wait_for(const std::function<void()>& work);
  void work();

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable wake_, done_;
  std::deque<Task*> tasks_;
  bool stop_ = false;
  std::thread thread_;  // last: it reads all of the above
};

}  // namespace foresay
