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
    /// A bug here or in a dependency.
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
            let place = info.location().map(|l| l.to_string()).unwrap_or_default();
            PANIC_PLACE.with(|slot| *slot.borrow_mut() = place);
        }))
    });
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let place = PANIC_PLACE.with(|slot| slot.take());
        Err(Failure::Panicked(format!("{} at {place}", panic_text(payload.as_ref()))))
    })
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
}
