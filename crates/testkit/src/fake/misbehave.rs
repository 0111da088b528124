//! Ways in which a server fails its callers.

use super::reply::{Delivery, Failure, Reply};
use super::state::ErrorShape;

/// A failure that a caller must survive.
#[derive(Debug, Clone)]
pub enum Misbehaviour {
    Html(u16),
    /// JSON that ends too early, in a whole answer.
    TruncatedJson,
    /// The connection breaks in the middle of the body.
    BrokenBody,
    /// JSON with bytes that are no UTF-8.
    InvalidUtf8,
    Redirect(String),
    /// The connection is reset without an answer.
    Reset,
    Fails(ErrorShape, Failure),
    /// 200 with JSON that is no object.
    Scalar,
    /// 200 without a body.
    Empty,
}

impl Misbehaviour {
    pub(crate) fn reply(&self, request_id: &str) -> Reply {
        let json = |body: Vec<u8>| Reply::new(200, "application/json", body);
        match self {
            Misbehaviour::Reset => json(Vec::new()).delivered(Delivery::Reset),
            Misbehaviour::BrokenBody => {
                json(br#"{"object":"list","data":["#.to_vec()).delivered(Delivery::Broken)
            }
            Misbehaviour::Html(status) => Reply::new(
                *status,
                "text/html; charset=utf-8",
                "<!doctype html><html><head><title>Gateway</title></head><body><h1>Something is in the way</h1></body></html>",
            ),
            Misbehaviour::TruncatedJson => {
                json(br#"{"object":"list","data":[{"id":"m1","#.to_vec())
            }
            Misbehaviour::InvalidUtf8 => {
                json(b"{\"object\":\"list\",\"data\":[],\"note\":\"\xff\xfe\"}".to_vec())
            }
            Misbehaviour::Redirect(target) => {
                Reply::new(302, "text/plain", "elsewhere").header("location", target)
            }
            Misbehaviour::Fails(shape, failure) => failure.reply(*shape, request_id),
            Misbehaviour::Scalar => json(b"42".to_vec()),
            Misbehaviour::Empty => json(Vec::new()),
        }
    }
}
