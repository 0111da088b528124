//! What the owner writes, and the receipts.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Method, Request};
use contract::id::{ConnectionId, StreamName};
use contract::key::RecordKey;
use rest::Limits;
use serde_json::json;
use store::records::{Change, ChangeOp};

use crate::fixture::{MAIL, World, letter, send};

#[tokio::test]
async fn a_line_for_a_record_that_the_owner_deleted_is_answered_for() {
    // TR-21: whoever sends it hears that it was not taken.
    let world = World::new().await;
    let work = ConnectionId::parse("work").unwrap();
    let change = Change {
        stream: StreamName::parse("messages").unwrap(),
        key: RecordKey::single("m1").unwrap(),
        emitted_at: "2026-03-01".to_owned(),
        op: ChangeOp::DeleteByOwner,
    };
    world.store.write(&work, vec![change]).unwrap();
    let lines = [
        letter("m1", "again", "text", 5),
        letter("n1", "new", "text", 5),
    ];
    let receipt = world.ingest("work", "messages", &lines.join("\n")).await;
    assert_eq!(receipt["records_accepted"], 1);
    assert_eq!(receipt["records_rejected"], 1);
    assert_eq!(receipt["rejections"][0]["input_index"], 0);
    assert_eq!(receipt["rejections"][0]["code"], "deleted_by_owner");
}

#[tokio::test]
async fn gzip_is_unpacked_whether_announced_or_not() {
    let world = World::new().await;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(letter("z1", "zipped", "text", 6).as_bytes())
        .unwrap();
    let packed = packed.finish().unwrap();
    for announced in [true, false] {
        let mut request = Request::post("/v1/ingest/messages?connection_id=work")
            .header("authorization", format!("Bearer {}", world.owner));
        if announced {
            request = request.header("content-encoding", "gzip");
        }
        let answer = world
            .send(request.body(Body::from(packed.clone())).unwrap())
            .await;
        assert_eq!(answer.body["records_accepted"], 1, "{}", answer.body);
    }
    let cut = packed[..packed.len() - 9].to_vec();
    let answer = world
        .write(Method::POST, "/v1/ingest/messages?connection_id=work", cut)
        .await;
    assert_eq!(answer.failure(), (400, "invalid_request"));
    let request = Request::post("/v1/ingest/messages?connection_id=work")
        .header("authorization", format!("Bearer {}", world.owner))
        .header("content-encoding", "br");
    let answer = world.send(request.body(Body::from("x")).unwrap()).await;
    assert_eq!(answer.failure(), (415, "invalid_request"));
}

#[tokio::test]
async fn too_much_is_refused_before_it_is_held() {
    let world = World::new().await;
    let limits = Limits {
        ingest_bytes: 1_000,
        unpacked_bytes: 5_000,
        ingest_lines: 10,
        blob_bytes: 10,
        declaration_bytes: 10,
        ..Limits::default()
    };
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&vec![b' '; 100_000]).unwrap();
    for (target, body) in [
        ("/v1/ingest/messages?connection_id=work", vec![b'x'; 2_000]),
        (
            "/v1/ingest/messages?connection_id=work",
            packed.finish().unwrap(),
        ),
        ("/v1/ingest/messages?connection_id=work", b"x\n".repeat(20)),
        (
            "/v1/blobs?connection_id=work&stream=attachments&record_key=a1",
            vec![0; 11],
        ),
        ("/v1/connectors", MAIL.as_bytes().to_vec()),
    ] {
        let request =
            Request::post(target).header("authorization", format!("Bearer {}", world.owner));
        let answer = send(
            world.limited(limits),
            request.body(Body::from(body)).unwrap(),
        )
        .await;
        assert_eq!(answer.failure(), (413, "resource_limit"), "{target}");
    }
}

#[tokio::test]
async fn a_write_must_know_where_to() {
    let world = World::new().await;
    let refused = "
        /v1/ingest/messages                                       409 ambiguous_connection
        /v1/ingest/messages?connection_id=nope                    404 connection_not_found
        /v1/ingest/nope?connection_id=work                        404 stream_not_declared
        /v1/ingest/messages?connection_id=work&run_id=1           400 invalid_request
        /v1/blobs?connection_id=work                              400 invalid_request
        /v1/blobs?connection_id=work&stream=events&record_key=one 400 invalid_request
    ";
    world.refuses(Method::POST, refused).await;
    let answer = world
        .write(
            Method::POST,
            "/v1/ingest/messages?connector_instance_id=work",
            letter("x", "x", "x", 1),
        )
        .await;
    assert_eq!(
        answer.header("pdpp-warning"),
        "deprecated_alias_used: connector_instance_id"
    );
}

#[tokio::test]
async fn deleting_says_nothing_about_what_was_there() {
    let world = World::new().await;
    for target in [
        "/v1/streams/messages/records/m1?connection_id=work",
        "/v1/streams/messages/records/m1?connection_id=work",
        "/v1/streams/messages/records/never?connection_id=work",
    ] {
        let answer = world.write(Method::DELETE, target, "").await;
        assert_eq!((answer.status.as_u16(), answer.bytes.len()), (204, 0));
    }
    let rest = world
        .read("/v1/streams/messages/records?connection_id=work&count=exact")
        .await;
    assert_eq!(rest["meta"]["count"]["value"], 2);
    let answer = world
        .write(
            Method::DELETE,
            "/v1/streams/messages/records?connection_id=work",
            "",
        )
        .await;
    assert_eq!(answer.status, 204);
    let rest = world
        .read("/v1/streams/messages/records?connection_id=work&count=exact")
        .await;
    assert_eq!(rest["meta"]["count"]["value"], 0);
    let home = world
        .read("/v1/streams/messages/records?connection_id=home&count=exact")
        .await;
    assert_eq!(home["meta"]["count"]["value"], 1);
}

#[tokio::test]
async fn a_declaration_is_registered_or_every_mistake_is_named() {
    let world = World::empty();
    let other = MAIL.replace("demo_mail", "demo_post");
    let declare = async |text: &str| {
        world
            .write(Method::POST, "/v1/connectors", text.to_owned())
            .await
    };
    let answer = declare(&other).await;
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.body,
        json!({"connector_id": "demo_post", "connector_key": "demo_post", "result": "added"})
    );
    let answer = declare(&other).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body["result"]),
        (200, &json!("unchanged"))
    );
    let changed = other.replace("\"primary_key\": [\"id\"]", "\"primary_key\": [\"nope\"]");
    for text in ["", "{", "[]", "\u{1}", changed.as_str()] {
        let answer = declare(text).await;
        assert_eq!(answer.failure(), (400, "invalid_request"), "{text}");
    }
    let mistakes = declare(&changed).await.body["error"]["errors"].clone();
    assert!(mistakes.to_string().contains("primary_key"), "{mistakes}");
}
