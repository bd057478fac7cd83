//! Where Python's behaviour differs from minijinja's own: tojson, floats, whitespace, and string methods.

use std::fmt::Write;

use minijinja::value::{from_args, Kwargs, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Output, State, Value};
use minijinja_contrib::pycompat;

type Args<'a> = &'a [Value];

/// `{{ value }}`: as minijinja does it, except for floats, which print as Python's repr also inside lists and dicts.
pub fn write_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Seq | ValueKind::Map => {
            let mut text = String::new();
            write_repr(&mut text, value, 0)?;
            Ok(out.write_str(&text)?)
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(invalid("nested too deeply to be printed".into()));
    }
    match value.kind() {
        ValueKind::Number => out.push_str(&as_float(value).map_or_else(|| value.to_string(), float_repr)),
        ValueKind::Seq if value.downcast_object_ref::<Tuple>().is_none() => {
            out.push('[');
            for (i, item) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, &item, depth + 1)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, &key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        _ => write!(out, "{value:?}").expect("a String takes any text"),
    }
    Ok(())
}

/// Jinja's `sequence` test asks for a length and subscripts, so strings and dicts pass too.
pub fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
}

/// The filter `trim`: str.strip on anything.
pub fn trim(value: &Value, chars: Option<&str>) -> String {
    strip(&value.to_string(), chars, true, true).to_string()
}

/// datetime.now().strftime(format): local time, no zone.
pub fn strftime_now(format: &str) -> Result<String, Error> {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let format = format.replace("%f", &format!("{:06}", elapsed.subsec_micros())).replace("%z", "").replace("%Z", "");
    let c_format =
        std::ffi::CString::new(format).map_err(|e| Error::new(ErrorKind::InvalidOperation, e.to_string()))?;
    let seconds = elapsed.as_secs() as libc::time_t;
    let mut buffer = vec![0u8; 256 + 8 * c_format.as_bytes().len()];
    // SAFETY: every pointer is to a live value of the type asked for; strftime writes at most the length given.
    let written = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut local);
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), c_format.as_ptr(), &local)
    };
    buffer.truncate(written);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

/// Methods of Python's str and list that minijinja-contrib lacks, or that differ there in what counts as white space.
pub fn call_method(state: &mut State, value: &Value, method: &str, args: Args) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        if let Some(result) = string_method(text, method, args) {
            return result;
        }
    }
    if value.kind() == ValueKind::Seq && method == "index" {
        let (wanted,): (&Value,) = from_args(args)?;
        let place = value.try_iter()?.position(|item| item == *wanted);
        return place.map(Value::from).ok_or_else(|| invalid(format!("{wanted:?} is not in list")));
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

fn string_method(text: &str, method: &str, args: Args) -> Option<Result<Value, Error>> {
    let both = |parts: (Value, Value, Value)| Value::from(vec![parts.0, parts.1, parts.2]);
    Some(match method {
        "strip" => from_args(args).map(|(chars,): (Option<&str>,)| strip(text, chars, true, true).into()),
        "lstrip" => from_args(args).map(|(chars,): (Option<&str>,)| strip(text, chars, true, false).into()),
        "rstrip" => from_args(args).map(|(chars,): (Option<&str>,)| strip(text, chars, false, true).into()),
        "removeprefix" => from_args(args).map(|(prefix,): (&str,)| text.strip_prefix(prefix).unwrap_or(text).into()),
        "removesuffix" => from_args(args).map(|(suffix,): (&str,)| text.strip_suffix(suffix).unwrap_or(text).into()),
        "partition" => from_args(args).map(|(separator,): (&str,)| {
            let (before, after) = text.split_once(separator).unwrap_or((text, ""));
            let found = if text.contains(separator) { separator } else { "" };
            both((before.into(), found.into(), after.into()))
        }),
        "rpartition" => from_args(args).map(|(separator,): (&str,)| {
            let (before, after) = text.rsplit_once(separator).unwrap_or(("", text));
            let found = if text.contains(separator) { separator } else { "" };
            both((before.into(), found.into(), after.into()))
        }),
        "index" => from_args(args).and_then(|(wanted,): (&str,)| match text.find(wanted) {
            Some(byte) => Ok(text[..byte].chars().count().into()),
            None => Err(invalid("substring not found".into())),
        }),
        "isspace" => Ok((!text.is_empty() && text.chars().all(is_space)).into()),
        "split" | "rsplit" => split(text, args, method == "rsplit"),
        "splitlines" => from_args(args).map(|(keep_ends,): (Option<bool>,)| split_lines(text, keep_ends == Some(true))),
        _ => return None,
    })
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// str.isspace: Unicode white space and the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn strip<'a>(text: &'a str, chars: Option<&str>, start: bool, end: bool) -> &'a str {
    let drop = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if start { text.trim_start_matches(drop) } else { text };
    if end {
        text.trim_end_matches(drop)
    } else {
        text
    }
}

/// str.split and str.rsplit: (sep=None, maxsplit=-1).
fn split(text: &str, args: Args, from_end: bool) -> Result<Value, Error> {
    let (separator, limit, kwargs): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = separator.or(kwargs.get("sep")?);
    let limit = limit.or(kwargs.get("maxsplit")?);
    kwargs.assert_all_used()?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = match (separator, from_end) {
        (Some(""), _) => return Err(invalid("empty separator".into())),
        (Some(separator), false) => text.splitn(limit.saturating_add(1), separator).collect(),
        (Some(separator), true) => text.rsplitn(limit.saturating_add(1), separator).collect(),
        (None, _) => split_spaces(text, limit, from_end),
    };
    if from_end {
        parts.reverse();
    }
    Ok(list(parts))
}

/// Words between runs of white space, from either end; after `limit` cuts the rest is one part.
fn split_spaces(text: &str, limit: usize, from_end: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = strip(text, None, !from_end, from_end);
    while !rest.is_empty() {
        let cut = if from_end { rest.rsplit_once(is_space) } else { rest.split_once(is_space) };
        let Some((before, after)) = cut.filter(|_| parts.len() < limit) else {
            parts.push(rest);
            break;
        };
        let (word, remainder) = if from_end { (after, before) } else { (before, after) };
        parts.push(word);
        rest = strip(remainder, None, !from_end, from_end);
    }
    parts
}

fn split_lines(text: &str, keep_ends: bool) -> Value {
    let is_end = |c: char| matches!(c, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(is_end).unwrap_or(rest.len());
        let end = match rest[length..].chars().next() {
            Some('\r') if rest[length..].starts_with("\r\n") => length + 2,
            Some(c) => length + c.len_utf8(),
            None => length,
        };
        lines.push(if keep_ends { &rest[..end] } else { &rest[..length] });
        rest = &rest[end..];
    }
    list(lines)
}

fn list(items: Vec<&str>) -> Value {
    items.into_iter().map(Value::from).collect::<Vec<_>>().into()
}

fn as_float(value: &Value) -> Option<f64> {
    if value.kind() == ValueKind::Number && !value.is_integer() {
        f64::try_from(value.clone()).ok()
    } else {
        None
    }
}

/// Python's repr: the shortest digits that read back, positional for exponents -4..16.
fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes an integer exponent");
    if number == 0.0 || (-4..16).contains(&exponent) {
        return format!("{number:?}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// json.dumps(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False).
pub fn tojson(
    value: &Value,
    ensure_ascii: Option<bool>,
    indent: Option<Value>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let ensure_ascii = ensure_ascii.or(kwargs.get("ensure_ascii")?).unwrap_or(false);
    let indent = indent.or(kwargs.get("indent")?).filter(|indent| !indent.is_none());
    let separators = kwargs.get::<Option<Value>>("separators")?.filter(|separators| !separators.is_none());
    let sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let indent = match indent {
        None => None,
        Some(indent) => Some(match indent.as_str() {
            Some(unit) => unit.to_string(),
            None => " ".repeat(indent.as_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0).min(1000)),
        }),
    };
    let part = |index: usize, otherwise: &str| -> Result<String, Error> {
        match &separators {
            Some(pair) => Ok(pair.get_item(&Value::from(index))?.to_string()),
            None => Ok(otherwise.to_string()),
        }
    };
    let between = part(0, if indent.is_some() { "," } else { ", " })?;
    let after_key = part(1, ": ")?;
    let mut writer = JsonWriter { out: String::new(), ensure_ascii, sort_keys, indent, between, after_key };
    writer.write(value, 0)?;
    Ok(writer.out)
}

struct JsonWriter {
    out: String,
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    between: String,
    after_key: String,
}

impl JsonWriter {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid("tojson: nested too deeply".into()));
        }
        match value.kind() {
            ValueKind::None | ValueKind::Bool | ValueKind::Number => self.out.push_str(&scalar(value)),
            ValueKind::String => self.write_string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.write_group('[', ']', items.len(), depth, |writer, i| writer.write(&items[i], depth + 1))?;
            }
            ValueKind::Map => {
                let mut entries = Vec::new();
                for key in value.try_iter()? {
                    let text = key.as_str().map_or_else(|| scalar(&key), str::to_string);
                    entries.push((text, value.get_item(&key)?));
                }
                if self.sort_keys {
                    entries.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.write_group('{', '}', entries.len(), depth, |writer, i| {
                    writer.write_string(&entries[i].0);
                    let after_key = writer.after_key.clone();
                    writer.out.push_str(&after_key);
                    writer.write(&entries[i].1, depth + 1)
                })?;
            }
            other => return Err(invalid(format!("Object of type {other} is not JSON serializable"))),
        }
        Ok(())
    }

    fn write_group(
        &mut self,
        open: char,
        close: char,
        count: usize,
        depth: usize,
        mut write_item: impl FnMut(&mut Self, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(open);
        for i in 0..count {
            if i > 0 {
                self.out.push_str(&self.between);
            }
            self.new_line(depth + 1);
            write_item(self, i)?;
        }
        if count > 0 {
            self.new_line(depth);
        }
        self.out.push(close);
        Ok(())
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            self.out.push_str(&indent.repeat(depth));
        }
    }

    fn write_string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\x08' => self.out.push_str("\\b"),
                '\x0c' => self.out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(self.out, "\\u{unit:04x}").expect("a String takes any text");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

/// Python has a recursion limit as well; this one keeps the stack safe.
const MAX_DEPTH: usize = 500;

/// None, bools and numbers as JSON; also what json.dumps makes of such a key.
fn scalar(value: &Value) -> String {
    match (value.kind(), as_float(value)) {
        (ValueKind::None, _) => "null".into(),
        (ValueKind::Bool, _) => if value.is_true() { "true" } else { "false" }.into(),
        (_, Some(number)) if number.is_nan() => "NaN".into(),
        (_, Some(number)) if number.is_infinite() => if number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        (_, Some(number)) => float_repr(number),
        (_, None) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (123456.789, "123456.789"),
        ] {
            assert_eq!(float_repr(number), text);
        }
    }

    #[test]
    fn words_split_as_in_python() {
        assert_eq!(split_spaces(" a b  c ", 1, false), ["a", "b  c "]);
        assert_eq!(split_spaces(" a b  c ", 1, true), ["c", " a b"]);
        assert_eq!(split_spaces(" a\x1cb ", usize::MAX, false), ["a", "b"]);
        assert!(split_spaces("  ", usize::MAX, false).is_empty());
    }
}
