//! The client of DeepSeek's API (chat completions, streamed), as its documentation of autumn 2026 describes it.
//!
//! Guarantees: the key goes into the `Authorization` header of requests to the base URL and nowhere else; redirects
//! are refused; everything that is received is bounded in size and in time; a stream that was cut is never taken
//! for an answer; passing faults are tried again with growing pauses, a bounded number of times.
//! Leaves to others: what is sent ([`crate::context::Outgoing`]), and what the answer leads to. Nothing here opens a file, and names
//! are looked up only in [`Endpoint::resolve`], so that the process may have given up both by the time it asks.

mod assemble;
mod client;
mod endpoint;
mod error;
mod retry;
mod sse;

pub use client::{Client, Settings, Timeouts};
pub use endpoint::Endpoint;
pub use error::ClientError;
pub use retry::Retry;

/// Reads a whole stream as the client does, for the fuzz targets.
///
/// # Errors
/// With what is wrong with it.
#[doc(hidden)]
pub fn read_stream(bytes: &[u8]) -> Result<crate::conversation::Turn, String> {
    let mut assembly = assemble::Assembly::default();
    let mut events = sse::Events::new(bytes);
    while let Some(event) = events.next().map_err(|error| format!("{error:?}"))? {
        match event {
            sse::Event::Comment => {}
            sse::Event::Data(data) if data.trim() == "[DONE]" => break,
            sse::Event::Data(data) => assembly.add(&data).map_err(|error| format!("{error:?}"))?,
        }
    }
    if assembly.is_whole() { Ok(assembly.into_parts().0) } else { Err("it was cut".to_owned()) }
}
