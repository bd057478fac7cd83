#include "base/machine.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace foresay {
namespace {

std::string processor() {
#if defined(__APPLE__)
  char brand[256] = {};
  std::size_t size = sizeof brand;
  if (::sysctlbyname("machdep.cpu.brand_string", brand, &size, nullptr, 0) == 0) return std::string(brand);
#else
  std::ifstream info("/proc/cpuinfo");
  std::string parts;  // of a core of ARM, which has no name
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) return line.substr(colon + 2);
    if (line.starts_with("CPU ")) parts += fmt::format("{} ", line.substr(colon + 2));
  }
  if (!parts.empty()) return parts;
#endif
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown processor";
}

}  // namespace

std::string machine_name() {
  return fmt::format("{}, {} logical cores", processor(), std::thread::hardware_concurrency());
}

std::string build_name() {
  static const char anchor = 0;  // its address is in the file that is looked for
  Dl_info info{};
  std::string name;
  // A library knows its path. A program is named as it was called, which need not be a path; the system knows better.
  const char* const own = ::dladdr(&anchor, &info) != 0 ? info.dli_fname : nullptr;
  for (const char* file : {own, "/proc/self/exe"}) {
    struct stat status{};
    if (file == nullptr || ::stat(file, &status) != 0 || !S_ISREG(status.st_mode)) continue;
#if defined(__APPLE__)
    const timespec time = status.st_mtimespec;
#else
    const timespec time = status.st_mtim;
#endif
    const std::string part = fmt::format("{} bytes of {}.{:09}", status.st_size, time.tv_sec, time.tv_nsec);
    if (name != part) name += fmt::format("{}{}", name.empty() ? "" : ", ", part);
  }
  return name;
}

}  // namespace foresay
