//! What can go wrong with a model's server, and what to do about it.

use std::time::Duration;

use super::assemble::PieceError;
use super::sse::StreamError;
use crate::protocol::{FailureKind, ProtocolError};

/// Says why there is no answer of the model.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The base URL cannot be used.
    #[error("the base URL `{}` cannot be used: {reason}", model::text::escape(url))]
    Address {
        /// The URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// The name of the server was not found.
    #[error("the name of `{}` was not found: check the base URL and the network", model::text::escape(host))]
    Lookup {
        /// The host.
        host: String,
        /// What the lookup said.
        #[source]
        source: std::io::Error,
    },
    /// The certificates to trust cannot be used.
    #[error(
        "the certificates to trust cannot be used: give a file in PEM form with at least one certificate"
    )]
    Roots,
    /// The key cannot be put into a header.
    #[error("the key is empty or holds characters that no key has: check where it was copied from")]
    KeyText,
    /// The server answered with an error.
    #[error("{}", status_text(*status, message, host))]
    Status {
        /// The status.
        status: u16,
        /// What the server said.
        message: String,
        /// The server.
        host: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The server sends the request elsewhere.
    #[error(
        "`{}` redirects to `{}` ({status}), where the key is not sent: set the base URL to where the API is",
        model::text::escape(host),
        model::text::escape(location)
    )]
    Redirected {
        /// The status.
        status: u16,
        /// The server.
        host: String,
        /// Where it sends the request.
        location: String,
    },
    /// The server's certificate is not trusted, or it does not speak TLS.
    #[error(
        "no trusted connection to `{}`: if it is a gateway with a certificate of its own, name the file with its \
         roots",
        model::text::escape(host)
    )]
    Certificate {
        /// The server.
        host: String,
        /// What TLS said.
        #[source]
        source: Box<ureq::Error>,
    },
    /// The connection failed, or nothing came for too long.
    #[error(
        "the connection to `{}` failed: check the network, then resume the task",
        model::text::escape(host)
    )]
    Connection {
        /// The server.
        host: String,
        /// What happened.
        #[source]
        source: Box<ureq::Error>,
    },
    /// The connection ended in the middle of an answer.
    #[error("the answer of `{}` was cut: {reason}", model::text::escape(host))]
    Cut {
        /// The server.
        host: String,
        /// What is known.
        reason: String,
    },
    /// The server had too few resources to end its answer.
    #[error("`{}` ran out of resources in the middle of its answer: try later", model::text::escape(host))]
    Exhausted {
        /// The server.
        host: String,
    },
    /// What came is not an answer.
    #[error(
        "`{}` did not send an answer of the chat completions API: {reason}. Check the base URL",
        model::text::escape(host)
    )]
    Response {
        /// The server.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// Nobody is waiting for the answer any more.
    #[error(transparent)]
    Abandoned(ProtocolError),
}

impl ClientError {
    /// Returns the kind of failure, for programs.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Address { .. } | Self::Lookup { .. } => FailureKind::Address,
            Self::Roots | Self::Certificate { .. } => FailureKind::Certificate,
            Self::KeyText => FailureKind::Key,
            Self::Status { status, .. } => kind_of(*status),
            Self::Redirected { .. } => FailureKind::Redirect,
            Self::Connection { .. } | Self::Cut { .. } | Self::Abandoned(_) => FailureKind::Connection,
            Self::Exhausted { .. } => FailureKind::Server,
            Self::Response { .. } => FailureKind::Response,
        }
    }

    /// Tells whether the same request may be answered well a little later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            Self::Connection { .. } | Self::Cut { .. } | Self::Exhausted { .. } => true,
            _ => false,
        }
    }

    /// Returns how long the server asks to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the text with its causes, for people.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {}", model::text::escape(&error.to_string()));
            cause = error.source();
        }
        text
    }

    pub(super) fn of_stream(error: StreamError, host: &str) -> Self {
        match error {
            StreamError::Io(source) if source.kind() == std::io::ErrorKind::FileTooLarge => {
                Self::Response { host: host.to_owned(), reason: source.to_string() }
            }
            StreamError::Io(source) => Self::Cut {
                host: host.to_owned(),
                reason: model::text::escape(&source.to_string()).into_owned(),
            },
            other => Self::Response { host: host.to_owned(), reason: other.to_string() },
        }
    }

    pub(super) fn of_piece(error: &PieceError, host: &str) -> Self {
        match error {
            // What a server reports in the middle of its answer is its own trouble.
            PieceError::Reported(_) => Self::Cut { host: host.to_owned(), reason: error.to_string() },
            _ => Self::Response {
                host: host.to_owned(),
                reason: model::text::escape(&error.to_string()).into_owned(),
            },
        }
    }
}

fn kind_of(status: u16) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Key,
        402 => FailureKind::Balance,
        408 | 429 | 500..=599 => FailureKind::Server,
        404 => FailureKind::Address,
        _ => FailureKind::Request,
    }
}

fn status_text(status: u16, message: &str, host: &str) -> String {
    let (host, said) = (model::text::escape(host), model::text::escape(message));
    let what = match status {
        400 => "does not take the request: if the model's name is right, report this",
        401 => "does not take the key: check DEEPSEEK_API_KEY, or the key file that you named",
        402 => "says that the account has no balance: add to it, then resume the task",
        403 => "does not allow this key to do this: check the key's rights",
        404 => "does not know this address or model: check the base URL and the model's name",
        413 => "finds the request too large: lower the context budget, or split the task",
        422 => "does not take a parameter of the request: check the model's name and the effort",
        408 | 429 | 500..=599 => "did not answer well in all tries: resume the task later",
        _ => "gave an answer that we did not expect: check the base URL",
    };
    format!("`{host}` {what} ({status}: `{said}`)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> ClientError {
        ClientError::Status { status, message: "no\n".into(), host: "api.example".into(), retry_after: None }
    }

    #[test]
    fn each_status_says_what_to_do_and_shows_foreign_text_escaped() {
        let cases = [
            (400, FailureKind::Request, "report this"),
            (401, FailureKind::Key, "DEEPSEEK_API_KEY"),
            (402, FailureKind::Balance, "add to it"),
            (404, FailureKind::Address, "base URL"),
            (422, FailureKind::Request, "parameter"),
            (429, FailureKind::Server, "later"),
            (503, FailureKind::Server, "later"),
            (418, FailureKind::Request, "did not expect"),
        ];
        for (code, kind, text) in cases {
            let error = status(code);
            assert_eq!(error.kind(), kind, "{code}");
            assert!(error.to_string().contains(text), "{error}");
            assert!(error.to_string().ends_with(&format!("({code}: `no\\n`)")), "{error}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for code in [429, 500, 502, 503, 504] {
            assert!(status(code).may_pass(), "{code}");
        }
        for code in [400, 401, 402, 403, 404, 422] {
            assert!(!status(code).may_pass(), "{code}");
        }
    }
}
