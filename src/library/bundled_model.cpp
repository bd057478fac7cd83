#include "library/bundled_model.h"

#include <dlfcn.h>

#include <system_error>

#include "base/error.h"

namespace foresay {

namespace fs = std::filesystem;

fs::path bundled_model() {
  static const char anchor = 0;  // its address is in the file that is looked for
  Dl_info info{};
  std::error_code ignored;
  fs::path file;
  if (::dladdr(&anchor, &info) != 0 && info.dli_fname != nullptr) file = fs::canonical(info.dli_fname, ignored);
  // A build folder; prefix/bin or prefix/lib; prefix/lib/TRIPLET; prefix/lib/python3/site-packages/foresay.
  for (const char* place :
      {"../../models", "../share/foresay/models", "../../share/foresay/models", "../../../../share/foresay/models"}) {
    const fs::path folder = (file.parent_path() / place / "tiny-qwen3_5").lexically_normal();
    if (!file.empty() && fs::exists(folder / "config.json", ignored)) return folder;
  }
  fail(ErrorCode::usage,
      "[load] no folder was given, and the bundled tiny-qwen3_5 was not found from {} (../share/foresay/models); give "
      "a "
      "checkpoint folder",
      file.empty() ? "this library" : file.parent_path().string());
}

}  // namespace foresay
