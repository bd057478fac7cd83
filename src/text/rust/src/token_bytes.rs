//! The bytes that one vocabulary entry stands for, by the tokenizer's own decoder.
//!
//! The decoders of `tokenizers` turn whole sequences into text and replace what is not UTF-8. A generator needs the step
//! before that, for each token by itself. The exception is a blank at the very beginning of a text, which SentencePiece
//! style decoders drop: generated text follows a prompt, so its blanks are kept.

use std::collections::HashMap;

use serde_json::Value as Json;
use tokenizers::normalizers::replace::Replace;
use tokenizers::{Decoder, DecoderWrapper};

use crate::failure::Failure;

enum Step {
    ByteLevel(HashMap<char, u8>),
    ByteFallback,
    Replace(Replace),
    ReplaceChar(char, &'static str),
    Strip { content: char, start: usize, stop: usize },
}

pub struct TokenDecoder {
    steps: Vec<Step>,
}

impl TokenDecoder {
    pub fn new(decoder: Option<&DecoderWrapper>) -> Result<Self, Failure> {
        let Some(decoder) = decoder else {
            return Err(Failure::Unsupported("there is no decoder, so tokens would be joined by blanks".into()));
        };
        let mut steps = Vec::new();
        let mut fused = false;
        let json = serde_json::to_value(decoder).map_err(|e| Failure::Invalid(e.to_string()))?;
        collect_steps(&json, &mut steps, &mut fused)?;
        Ok(TokenDecoder { steps })
    }

    /// `is_added`: the entry is an added token, such as `<think>`. A byte-level decoder leaves those as they are written:
    /// their characters are not the byte alphabet, even where they look like it.
    pub fn bytes_of(&self, token: &str, is_added: bool) -> Result<Vec<u8>, Failure> {
        let mut text = token.to_string();
        for step in &self.steps {
            match step {
                Step::ByteLevel(bytes) => {
                    let decoded: Option<Vec<u8>> = text.chars().map(|c| bytes.get(&c).copied()).collect();
                    if let (Some(decoded), false) = (decoded, is_added) {
                        return Ok(decoded);
                    }
                }
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(&text) {
                        return Ok(vec![byte]);
                    }
                }
                Step::Replace(replace) => {
                    let replaced = replace.decode_chain(vec![text]).map_err(|e| Failure::Invalid(e.to_string()))?;
                    text = replaced.concat();
                }
                Step::ReplaceChar(from, to) => text = text.replace(*from, to),
                Step::Strip { content, start, stop } => text = strip(&text, *content, *start, *stop),
            }
        }
        Ok(text.into_bytes())
    }
}

fn collect_steps(decoder: &Json, steps: &mut Vec<Step>, fused: &mut bool) -> Result<(), Failure> {
    let invalid = |what: &str| Failure::Invalid(format!("decoder: {what}: {decoder}"));
    match decoder["type"].as_str().unwrap_or_default() {
        "Sequence" => {
            for step in decoder["decoders"].as_array().ok_or_else(|| invalid("expected a list of decoders"))? {
                collect_steps(step, steps, fused)?;
            }
        }
        "ByteLevel" => steps.push(Step::ByteLevel(byte_alphabet())),
        "ByteFallback" => steps.push(Step::ByteFallback),
        "Fuse" => *fused = true,
        "Replace" => {
            let replace = serde_json::from_value(decoder.clone()).map_err(|e| invalid(&e.to_string()))?;
            steps.push(Step::Replace(replace));
        }
        "Metaspace" => {
            let replacement = decoder["replacement"].as_str().and_then(|s| s.chars().next()).unwrap_or('\u{2581}');
            steps.push(Step::ReplaceChar(replacement, " "));
        }
        // After Fuse it acts on the ends of the whole text, see the head of this file.
        "Strip" if *fused => {}
        "Strip" => steps.push(Step::Strip {
            content: decoder["content"].as_str().and_then(|s| s.chars().next()).unwrap_or(' '),
            start: decoder["start"].as_u64().unwrap_or(0) as usize,
            stop: decoder["stop"].as_u64().unwrap_or(0) as usize,
        }),
        other => {
            return Err(Failure::Unsupported(format!(
                "decoder {other}: expected ByteLevel, ByteFallback, Metaspace, Replace, Strip, Fuse or a Sequence of these"
            )));
        }
    }
    Ok(())
}

/// `<0xE4>` -> 0xE4
fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 && digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        u8::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

fn strip(text: &str, content: char, start: usize, stop: usize) -> String {
    let mut rest = text;
    for _ in 0..start {
        rest = rest.strip_prefix(content).unwrap_or(rest);
    }
    for _ in 0..stop {
        rest = rest.strip_suffix(content).unwrap_or(rest);
    }
    rest.to_string()
}

/// GPT-2's alphabet: a byte that prints in Latin-1 is its own character; the others, in order, are U+0100 onward.
fn byte_alphabet() -> HashMap<char, u8> {
    let mut alphabet = HashMap::new();
    let mut next = 0x100u32;
    for byte in 0..=255u8 {
        if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            alphabet.insert(char::from(byte), byte);
        } else {
            alphabet.insert(char::from_u32(next).expect("below the surrogates"), byte);
            next += 1;
        }
    }
    alphabet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_one_to_one() {
        let alphabet = byte_alphabet();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(alphabet[&'\u{120}'], b' ');
        assert_eq!(alphabet[&'\u{10a}'], b'\n');
        assert_eq!(alphabet[&'\u{143}'], 0xad);
    }
}
