//! Paths and addresses of what an answer refers to. Every variable part is one percent-encoded segment.

use contract::id::{ConnectionId, StreamName};
use contract::key::RecordKey;
use contract::upstream::encoded;

/// `/v1/streams/{stream}/records`
pub(crate) fn records(stream: &StreamName) -> String {
    format!("/v1/streams/{}/records", encoded(stream.as_str()))
}

/// `/v1/streams/{stream}/records/{id}`, which needs a connection beside it where several carry the stream.
pub(crate) fn record(stream: &StreamName, key: &RecordKey) -> String {
    format!("{}/{}", records(stream), encoded(key.as_str()))
}

/// `/v1/streams/{stream}/records/{id}/field-window`
pub(crate) fn field_window(stream: &StreamName, key: &RecordKey) -> String {
    format!("{}/field-window", record(stream, key))
}

/// `/v1/blobs/{id}`
pub(crate) fn blob(id: &str) -> String {
    format!("/v1/blobs/{}", encoded(id))
}

/// Where the owner can look at the record, under the server's public address.
pub(crate) fn citation(
    public_url: &str,
    connection: &ConnectionId,
    stream: &StreamName,
    key: &RecordKey,
) -> String {
    format!(
        "{}/records/{}/{}/{}",
        public_url.trim_end_matches('/'),
        encoded(connection.as_str()),
        encoded(stream.as_str()),
        encoded(key.as_str()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_one_segment() {
        let stream = StreamName::parse("my notes").unwrap();
        let connection = ConnectionId::parse("work").unwrap();
        let key = RecordKey::single("a/b?c=ü:1").unwrap();
        assert_eq!(
            record(&stream, &key),
            "/v1/streams/my%20notes/records/a%2Fb%3Fc%3D%C3%BC%3A1"
        );
        assert_eq!(
            citation("https://me.example/", &connection, &stream, &key),
            "https://me.example/records/work/my%20notes/a%2Fb%3Fc%3D%C3%BC%3A1"
        );
        let dots = RecordKey::single("..").unwrap();
        assert!(field_window(&stream, &dots).ends_with("/%2E%2E/field-window"));
    }
}
