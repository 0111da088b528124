//! What is printed to be run can be run as it stands.

use crate::desk::{command, commands, grant, library, long_text, read, two_libraries, verbatim};

#[test]
fn pages_lead_to_the_end_without_gap_or_repetition() {
    let home = library();
    let mut page = read(
        &home,
        &[
            "query", "books", "--limit", "1", "--fields", "id", "--filter", "pages>1",
        ],
    );
    let mut seen = String::new();
    for _ in 0..3 {
        page = page.succeeds();
        let id = page.stdout.lines().next().unwrap();
        seen.push_str(id.split("  ").next().unwrap());
        seen.push(' ');
        if page.stdout.contains("more follow") {
            page = verbatim(&home, &command(&page.stdout, "pdpp query books"));
        }
    }
    assert_eq!(
        seen,
        "library-home/books:b3 library-home/books:b2 library-home/books:b1 "
    );
    assert!(page.stdout.ends_with("1 record.\n"), "{page:?}");
}

#[test]
fn a_search_goes_on_and_its_evidence_is_read_without_the_record() {
    // PA-05, EV-18
    let home = library();
    let first = read(&home, &["search", "salt", "--limit", "1"])
        .succeeds()
        .stdout;
    let next = verbatim(&home, &command(&first, "pdpp search salt"))
        .succeeds()
        .stdout;
    assert!(
        first.starts_with("Bread") && next.starts_with("Salt"),
        "{first}{next}"
    );
    let window = verbatim(&home, &command(&first, "pdpp read"))
        .succeeds()
        .stdout;
    assert!(window.starts_with("Flour.\n\tWater, and"), "{window}");
    assert!(!window.contains("genre"), "{window}");
    let record = verbatim(&home, &command(&window, "pdpp fetch"))
        .succeeds()
        .stdout;
    assert!(record.contains("genre      food"), "{record}");
}

#[test]
fn the_schema_leads_all_the_way_down() {
    // EV-18
    let home = library();
    let index = read(&home, &["schema"]).succeeds().stdout;
    let stream = verbatim(&home, &command(&index, "pdpp schema"))
        .succeeds()
        .stdout;
    let records = verbatim(&home, &command(&stream, "pdpp query"))
        .succeeds()
        .stdout;
    let rest = verbatim(&home, &command(&records, "pdpp read"))
        .succeeds()
        .stdout;
    let expected: String = long_text().chars().skip(160).collect();
    assert!(rest.starts_with(&expected), "{rest}");
    let record = verbatim(&home, &command(&rest, "pdpp fetch"))
        .succeeds()
        .stdout;
    // Every command of every step works.
    for line in [index, stream, records, rest, record]
        .iter()
        .flat_map(|text| commands(text))
    {
        verbatim(&home, &line).succeeds();
    }
}

#[test]
fn windows_follow_one_another_to_the_whole_text() {
    let home = library();
    let mut window = read(
        &home,
        &[
            "read",
            "library-home/books:b1",
            "text",
            "--limit-chars",
            "200",
        ],
    );
    let mut whole = String::new();
    loop {
        let shown = window.succeeds().stdout;
        whole.push_str(shown.split_once("\n\n").unwrap().0);
        let next = shown.split_once("Next:\n");
        let Some((_, rest)) = next else { break };
        window = verbatim(&home, rest.lines().next().unwrap());
    }
    assert_eq!(whole, long_text());
}

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
