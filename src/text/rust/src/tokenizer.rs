//! A tokenizer.json with the bytes of every token worked out once, so that generation looks them up.

use crate::failure::{guard, Failure};
use crate::token_bytes::TokenDecoder;

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    bytes: Vec<u8>,        // all tokens' bytes, in the order of ids
    ends: Vec<usize>,      // [size] where each id's bytes end in `bytes`
    is_special: Vec<bool>, // [size]
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Self, Failure> {
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(|e| Failure::Invalid(e.to_string()))?;
        // Both may be left in the file from training; a prompt must be neither cut nor filled.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| Failure::Invalid(e.to_string()))?;

        let decoder = TokenDecoder::new(inner.get_decoder())?;
        let added = inner.get_added_tokens_decoder();
        let mut tokens: Vec<Option<String>> = Vec::new();
        let mut place = |id: u32, token: String| {
            let index = id as usize;
            if index >= MAX_IDS {
                return Err(Failure::Invalid(format!("token id {id} is out of range")));
            }
            if index >= tokens.len() {
                tokens.resize(index + 1, None);
            }
            tokens[index] = Some(token);
            Ok(())
        };
        for (token, id) in inner.get_vocab(true) {
            place(id, token)?;
        }
        for (id, token) in &added {
            place(*id, token.content.clone())?; // an id that both have is the added token's
        }
        let size = tokens.len();
        let mut table = Tokenizer { inner, bytes: Vec::new(), ends: vec![0; size], is_special: vec![false; size] };
        for id in 0..size {
            let added_token = added.get(&(id as u32));
            if let Some(token) = &tokens[id] {
                table.bytes.extend(decoder.bytes_of(token, added_token.is_some())?);
            }
            table.ends[id] = table.bytes.len();
            table.is_special[id] = added_token.is_some_and(|token| token.special);
        }
        Ok(table)
    }

    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Failure> {
        guard(|| {
            let encoding = self.inner.encode_fast(text, false).map_err(|e| Failure::Invalid(e.to_string()))?;
            Ok(encoding.get_ids().to_vec())
        })
    }

    pub fn token_bytes(&self, id: i32, skip_special: bool) -> Result<&[u8], Failure> {
        guard(|| {
            let Some(index) = usize::try_from(id).ok().filter(|&index| index < self.ends.len()) else {
                return Ok(&[][..]);
            };
            if skip_special && self.is_special[index] {
                return Ok(&[][..]);
            }
            let begin = if index == 0 { 0 } else { self.ends[index - 1] };
            Ok(&self.bytes[begin..self.ends[index]])
        })
    }

    pub fn id_of(&self, token: &str) -> Result<i32, Failure> {
        guard(|| Ok(self.inner.token_to_id(token).map_or(-1, |id| id as i32)))
    }

    pub fn size(&self) -> Result<i32, Failure> {
        Ok(self.ends.len() as i32)
    }
}

/// The largest published vocabularies have some 260,000 entries; a damaged id must not make the table huge.
const MAX_IDS: usize = 1 << 24;
