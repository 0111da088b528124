//! What is refused, in which words, with which exit code.

use super::desk::library;

#[test]
fn a_refusal_is_json_where_json_is_asked_for() {
    let home = library();
    for (line, code, exit) in [
        ("query books --cursor x", "invalid_cursor", 1),
        ("query boks", "stream_not_declared", 1),
        ("fetch nonsense", "invalid_id", 1),
        ("query books --grant grt_nope", "authentication_error", 78),
        ("query books --filter pages", "invalid_arguments", 2),
        ("read books:b1 text --q zzz", "query_not_found", 1),
    ] {
        let ran = home.run(format!("{line} --json")).exits(exit);
        let error = &ran.json()["error"];
        assert_eq!(error["code"], code, "{ran:?}");
        let told = format!("error: {}\n", error["message"].as_str().unwrap());
        assert!(ran.stderr.starts_with(&told), "{ran:?}");
    }
    // Where standard output speaks a protocol, nothing else stands on it.
    home.run("mcp --json --provider-url http://127.0.0.1:9")
        .exits_quietly(78);
}
