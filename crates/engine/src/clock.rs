//! The wall clock, and random bytes: the two things that the pure crates are given.

use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::EngineError;

/// Returns the moment by the wall clock; one before 1970 is taken as its start.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns random bytes for a new id.
pub(crate) fn random() -> Result<[u8; 10], EngineError> {
    let mut bytes = [0; 10];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(10) => Ok(bytes),
        Ok(_) => {
            Err(EngineError::file("get random bytes", "the kernel")(std::io::ErrorKind::UnexpectedEof.into()))
        }
        Err(error) => Err(EngineError::file("get random bytes", "the kernel")(error.into())),
    }
}
