//! Chat templates, rendered as Python's `transformers` renders them with Jinja2.

use std::borrow::Cow;
use std::error::Error as _;
use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde_json::Value as Json;

use crate::failure::{guard, Failure};
use crate::python;

const NAME: &str = "chat";

pub struct Template {
    environment: Environment<'static>,
}

impl Template {
    pub fn from_source(source: &[u8]) -> Result<Self, Failure> {
        let source = std::str::from_utf8(source).map_err(|e| Failure::Invalid(e.to_string()))?;
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        let syntax = syntax.build().map_err(|e| Failure::Invalid(describe(&e)))?;
        let mut environment = Environment::new();
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_unknown_method_callback(python::call_method);
        environment.set_formatter(python::write_value);
        minijinja_contrib::add_to_environment(&mut environment);
        environment.add_filter("tojson", python::tojson);
        environment.add_filter("trim", python::trim);
        environment.add_test("sequence", python::is_sequence);
        environment.add_function("strftime_now", python::strftime_now);
        environment.add_function("raise_exception", raise_exception);
        let source = without_generation_tags(&source.replace("\r\n", "\n").replace('\r', "\n"));
        environment.add_template_owned(NAME, source).map_err(|e| Failure::Invalid(describe(&e)))?;
        Ok(Template { environment })
    }

    pub fn render(&self, variables: &str) -> Result<String, Failure> {
        guard(|| {
            let variables: Json = serde_json::from_str(variables).map_err(|e| Failure::Invalid(e.to_string()))?;
            let template = self.environment.get_template(NAME).map_err(|e| Failure::Invalid(describe(&e)))?;
            template.render(to_value(variables)).map_err(|error| match raised_message(&error) {
                Some(message) => Failure::Raised(message),
                None => Failure::Invalid(describe(&error)),
            })
        })
    }
}

fn to_value(json: Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => items.into_iter().map(to_value).collect::<Vec<_>>().into(),
        Json::Object(entries) => Value::from_pairs(entries.into_iter().map(|(key, value)| (key, to_value(value)))),
    }
}

/// Marks an error as the template's own, so that its message can be told from the engine's.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

fn raised_message(error: &Error) -> Option<String> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(raised) = error.downcast_ref::<Raised>() {
            return Some(raised.0.clone());
        }
        source = error.source();
    }
    None
}

/// What went wrong and in which line, with the causes.
fn describe(error: &Error) -> String {
    let mut text = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    if let Some(line) = error.line() {
        text = format!("line {line}: {text}");
    }
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// `{% generation %}` marks the assistant's words for training; for rendering it is a scope of its own.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%").into_iter().chain(rest.find("{#")).min() {
        let is_comment = rest[start..].starts_with("{#");
        let close = if is_comment { "#}" } else { "%}" };
        let inside = start + "{%".len();  // `{%}` opens a tag and closes none
        let Some(length) = rest[inside..].find(close) else { break };
        let end = inside + length + close.len();
        out.push_str(&rest[..start]);
        let tag = &rest[start..end];
        out.push_str(&if is_comment { Cow::Borrowed(tag) } else { scope_tag(tag) });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The tag with `generation` and `endgeneration` replaced, its whitespace control kept.
fn scope_tag(tag: &str) -> Cow<'_, str> {
    let inner =
        tag["{%".len()..tag.len() - "%}".len()].trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
    match inner {
        "generation" => Cow::Owned(tag.replace("generation", "with")),
        "endgeneration" => Cow::Owned(tag.replace("endgeneration", "endwith")),
        _ => Cow::Borrowed(tag),
    }
}
