//! Questions in one's own words: any word may occur, in another form or nearly so spelled, and only what may be seen decides.

use std::cell::RefCell;

use contract::scalar::Scalar;
use store::Store;
use store::search::{Conversation, Scope, SearchAnswer, SearchRequest, Test};
use text::{Expression, FormKind};

use crate::fixture::{
    MAIL, Work as _, add, add_mail, delete, field, filtered, message, message_with, messages,
    on_every_backend, request, scope, write,
};

fn asked(question: &str, scopes: Vec<Scope>) -> SearchRequest {
    SearchRequest {
        expression: Expression::parse(question),
        ..request("", scopes)
    }
}

fn ask(store: &dyn Store, question: &str, scopes: Vec<Scope>) -> SearchAnswer {
    store.search(&asked(question, scopes)).unwrap()
}

fn keys(answer: &SearchAnswer) -> Vec<String> {
    let hits = answer.hits.iter();
    hits.map(|hit| hit.record.key.to_string()).collect()
}

// FI-01: any word may occur; more and rarer words come first, and what covers too little is no hit.
#[test]
fn any_word_may_occur_and_the_share_of_the_question_decides() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let filler = (0..30).map(|at| message(&format!("f{at:02}"), "harbour", "news of the week"));
        write(store, "work", filler.collect());
        store.put(vec![
            message(
                "both",
                "Ironleaf",
                "They build the crossing at the harbour.",
            ),
            message("rare", "Ironleaf", "An offer for the crossing."),
        ]);
        let answer = ask(
            store,
            "Who builds the crossing for Ironleaf at the harbour?",
            vec![messages("work")],
        );
        assert_eq!(keys(&answer)[..2], ["both", "rare"]);
        assert_eq!(answer.with_every_word, 1);
        // The harbour alone is less than three tenths of what the best one covers.
        assert_eq!(answer.total, Some(2));
        // Without the better ones it is all there is.
        store.put(vec![delete("messages", "both"), delete("messages", "rare")]);
        let answer = ask(store, "the crossing at the harbour", vec![messages("work")]);
        assert_eq!(
            (answer.hits.len(), answer.occurring.clone()),
            (30, vec![false, true])
        );
        assert!(
            ask(store, "zeppelin", vec![messages("work")])
                .hits
                .is_empty()
        );
    });
}

// FI-02: phrases, required words and prefixes must occur, and excluded ones must not, in a question as well.
#[test]
fn signs_and_quotes_stay_strict() {
    on_every_backend(|store| {
        add_mail(store, "work");
        store.put(vec![
            message("a", "old harbour", "bridge"),
            message("b", "harbour old", "bridge"),
            message("c", "harbour", "vendors"),
        ]);
        let found = |question: &str| {
            let mut found = keys(&ask(store, question, vec![messages("work")]));
            found.sort();
            found
        };
        assert_eq!(found("\"old harbour\" bridge"), ["a"]);
        assert_eq!(found("bridge -\"old harbour\""), ["b"]);
        assert_eq!(found("harbour +bridge"), ["a", "b"]);
        assert_eq!(found("harbour vend*"), ["c"]);
        // A word that must occur must occur as written.
        assert!(found("+bridges harbour").is_empty());
        assert!(found("+\"bridges\" harbour").is_empty());
    });
}

// FI-03: other forms of a word are found, count less than the word itself, and are named.
#[test]
fn other_forms_of_a_word_are_found() {
    on_every_backend(|store| {
        add_mail(store, "work");
        store.put(vec![
            message("exact", "", "the vendors of the bridge"),
            message("form", "", "the vendor of the bridge"),
            message("allergic", "", "She is allergic to hazelnuts"),
            message("number", "", "order 123456789"),
        ]);
        let answer = ask(store, "vendors", vec![messages("work")]);
        assert_eq!(keys(&answer), ["exact", "form"]);
        let forms = &answer.expression.wanted[0].forms;
        assert_eq!(forms.len(), 1);
        assert_eq!(
            (forms[0].term.as_str(), forms[0].kind),
            ("vendor", FormKind::Form)
        );
        assert_eq!(
            keys(&ask(store, "allergy", vec![messages("work")])),
            ["allergic"]
        );
        // Short words have their plural, and plurals their short word.
        store.put(vec![
            message("one", "", "a dog in the city"),
            message("two", "", "the dogs of the cities"),
        ]);
        for (question, first) in [
            ("dog", "one"),
            ("dogs", "two"),
            ("city", "one"),
            ("cities", "two"),
        ] {
            let found = keys(&ask(store, question, vec![messages("work")]));
            assert_eq!((found.len(), found[0].as_str()), (2, first), "{question}");
        }
        // A number has no forms.
        assert!(
            ask(store, "123456700", vec![messages("work")])
                .hits
                .is_empty()
        );
    });
}

// FI-04: a word that is nowhere is looked for in near spellings; one that is somewhere is not.
#[test]
fn a_word_that_is_nowhere_is_looked_for_nearly_so_spelled() {
    on_every_backend(|store| {
        add_mail(store, "work");
        store.put(vec![
            message("right", "", "the accelerometer"),
            message("near", "", "the fridge"),
            message("bridge", "", "the bridge"),
        ]);
        let spelled = |question: &str| {
            let answer = ask(store, question, vec![messages("work")]);
            let forms = answer.expression.wanted[0].forms.iter();
            let forms = forms.filter(|form| form.kind == FormKind::Spelling);
            (
                keys(&answer),
                forms.map(|form| form.term.clone()).collect::<Vec<_>>(),
            )
        };
        let one = |name: &str, word: &str| (vec![name.to_owned()], vec![word.to_owned()]);
        assert_eq!(spelled("acelerometre"), one("right", "accelerometer"));
        assert_eq!(spelled("birdge"), one("bridge", "bridge"));
        // It occurs, so its neighbour does not count.
        assert_eq!(spelled("bridge"), (vec!["bridge".to_owned()], Vec::new()));
        assert_eq!(spelled("brdg"), (Vec::new(), Vec::new()));
    });
}

// FI-04: however rare another near spelling is, it counts no more than the likeliest one.
#[test]
fn a_rare_spelling_does_not_outrank_the_likeliest() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let mut all: Vec<_> = (0..9)
            .map(|at| message(&format!("b{at}"), "bridge", "x"))
            .collect();
        all.push(message("fridge", "fridge", "x"));
        all.extend((0..30).map(|at| message(&format!("f{at:02}"), "harbour", "x")));
        write(store, "work", all);
        let found = keys(&ask(store, "vridge", vec![messages("work")]));
        assert_eq!((found[0].as_str(), found[9].as_str()), ("b0", "fridge"));
    });
}

// FI-03: forms are found of words with marks too, such as the virama of Hindi.
#[test]
fn words_with_marks_have_forms_and_spellings() {
    on_every_backend(|store| {
        add_mail(store, "work");
        store.put(vec![message("m", "पुस्तक", "x")]);
        for (question, kind) in [("पुस्तकें", FormKind::Form), ("मुस्तक", FormKind::Spelling)]
        {
            let answer = ask(store, question, vec![messages("work")]);
            assert_eq!(keys(&answer), ["m"], "{question}");
            assert_eq!(answer.expression.wanted[0].forms[0].kind, kind);
        }
    });
}

/// Everything an answer says, with scores to the bit.
fn told(answer: &SearchAnswer) -> String {
    let hits = answer.hits.iter();
    let hits: Vec<String> = hits
        .map(|hit| format!("{} {:?} {:?}", hit.record.key, hit.position.rank, hit.near))
        .collect();
    format!(
        "{hits:?} {:?} {:?} {} {:?}",
        answer.total, answer.expression, answer.with_every_word, answer.occurring
    )
}

fn write_visible(store: &dyn Store) {
    let texts = [
        ("a", "harbour bridge", "vendors met at the harbour"),
        ("b", "bridge", "the vendor and the harbour bridge"),
        ("c", "bridge of the harbour", "hazelnuts"),
        ("d", "offer", "bridge bridge bridge"),
    ];
    for (key, subject, body) in texts {
        let members =
            format!("\"from_email\":\"seen\",\"subject\":\"{subject}\",\"body\":\"{body}\"");
        write(store, "work", vec![message_with(key, &members)]);
        store.settle_index().unwrap();
    }
}

fn write_hidden(store: &dyn Store) {
    for at in 0..40 {
        let members = format!(
            "\"from_email\":\"hidden\",\"subject\":\"hazelnut vendorship {at}\",\"body\":\"harbours bridges hazel harbour {}\"",
            "long ".repeat(at)
        );
        write(
            store,
            "work",
            vec![message_with(&format!("h{at}"), &members)],
        );
    }
    store.settle_index().unwrap();
    let gone = (0..20).map(|at| delete("messages", &format!("h{at}")));
    write(store, "work", gone.collect());
}

// FI-10: figures, forms and spellings come from what the scope admits; hidden records and fields change nothing.
#[test]
fn hidden_records_and_fields_change_no_answer() {
    let scopes = |fields: &[&str]| {
        let seen = Test::Equals(Scalar::Text("seen".to_owned()));
        vec![filtered(
            scope("work", "messages", fields),
            "from_email",
            seen,
        )]
    };
    let questions = [
        "harbour bridge vendors",
        "bridge",
        "vendorships",
        "hazelnut",
        "harbuor",
        "harb*",
        "\"harbour bri*\"",
        "bridge -vendor",
    ];
    let answers: RefCell<Vec<Vec<String>>> = RefCell::default();
    for with_hidden in [false, true] {
        on_every_backend(|store| {
            add_mail(store, "work");
            if with_hidden {
                write_hidden(store);
            }
            write_visible(store);
            if with_hidden {
                write(
                    store,
                    "work",
                    vec![message_with("late", "\"subject\":\"bridges\"")],
                );
            }
            let mut told_here = Vec::new();
            for fields in [&["subject", "body"][..], &["body"]] {
                for question in questions {
                    told_here.push(told(&ask(store, question, scopes(fields))));
                }
            }
            answers.borrow_mut().push(told_here);
        });
    }
    for pair in answers.borrow().windows(2) {
        assert_eq!(pair[0], pair[1]);
    }
}

/// A declaration in which messages belong to threads.
fn threaded() -> String {
    let mut document: serde_json::Value = serde_json::from_str(MAIL).unwrap();
    let properties = &mut document["streams"][0]["schema"]["properties"];
    properties["thread"] = serde_json::json!({ "type": "string" });
    properties["place"] = serde_json::json!({ "type": "integer" });
    document.to_string()
}

fn said(key: &str, thread: &str, place: usize, body: &str) -> store::records::Change {
    let members = format!("\"thread\":\"{thread}\",\"place\":{place},\"body\":\"{body}\"");
    message_with(key, &members)
}

fn conversations() -> Scope {
    let mut scope = scope("work", "messages", &["subject", "body"]);
    scope.conversation = Some(Conversation {
        thread: field("thread"),
        order: field("place"),
    });
    scope
}

// FI-20: what stands next to a good answer in its conversation is lent a part of its score, and says so.
#[test]
fn a_conversation_lends_to_neighbours() {
    on_every_backend(|store| {
        add(store, &threaded(), "work");
        write(
            store,
            "work",
            vec![
                said("q", "t1", 10, "When does the ferry to Bergen leave?"),
                said("far", "t1", 14, "Good night"),
                said("other", "t2", 11, "At eight"),
            ],
        );
        store.settle_index().unwrap();
        // Written later, into another segment.
        write(
            store,
            "work",
            vec![
                said("before", "t1", 9, "Morning!"),
                said("answer", "t1", 11, "At eight in the evening"),
                said("after", "t1", 12, "Thanks"),
            ],
        );
        let answer = ask(store, "ferry to Bergen", vec![conversations()]);
        let near = |hit: &store::search::Hit| hit.near.as_ref().map(ToString::to_string);
        let found: Vec<_> = answer
            .hits
            .iter()
            .map(|hit| (hit.record.key.to_string(), near(hit)))
            .collect();
        let lent = |name: &str| (name.to_owned(), Some("q".to_owned()));
        // What follows comes before what precedes: an answer follows its question.
        assert_eq!(found[0], ("q".to_owned(), None));
        assert_eq!(found[1..], ["answer", "after", "before"].map(lent));
        // The nearest on each side can be read for themselves.
        let beside = |row: u64, scope: &Scope| {
            let beside = store.neighbours(scope, &[row]).unwrap().remove(0);
            beside.map(|one| one.map(|record| record.key.to_string()))
        };
        let some = |name: &str| Some(name.to_owned());
        let row = answer.hits[0].position.row;
        assert_eq!(
            beside(row, &conversations()),
            [some("before"), some("answer")]
        );
        // Only what has a word is counted.
        assert_eq!(answer.total, Some(1));
        // Where something must occur, a neighbour cannot stand for it.
        assert_eq!(keys(&ask(store, "+ferry", vec![conversations()])), ["q"]);
        // Neighbours are the nearest that may be seen.
        let mut narrow = conversations();
        narrow.keys = Some(["q", "far", "before"].map(crate::fixture::key).to_vec());
        assert_eq!(beside(row, &narrow), [some("before"), some("far")]);
        let answer = ask(store, "ferry to Bergen", vec![narrow]);
        let mut found = keys(&answer);
        found.sort();
        assert_eq!(found, ["before", "far", "q"]);
    });
}

// FI-20: a neighbour that holds little of the question keeps what that scores, and is no mere neighbour.
#[test]
fn a_neighbour_with_a_common_word_is_found_by_it_as_well() {
    on_every_backend(|store| {
        add(store, &threaded(), "work");
        let mut all = vec![
            said("q", "t1", 10, "The ferry to Bergen leaves the harbour"),
            said("without", "t1", 9, "Hello there"),
            said("with", "t1", 11, "At the harbour"),
        ];
        let filler =
            (0..30).map(|at| said(&format!("f{at:02}"), &format!("f{at:02}"), 1, "harbour"));
        all.extend(filler);
        write(store, "work", all);
        let answer = ask(store, "ferry Bergen harbour", vec![conversations()]);
        assert_eq!(keys(&answer), ["q", "with", "without"]);
        let near = answer.hits.iter().map(|hit| hit.near.is_some());
        assert_eq!(near.collect::<Vec<_>>(), [false, false, true]);
    });
}

// FI-20: what two neighbours say together answers better than what both say alike.
#[test]
fn words_that_neighbours_say_count_in_part() {
    on_every_backend(|store| {
        add(store, &threaded(), "work");
        let mut all = vec![
            said("ferry", "t1", 1, "The ferry then"),
            said("bergen", "t1", 2, "Bergen at last"),
            said("twice", "t2", 1, "The ferry then"),
            said("again", "t2", 2, "The ferry then"),
        ];
        // The other word is less rare, so a neighbour that has it lends less than one that has the first.
        let filler = (0..4).map(|at| said(&format!("f{at}"), &format!("f{at}"), 1, "Bergen again"));
        all.extend(filler);
        write(store, "work", all);
        let found = keys(&ask(store, "ferry Bergen", vec![conversations()]));
        assert_eq!(found[..3], ["ferry", "twice", "again"]);
    });
}

// FI-11: pages go on exactly, in the same order, with neighbours among the hits.
#[test]
fn pages_of_a_question_are_one_ranking() {
    on_every_backend(|store| {
        add(store, &threaded(), "work");
        for batch in 0..3 {
            let changes = (0..60).map(|at| {
                let number = batch * 60 + at;
                let body = match number % 7 {
                    0 => "ferry ferry to bergen",
                    3 => "the ferries leave",
                    5 => "bergen",
                    _ => "yes",
                };
                said(
                    &format!("m{number:03}"),
                    &format!("t{}", number % 5),
                    number,
                    body,
                )
            });
            write(store, "work", changes.collect());
            store.settle_index().unwrap();
        }
        let mut page = asked("ferry bergen", vec![conversations()]);
        let whole = keys(&store.search(&page).unwrap());
        assert!(whole.len() > 100, "{}", whole.len());
        for limit in [1, 7, 40] {
            page.limit = limit;
            page.after = None;
            let mut seen = Vec::new();
            loop {
                let answer = store.search(&page).unwrap();
                seen.extend(keys(&answer));
                if !answer.has_more {
                    break;
                }
                page.after = answer.hits.last().map(|hit| hit.position);
            }
            assert_eq!(seen, whole, "pages of {limit}");
        }
    });
}
