//! Bytes that the kernel takes as a name or an argument: anything but NUL, not always UTF-8.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::path::WorkspacePath;
use crate::text::escape;

/// An argument, a path or an environment value as the kernel sees it: any bytes but NUL.
///
/// In JSON it is a string when it is UTF-8, and `{"hex": "..."}` otherwise, so that nothing is lost.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct OsText(Vec<u8>);

/// Says that a text holds a NUL byte, which no argument or path can carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OsTextError {
    /// The kernel ends names at NUL, so what comes after it would be lost without a word.
    #[error("`{}` holds a NUL byte, which no argument or path can carry", escape(.0))]
    Nul(String),
    /// The JSON form was not one of the two that we write.
    #[error("`{}` is not pairs of hexadecimal digits", escape(.0))]
    Hex(String),
}

impl OsText {
    /// Takes bytes without NUL.
    ///
    /// # Errors
    /// When there is a NUL among them.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, OsTextError> {
        let bytes = bytes.into();
        if bytes.contains(&0) {
            return Err(OsTextError::Nul(String::from_utf8_lossy(&bytes).into_owned()));
        }
        Ok(Self(bytes))
    }

    /// Takes a text of our own up to its first NUL.
    pub fn literal(text: &str) -> Self {
        Self(text.split('\0').next().unwrap_or_default().as_bytes().to_vec())
    }

    /// Returns this text with a path of the workspace behind it.
    #[must_use]
    pub fn with(&self, path: &WorkspacePath) -> Self {
        Self([self.as_bytes(), path.as_bytes()].concat())
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text as the operating system's string.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// Returns the text as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os_str())
    }

    /// Returns the text as UTF-8, where it is.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns the text as a path of its own.
    pub fn to_path_buf(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.0.clone()))
    }
}

impl fmt::Display for OsText {
    /// Writes the text so that it cannot drive a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&String::from_utf8_lossy(&self.0)))
    }
}

impl fmt::Debug for OsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl TryFrom<&str> for OsText {
    type Error = OsTextError;

    fn try_from(text: &str) -> Result<Self, OsTextError> {
        Self::new(text)
    }
}

impl TryFrom<OsString> for OsText {
    type Error = OsTextError;

    fn try_from(text: OsString) -> Result<Self, OsTextError> {
        Self::new(text.into_vec())
    }
}

impl TryFrom<&Path> for OsText {
    type Error = OsTextError;

    fn try_from(path: &Path) -> Result<Self, OsTextError> {
        Self::new(path.as_os_str().as_bytes())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { hex: String },
}

impl From<OsText> for Written {
    fn from(text: OsText) -> Self {
        match String::from_utf8(text.0) {
            Ok(text) => Self::Text(text),
            Err(error) => {
                Self::Bytes { hex: error.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect() }
            }
        }
    }
}

impl TryFrom<Written> for OsText {
    type Error = OsTextError;

    fn try_from(written: Written) -> Result<Self, OsTextError> {
        match written {
            Written::Text(text) => Self::new(text),
            Written::Bytes { hex } => {
                let wrong = || OsTextError::Hex(hex.clone());
                if !hex.is_ascii() || hex.len() % 2 != 0 {
                    return Err(wrong());
                }
                let pairs = (0..hex.len()).step_by(2);
                let bytes: Result<Vec<u8>, _> =
                    pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect();
                Self::new(bytes.map_err(|_| wrong())?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_json_in_either_form() {
        for bytes in [b"plain".to_vec(), "naïve 日本".as_bytes().to_vec(), vec![0xff, 0xfe, b'/']] {
            let text = OsText::new(bytes).expect("no NUL");
            let json = serde_json::to_string(&text).expect("has a JSON form");
            assert_eq!(serde_json::from_str::<OsText>(&json).expect("is read back"), text);
        }
    }

    #[test]
    fn a_nul_is_refused_in_either_form() {
        assert!(OsText::new(b"a\0b".to_vec()).is_err());
        assert!(serde_json::from_str::<OsText>(r#""a\u0000b""#).is_err());
        assert!(serde_json::from_str::<OsText>(r#"{"hex":"00"}"#).is_err());
        assert!(serde_json::from_str::<OsText>(r#"{"hex":"é1"}"#).is_err());
    }
}
