//! The bridge to C++: everything that src/text asks of Rust. Each function is guarded, so that a panic arrives in C++ as
//! an exception, and takes text as bytes where C++ has not checked that it is UTF-8.

mod failure;
mod python;
mod template;
mod token_bytes;
mod tokenizer;

use template::Template;
use tokenizer::Tokenizer;

#[cxx::bridge(namespace = "foresay::rust_text")]
mod ffi {
    extern "Rust" {
        type Tokenizer;
        fn tokenizer_from_json(json: &[u8]) -> Result<Box<Tokenizer>>;
        fn encode(self: &Tokenizer, text: &str) -> Result<Vec<u32>>;
        /// Empty outside the vocabulary; with `skip_special` also for special tokens.
        fn token_bytes(self: &Tokenizer, id: i32, skip_special: bool) -> Result<&[u8]>;
        /// -1 when there is no such token.
        fn id_of(self: &Tokenizer, token: &str) -> Result<i32>;
        fn size(self: &Tokenizer) -> Result<i32>;

        type Template;
        fn template_from_source(source: &[u8]) -> Result<Box<Template>>;
        /// `variables` is a JSON object.
        fn render(self: &Template, variables: &str) -> Result<String>;
    }
}

use failure::{guard, Failure};

fn tokenizer_from_json(json: &[u8]) -> Result<Box<Tokenizer>, Failure> {
    guard(|| Tokenizer::from_json(json).map(Box::new))
}

fn template_from_source(source: &[u8]) -> Result<Box<Template>, Failure> {
    guard(|| Template::from_source(source).map(Box::new))
}
