// model/profile.h: what each operation of a lane takes, for `bench decode --profile`.
#pragma once

#include <chrono>
#include <map>
#include <string_view>

namespace foresay {

/// Time per operation, by name. Engine thread only.
class Profile {
 public:
  struct Entry {
    long calls = 0;
    double ms = 0;
  };
  void add(std::string_view operation, double ms) {
    Entry& entry = entries_[operation];
    ++entry.calls;
    entry.ms += ms;
  }
  [[nodiscard]] const std::map<std::string_view, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string_view, Entry> entries_;  ///< names are literals
};

/// Adds the time that it lives to a profile, or does nothing.
class ProfileScope {
 public:
  ProfileScope(Profile* profile, std::string_view operation) : profile_(profile), operation_(operation) {
    if (profile_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;
  ~ProfileScope() {
    if (profile_ == nullptr) return;
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start_;
    profile_->add(operation_, taken.count());
  }

 private:
  Profile* profile_;
  std::string_view operation_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace foresay
