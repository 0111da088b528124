//! What is printed to be run can be run as it stands.

use crate::desk::{command, commands, grant, library, read, two_libraries, verbatim};

#[test]
fn changes_are_followed_by_bookmark_and_by_page() {
    let home = library();
    let first = read(
        &home,
        &[
            "query",
            "books",
            "--changes-since",
            "beginning",
            "--limit",
            "2",
        ],
    )
    .succeeds()
    .stdout;
    let next = command(
        first.split("What changes later").next().unwrap(),
        "pdpp query",
    );
    assert!(!next.contains("changes-since"), "{next}");
    let second = verbatim(&home, &next).succeeds().stdout;
    let later = command(
        second.split("What changes later").nth(1).unwrap(),
        "pdpp query",
    );
    let nothing = verbatim(&home, &later).succeeds().stdout;
    assert!(nothing.starts_with("0 records.\n"), "{nothing}");
}

#[test]
fn related_records_and_groups_that_were_cut_can_be_had() {
    let home = library();
    let record = read(&home, &["fetch", "books:b1", "--expand", "loans"])
        .succeeds()
        .stdout;
    let all = verbatim(&home, &command(&record, "pdpp query loans"))
        .succeeds()
        .stdout;
    assert!(all.ends_with("3 records.\n"), "{all}");
    let json = verbatim(&home, &command(&record, "pdpp fetch library-home/loans:l1"));
    assert!(json.succeeds().stdout.contains("to       Ada"));
    let groups = read(
        &home,
        &[
            "aggregate",
            "books",
            "count",
            "--group-by",
            "genre",
            "--limit",
            "1",
        ],
    );
    let more = verbatim(&home, &command(&groups.succeeds().stdout, "pdpp aggregate"));
    let more = more.succeeds().stdout;
    assert!(
        more.contains("sea") && !more.contains("not shown"),
        "{more}"
    );
}

#[test]
fn an_ambiguous_read_names_each_command_that_is_not() {
    let home = two_libraries();
    for args in [
        &["query", "books", "--filter", "title=It's \"salt\" $HOME"][..],
        &["aggregate", "books", "count"],
        &["fetch", "books:b1"],
        &["read", "books:b1", "title"],
    ] {
        let refused = read(&home, args);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (Some(1), ""),
            "{args:?}"
        );
        let lines = commands(&refused.stderr);
        assert_eq!(lines.len(), 2, "{}", refused.stderr);
        for line in lines {
            verbatim(&home, &line).succeeds();
        }
    }
    // Search and schema fan in.
    let both = read(&home, &["search", "tides"]).succeeds().stdout;
    assert!(both.contains("library-home/books:b1") && both.contains("library-town/books:b1"));
}

#[test]
fn a_continuation_repeats_where_it_reads() {
    let home = library();
    let (grant, _) = grant(&home, &["--stream", "books", "--fields", "id,title,text"]);
    let data = home.data_dir().to_str().unwrap().to_owned();
    let args = [
        "query",
        "books",
        "--limit",
        "1",
        "--grant",
        &grant,
        "--data-dir",
        &data,
    ];
    let shown = read(&home, &args).succeeds().stdout;
    let next = command(&shown, "pdpp query");
    assert!(
        next.ends_with(&format!(" --grant {grant} --data-dir ~/data")),
        "{next}"
    );
    let page = verbatim(&home, &next).succeeds().stdout;
    assert!(page.contains("Bread") && !page.contains("pages"), "{page}");
}
