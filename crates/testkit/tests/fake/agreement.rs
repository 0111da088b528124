//! The fake computes everything on its own; here it agrees with the contract, which computes it as well.

use contract::page::Page;
use contract::record::{FieldWindow, Record};
use contract::schema::{CompactSchema, Schema};
use contract::search::SearchHit;
use contract::upstream::Get;
use contract::window::cut;
use contract::{ErrorCode, WindowSelector};
use serde_json::{Value, json};
use testkit::fake::{
    Connector, Dice, FakeServer, Field, Quirk, State, Stream, World, fixtures, hostile,
};

use super::ask::{get, ok};

const TEXT: &str = "e\u{301}😀 Quartz 会議 quartz ẞß <mark>quartz</mark>\r\n\u{0}مرحبا";

fn question(dice: &mut Dice) -> WindowSelector {
    let mut number = |bound: usize| (dice.below(2) == 0).then(|| dice.below(bound));
    let mut selector = WindowSelector {
        offset_chars: number(400),
        limit_chars: number(40),
        before_chars: number(12),
        after_chars: number(12),
        ..WindowSelector::default()
    };
    let words = ["quartz", "QUARTZ", "会", "zzz", "😀", "", "\u{301}"];
    if dice.below(2) == 0 {
        selector.q = Some(dice.pick(&words).to_owned());
    }
    selector
}

#[test]
fn windows_agree_for_every_selector() {
    let text = TEXT.repeat(6);
    let stream = Stream::new("s").field(Field::text("t"));
    let world = World::default()
        .with(Connector::new("k").connection("c", "C").stream(stream))
        .with_record("c", "s", "r", json!({"t": text}));
    let server = FakeServer::start(State::new(world));
    let mut dice = Dice::new(1);
    let mut windows = 0;
    for _ in 0..400 {
        let selector = question(&mut dice);
        let target = Get::v1(["streams", "s", "records", "r", "field-window"])
            .with("field", Some("t"))
            .with("offset_chars", selector.offset_chars.map(|n| n.to_string()))
            .with("limit_chars", selector.limit_chars.map(|n| n.to_string()))
            .with("q", selector.q.clone())
            .with("before_chars", selector.before_chars.map(|n| n.to_string()))
            .with("after_chars", selector.after_chars.map(|n| n.to_string()))
            .target();
        let (status, body) = get(&server, &target);
        match selector.request().and_then(|request| cut(&text, &request)) {
            Ok(window) => {
                let read: FieldWindow = serde_json::from_value(body).unwrap();
                assert_eq!(read.window, window, "{selector:?}");
                windows += 1;
            }
            Err(error) => {
                let expected = error.for_field("t");
                assert_eq!(status, expected.code.http_status(), "{selector:?}");
                assert_eq!(body["error"]["code"], json!(expected.code.as_str()));
            }
        }
    }
    assert!(windows > 50, "{windows} windows");
}

fn many_kinds() -> State {
    let fields = Stream::new("mixed")
        .field(Field::id("id").role("primary-title"))
        .field(Field::text("text").semantic())
        .field(Field::time("at").range(&["gte", "lt"]).exact())
        .field(Field::id("person").unusable("not_indexed"))
        .field(Field::text("secret").exact().hidden())
        .field(Field::new("nothing", "object"));
    let mut state = fixtures::schema().with(Quirk::ListsHiddenFields);
    state.world.connectors[0].streams.push(fields);
    state.world.connectors[0].connections[0].streams = Some(vec!["messages".to_owned()]);
    state.world.connectors[0].connections[1].streams = None;
    state
}

#[test]
fn the_compact_schema_is_the_full_one_in_a_few_words() {
    for state in [
        fixtures::schema(),
        many_kinds(),
        fixtures::schema().with(Quirk::RefusesClientFilters),
        hostile(3),
    ] {
        let server = FakeServer::start(state);
        let full: Schema = serde_json::from_value(ok(&server, "/v1/schema")).unwrap();
        let compact = ok(&server, "/v1/schema?view=compact");
        let compact: CompactSchema = serde_json::from_value(compact).unwrap();
        let mut expected = serde_json::to_value(full.compact()).unwrap();
        // The fake is a server of the kind whose compact view speaks of fields only, and of connections once; ours tells more.
        for connector in expected["connectors"].as_array_mut().unwrap() {
            let shared = connector["granted_connections"].clone();
            for stream in connector["streams"].as_array_mut().unwrap() {
                if stream["granted_connections"] == shared {
                    stream
                        .as_object_mut()
                        .unwrap()
                        .remove("granted_connections");
                }
                let stream = stream.as_object_mut().unwrap();
                for told in ["views", "query", "time_constraint", "resource_count"] {
                    stream.remove(told);
                }
            }
        }
        expected["links"] = serde_json::to_value(&compact.links).unwrap();
        assert_eq!(serde_json::to_value(&compact).unwrap(), expected);
    }
}

#[test]
fn answers_are_the_contracts() {
    let server = FakeServer::start(fixtures::evidence_found());
    let list = ok(&server, "/v1/streams/messages/records?limit=1&count=exact");
    let page: Page<Record> = serde_json::from_value(list.clone()).unwrap();
    assert!(page.next_cursor().is_some());
    assert_eq!(serde_json::to_value(&page).unwrap(), list);
    let found = ok(&server, "/v1/search?q=hyperlane");
    let page: Page<SearchHit> = serde_json::from_value(found.clone()).unwrap();
    assert_eq!(serde_json::to_value(&page).unwrap(), found);
}

#[test]
fn refusals_have_the_contracts_status_and_type() {
    let server = FakeServer::start(fixtures::multi());
    for target in [
        "/v1/streams/orders/records",
        "/v1/streams/none/records",
        "/v1/streams/orders/records?connection_id=none",
        "/v1/streams/orders/records?connection_id=cin_aaa&fields=none",
        "/v1/streams/orders/records?connection_id=cin_aaa&sort=note",
        "/v1/streams/orders/records?connection_id=cin_aaa&expand=x",
        "/v1/streams/orders/records?connection_id=cin_aaa&cursor=x",
        "/v1/streams/orders/records/none?connection_id=cin_aaa",
        "/v1/schema?detail=full",
        "/v1/schema?bogus=1",
        "/v1/none",
    ] {
        agrees(&server, target);
    }
    let several = FakeServer::start(fixtures::schema());
    agrees(&several, "/v1/schema?detail=full&stream=messages");
}

fn agrees(server: &FakeServer, target: &str) {
    let (status, body): (u16, Value) = get(server, target);
    let error = &body["error"];
    let code = ErrorCode::from_code(error["code"].as_str().unwrap()).unwrap();
    assert_eq!(code.http_status(), status, "{target}");
    assert_eq!(error["type"], json!(code.error_type()), "{target}");
}
