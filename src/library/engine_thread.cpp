#include "library/engine_thread.h"

#include "base/error.h"

namespace foresay {

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EngineThread::wait_for(const std::function<void()>& work) {
  if (is_current()) {
    fail(ErrorCode::usage,
        "[generate] a callback called the model that it was called by; end the answer, or note what to do and do it "
        "when the call returns");
  }
  Task task{work};
  std::unique_lock lock(mutex_);
  tasks_.push_back(&task);
  wake_.notify_one();
  done_.wait(lock, [&] { return task.done; });
  if (task.error) std::rethrow_exception(std::move(task.error));
}

void EngineThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task& task = *tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      task.work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    task.error = std::move(error);
    task.done = true;
    done_.notify_all();
  }
}

}  // namespace foresay
