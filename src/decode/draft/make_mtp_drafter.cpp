#include "decode/draft/make_mtp_drafter.h"

#include <utility>

#include "decode/draft/layered_drafter.h"
#include "decode/draft/mtp_drafter.h"

namespace foresay {

std::unique_ptr<Drafter> make_mtp_drafter(const Model& model, std::vector<TokenId> always) {
  switch (model.info().head_scheme) {
    case HeadScheme::chained:
    case HeadScheme::parallel:
      return std::make_unique<LayeredDrafter>(model, std::move(always));
    case HeadScheme::reused:
      break;
  }
  return std::make_unique<MtpDrafter>(model, std::move(always));
}

}  // namespace foresay
