//! AU-05, AU-06: an owner's credential reads nothing, whatever a file called it.

use serde_json::json;
use testkit::fake::fixtures;

use crate::host::each_way;
use crate::surface::valid_calls;

// AU-05, AU-06
#[test]
fn an_owner_credential_reads_nothing_once_it_is_known() {
    each_way(&fixtures::owner(), |caller| {
        let answer = caller.refused("schema", json!({}));
        assert_eq!(answer.code(), "owner_token_refused");
        for (tool, args) in valid_calls() {
            let answer = caller.refused_unasked(tool, args);
            assert_eq!(answer.code(), "owner_token_refused");
            assert!(!answer.raw.to_string().contains("LAPTOP"));
        }
    });
}
