//! The answers that are our own.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};

use super::body::Body;
use crate::Refusal;

/// The header by which programs know that an answer is ours, and why it came.
const REASON: &str = "x-fumehood-reason";

/// Answers that a request is refused.
pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    text(StatusCode::FORBIDDEN, refusal.reason, &format!("fumehood refused this request: {}\n", refusal.why))
}

/// Answers that a request was allowed and failed.
pub(crate) fn failed(why: &str) -> Response<Body> {
    text(
        StatusCode::BAD_GATEWAY,
        "upstream-failed",
        &format!("fumehood allowed this request, and it failed: {why}\n"),
    )
}

fn text(status: StatusCode, reason: &'static str, text: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(text.to_owned())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REASON, HeaderValue::from_static(reason));
    response
}
