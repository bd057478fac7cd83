#include "checkpoint/safetensors.h"

#include "fuzz/input.h"

namespace foresay::fuzz {

void safetensors(Bytes input) {
  static const Folder folder("safetensors");
  folder.write("model.safetensors", input);
  expect_read_or_error([&] {
    const SafetensorsFile file = SafetensorsFile::open(folder.path() / "model.safetensors");
    std::size_t sum = 0;
    for (const auto& [name, view] : file.tensors()) {
      if (view.bytes > input.size()) broken("a tensor lies in its file", name.c_str());
      for (std::size_t i = 0; i < view.bytes; ++i) sum += std::to_integer<std::size_t>(view.data[i]);
      if (is_float(view.dtype)) sum += view.to_float().size();
      if (!view.shape.empty() && view.shape.front() > 0) sum += view.part(view.shape.front() - 1, 1).bytes;
      (void)describe_shape(view.shape);
    }
    if (sum == SIZE_MAX) std::abort();  // so that no byte is left unread
  });
}

}  // namespace foresay::fuzz
