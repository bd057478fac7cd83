// cli/output.h: results on stdout, everything else on stderr.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/report.h"

namespace foresay::cli {

/// Writes to stdout at once, whole. Throws ErrorCode::capacity when stdout is closed or full.
void write_out(std::string_view text);

/// Writes one JSON document and a line end to stdout. Bytes that are not UTF-8 (a path may hold any) become U+FFFD.
void write_json(const nlohmann::ordered_json& document, int indent = -1);

/// Writes to stderr. Never fails: where stderr is closed or full, nobody is listening.
void say(std::string_view text);

/// Warnings of a load, one line each, on stderr; its notes too unless stdout carries JSON.
void say_report(const Report& report, bool json);

/// Takes the places of standard streams that are closed. A file opened later would get the number of one, and what is
/// meant for the stream would go into that file; stdout's stand-in cannot be written, so that write_out still tells.
void hold_standard_streams();

}  // namespace foresay::cli
