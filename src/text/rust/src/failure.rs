//! How a failure reaches C++: as `KIND|message`, which src/text/rust_error.cpp turns into a foresay Error.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

#[derive(Debug)]
pub enum Failure {
    /// The input was wrong; the caller knows whether that means the checkpoint or the request.
    Invalid(String),
    /// The input may be right, but this program cannot honour it.
    Unsupported(String),
    /// The chat template called raise_exception: the message is the template author's.
    Raised(String),
    /// A library here gave up on an input that it should have refused.
    Panicked(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Invalid(message) => write!(f, "invalid|{message}"),
            Failure::Unsupported(message) => write!(f, "unsupported|{message}"),
            Failure::Raised(message) => write!(f, "raised|{message}"),
            Failure::Panicked(message) => write!(f, "panicked|{message}"),
        }
    }
}

thread_local! {
    static PANIC_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `work`; a panic inside becomes a Failure, because unwinding into C++ would end the process.
pub fn guard<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // The default hook prints to standard error, which a library must not; the place goes into the message instead.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map(|l| place_of(l.file(), l.line())).unwrap_or_default();
            PANIC_PLACE.with(|slot| *slot.borrow_mut() = place);
        }))
    });
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let place = PANIC_PLACE.with(|slot| slot.take());
        Err(Failure::Panicked(format!("{} at {place}", panic_text(payload.as_ref()))))
    })
}

/// Crate, file and line, without the folders of the machine that built this.
fn place_of(file: &str, line: u32) -> String {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let source = parts.iter().rposition(|part| *part == "src").unwrap_or(0);
    format!("{}:{line}", parts[source.saturating_sub(1)..].join("/"))
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "panic"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure() {
        let result: Result<(), Failure> = guard(|| panic!("broken {}", 7));
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with("panicked|broken 7 at "), "{text}");
        assert!(text.contains("failure.rs"), "{text}");
    }

    #[test]
    fn a_place_is_a_crate_and_not_a_machine() {
        assert_eq!(place_of("/home/me/.cargo/registry/src/index/one-1.2/src/a/mod.rs", 7), "one-1.2/src/a/mod.rs:7");
        assert_eq!(place_of("src/failure.rs", 3), "src/failure.rs:3");
        assert_eq!(place_of("odd.rs", 1), "odd.rs:1");
    }
}
