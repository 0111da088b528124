//! The credential cache: what its files may say, who may read them, and what is kept.

use std::fs;

use client::{CredentialCache, ProviderUrl};
use contract::error::{ErrorCode, ReadError};
use serde_json::{Value, json};

use crate::fake::{NOW, TOKEN, cache_with, shown};
use contract::time::Clock as _;

fn provider() -> ProviderUrl {
    ProviderUrl::parse("https://data.example.org:8443").unwrap()
}

fn reference_file() -> Value {
    json!({
        "provider_url": "https://data.example.org:8443",
        "authorization_server": "https://as.example.org",
        "scope": "pdpp:read",
        "client": {"client_id": "cli_1", "client_name": "PDPP CLI", "token_endpoint_auth_method": "none"},
        "credential": {"access_token": TOKEN, "token_type": "Bearer", "grant_id": "grt_1"},
        "created_at": "2026-05-01T00:00:00.000Z",
    })
}

fn load(file: &str) -> Result<client::Credential, ReadError> {
    let (_folder, cache) = cache_with(&provider(), file);
    let loaded = cache.load(&provider(), NOW.now());
    if let Err(error) = &loaded {
        // UP-12
        assert!(!shown(error).contains(TOKEN), "{error:?}");
        assert!(
            error.hint.as_ref().unwrap().contains("pdpp connect"),
            "{error:?}"
        );
    }
    loaded
}

#[test]
fn a_file_of_the_reference_is_read_as_it_is() {
    let credential = load(&reference_file().to_string()).unwrap();
    assert_eq!(credential.access_token().expose(), TOKEN);
    assert_eq!(credential.grant_id(), Some("grt_1"));
    assert!(
        credential
            .file()
            .ends_with("clients/data.example.org_8443.json")
    );
    assert!(!format!("{credential:?}").contains(TOKEN));
    let mut old = reference_file();
    old["grant_id"] = "grt_0".into();
    old["credential"] = json!({"access_token": TOKEN, "expires_at": null});
    assert_eq!(load(&old.to_string()).unwrap().grant_id(), Some("grt_0"));
    old["credential"]["expires_at"] = "2026-06-01T12:00:01Z".into();
    assert!(load(&old.to_string()).is_ok());
}

#[test]
fn an_owner_credential_is_refused_wherever_it_says_so() {
    // AU-04
    for member in ["pdpp_token_kind", "token_kind", "kind", "role"] {
        for kind in ["owner", "OWNER", "Owner"] {
            for inside in [false, true] {
                let mut file = reference_file();
                let place = if inside {
                    &mut file["credential"]
                } else {
                    &mut file
                };
                place[member] = kind.into();
                let error = load(&file.to_string()).unwrap_err();
                assert_eq!(error.code, ErrorCode::OwnerTokenRefused, "{member} {kind}");
                assert_eq!(error.code.exit_code(), 77);
            }
            let bare = json!({"access_token": TOKEN, member: kind});
            let error = load(&bare.to_string()).unwrap_err();
            assert_eq!(error.code, ErrorCode::OwnerTokenRefused);
        }
        let mut file = reference_file();
        file["credential"][member] = "client".into();
        assert!(load(&file.to_string()).is_ok());
    }
}

#[test]
fn no_file_means_not_connected() {
    // UP-07
    let folder = tempfile::tempdir().unwrap();
    let cache = CredentialCache::new(folder.path().join("none"));
    let error = cache.load(&provider(), NOW.now()).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotConnected);
    assert_eq!(error.code.exit_code(), 78);
    let hint = error.hint.unwrap();
    assert_eq!(hint, "run `pdpp connect https://data.example.org:8443`");
}

#[test]
fn an_expired_credential_is_refused_unless_it_can_be_renewed() {
    let mut file = reference_file();
    for ended in ["2026-06-01T12:00:00Z", "2020-01-01"] {
        file["credential"]["expires_at"] = ended.into();
        let error = load(&file.to_string()).unwrap_err();
        assert_eq!(error.code, ErrorCode::CredentialExpired);
        assert_eq!(error.code.exit_code(), 78);
    }
    file["credential"]["refresh_token"] = "ref_1".into();
    assert!(load(&file.to_string()).is_ok());
}

#[test]
fn an_unusable_file_is_named_and_its_content_is_not() {
    let with = |token: Value| {
        let mut file = reference_file();
        file["credential"]["access_token"] = token;
        file.to_string()
    };
    let mut dated = reference_file();
    dated["credential"]["expires_at"] = "soon".into();
    for file in [
        String::new(),
        "[]".to_owned(),
        format!("{{\"access_token\": \"{TOKEN}\""),
        format!("{TOKEN} is not JSON"),
        json!({"access_token": TOKEN}).to_string(),
        json!({"credential": TOKEN}).to_string(),
        with(Value::Null),
        with("".into()),
        with(format!("{TOKEN}\r\nX-Injected: 1").into()),
        with(json!({"value": TOKEN})),
        dated.to_string(),
    ] {
        let error = load(&file).unwrap_err();
        assert_eq!(error.code, ErrorCode::CredentialInvalid, "{file}");
        assert!(
            error.message.contains("data.example.org_8443.json"),
            "{error}"
        );
        assert_eq!(error.code.exit_code(), 78);
    }
    let (_folder, cache) = cache_with(&provider(), "");
    fs::remove_file(cache.file(&provider())).unwrap();
    fs::create_dir(cache.file(&provider())).unwrap();
    let error = cache.load(&provider(), NOW.now()).unwrap_err();
    assert_eq!(error.code, ErrorCode::CredentialInvalid);
}

#[test]
fn a_credential_is_not_sent_to_another_server_of_the_same_name() {
    let (_folder, cache) = cache_with(&provider(), &reference_file().to_string());
    let clear = ProviderUrl::parse("http://data.example.org:8443").unwrap();
    assert_eq!(cache.file(&clear), cache.file(&provider()));
    let error = cache.load(&clear, NOW.now()).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotConnected);
    assert!(error.message.contains("https://data.example.org:8443"));
}

#[test]
fn the_second_root_is_read_when_the_first_has_none() {
    let (folder, first) = cache_with(&provider(), &reference_file().to_string());
    let empty = folder.path().join("empty");
    let cache = CredentialCache::new(&empty).with_fallback(folder.path().join("pdpp"));
    let credential = cache.load(&provider(), NOW.now()).unwrap();
    assert_eq!(credential.file(), first.file(&provider()));
    // What the first has counts, also when it cannot be used.
    let broken = cache.file(&provider());
    fs::create_dir_all(broken.parent().unwrap()).unwrap();
    fs::write(broken, "{}").unwrap();
    let error = cache.load(&provider(), NOW.now()).unwrap_err();
    assert_eq!(error.code, ErrorCode::CredentialInvalid);
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_used_with_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_folder, cache) = cache_with(&provider(), &reference_file().to_string());
    let path = cache.file(&provider());
    for (mode, warns) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let credential = cache.load(&provider(), NOW.now()).unwrap();
        assert_eq!(credential.warning().is_some(), warns, "{mode:o}");
        if let Some(warning) = credential.warning() {
            assert!(warning.contains("chmod 600"), "{warning}");
        }
    }
}
