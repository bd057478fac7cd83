// Streams an answer: generate FOLDER PROMPT
#include <foresay/foresay.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: generate FOLDER PROMPT\n";
    return 2;
  }
  try {
    const auto model = foresay::LanguageModel::load(argv[1]);
    foresay::Request request;
    request.prompt = argv[2];
    request.max_tokens = 64;
    request.depth = 3;

    const foresay::Answer answer = model.generate(request, [](const foresay::Piece& piece) {
      std::cout << piece.text << std::flush;
      return true;  // false would stop here
    });

    std::cout << '\n';
    std::cerr << answer.stats.generated << " tokens in " << answer.stats.passes << " passes, "
              << answer.stats.decode_tok_s() << " tokens/s\n";
    return 0;
  } catch (const foresay::Error& error) {
    std::cerr << "generate: " << error.what() << '\n';
    return foresay::exit_code(error.code());
  }
}
