//! Plays a written transcript as the model's server, so that the whole path runs without a key and without a model.
//!
//! Guarantees: what is played depends on the request alone, so a client that tries again gets the same turn; the
//! server is as strict as the real one about thoughts that must be sent back and calls that must be answered;
//! a transcript that was cut or edited carelessly is refused with the line.
//! Leaves to others: nothing of the wire; the client cannot tell. The format is described in
//! `docs/replay-format.md`.

mod http;
mod script;
mod server;
mod transcript;

/// Reads a request as the server does, for the fuzz targets.
///
/// # Errors
/// When it is not one.
#[doc(hidden)]
pub fn read_request_head(bytes: &[u8]) -> std::io::Result<()> {
    http::read_request(bytes).map(drop)
}

pub use server::ReplayServer;
pub use transcript::{
    Call, Delivery, Fault, Figures, Header, PlayedTurn, Transcript, TranscriptError, TranscriptFault,
};
