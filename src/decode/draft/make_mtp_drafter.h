// decode/draft/make_mtp_drafter.h: the drafter of a model's own MTP head.
#pragma once

#include <memory>
#include <vector>

#include "decode/draft/drafter.h"
#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

/// By the head's scheme (ModelInfo::head_scheme): MtpDrafter for a reused layer, LayeredDrafter for distinct ones. The
/// model must outlive the drafter and have a head. `always` are ids that drafts may
/// be whatever part of the vocabulary they come from: special tokens.
[[nodiscard]] std::unique_ptr<Drafter> make_mtp_drafter(const Model& model, std::vector<TokenId> always = {});

}  // namespace foresay
