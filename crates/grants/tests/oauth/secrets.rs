//! No secret is ever shown by accident or kept in clear.

use std::fs;
use std::path::Path;

use grants::oauth::{Answer, Decider};
use grants::sign_in::{SignIn, Visitor, new_code, session, set_password};
use proptest::prelude::*;
use store::Registry as _;
use store::registry::EntryKind;

use crate::flow::{
    DEVICE, ORIGIN, VERIFIER, ask, client, issuer, mail, parameters, redeem, refresh, renewing,
    review, value_in,
};
use crate::world::World;

const KINDS: [EntryKind; 9] = [
    EntryKind::Client,
    EntryKind::Request,
    EntryKind::Code,
    EntryKind::DeviceCode,
    EntryKind::UserCode,
    EntryKind::Refresh,
    EntryKind::Session,
    EntryKind::SignIn,
    EntryKind::Password,
];

fn on_disk(folder: &Path, needle: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return on_disk(&path, needle);
        }
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(needle.len())
            .any(|window| window == needle.as_bytes())
    })
}

/// What must stay secret, and what was shown.
#[derive(Default)]
struct Watch {
    secrets: Vec<String>,
    shown: Vec<String>,
}

impl Watch {
    fn secret(&mut self, text: &str) {
        self.secrets.push(text.to_owned());
    }

    fn shown(&mut self, text: String) {
        self.shown.push(text);
    }

    /// Looks for every secret in what was shown, in every entry of the registry and on disk.
    fn check(mut self, world: &World) {
        let mut entries = 0;
        for kind in KINDS {
            for entry in world.store.entries(kind, None, 1_000, world.now()).unwrap() {
                entries += 1;
                self.shown(format!("{} {}", entry.key, entry.document));
            }
        }
        assert!(entries > 0 && !self.secrets.is_empty());
        for secret in &self.secrets {
            let shown = self
                .shown
                .iter()
                .any(|shown| shown.contains(secret.as_str()));
            assert!(!shown, "{secret} is shown");
            assert!(!on_disk(world.folder.path(), secret), "{secret} is on disk");
        }
    }
}

#[test]
fn codes_and_tokens_stay_out_of_debug_forms_errors_documents_and_the_disk() {
    let world = World::new();
    let client = client(&world);
    let mut watch = Watch::default();
    let request = ask(&world, &client, &[]).unwrap();
    let frozen = review(&world, &request, mail());
    let answer = issuer(&world)
        .approve(&request, &frozen.digest, Decider::Terminal)
        .unwrap();
    watch.shown(format!("{answer:?} {frozen:?}"));
    let Answer::Redirect(address) = answer else {
        panic!("a code request is answered by redirect");
    };
    let code = value_in(address.expose(), "code").unwrap();
    let first = redeem(&world, &client, &code, &[]).unwrap();
    let second = refresh(&world, &client, renewing(&first), &[]).unwrap();
    let errors = [
        refresh(&world, &client, renewing(&first), &[]).unwrap_err(),
        redeem(&world, &client, &code, &[]).unwrap_err(),
    ];
    watch.shown(format!(
        "{first:?} {second:?} {errors:?} {} {}",
        errors[0], errors[1]
    ));
    for response in [&first, &second] {
        let (head, tail) = renewing(response).rsplit_once('.').unwrap();
        for secret in [response.access_token.expose(), head, tail] {
            watch.secret(secret);
        }
    }
    watch.secret(&code);
    watch.secret(VERIFIER);
    watch.check(&world);
}

#[test]
fn device_codes_stay_out_of_debug_forms_errors_documents_and_the_disk() {
    let world = World::new();
    let client = client(&world);
    let mut watch = Watch::default();
    let asked = parameters(
        &[("client_id", client.client_id.as_str()), ("x", "pdpp_at_y")],
        &[],
    );
    let device = issuer(&world)
        .start_device(&client, &asked, "/device")
        .unwrap();
    let poll = [
        ("grant_type", DEVICE),
        ("client_id", client.client_id.as_str()),
        ("device_code", device.device_code.expose()),
    ];
    let pending = issuer(&world).token(&parameters(&poll, &[])).unwrap_err();
    watch.shown(format!("{device:?} {asked:?} {pending:?} {pending}"));
    for secret in [
        "pdpp_at_y",
        device.device_code.expose(),
        device.user_code.expose(),
    ] {
        watch.secret(secret);
    }
    watch.check(&world);
}

#[test]
fn what_signs_in_stays_out_of_debug_forms_errors_documents_and_the_disk() {
    let world = World::new();
    let mut watch = Watch::default();
    set_password(world.store(), "correct horse battery", world.now()).unwrap();
    let code = new_code(world.store(), world.now()).unwrap();
    let door = SignIn {
        store: world.store(),
        now: world.now(),
    };
    let visitor = Visitor {
        address: "203.0.113.9".parse().unwrap(),
        browser: String::new(),
        known: None,
    };
    let new = door.by_code(&visitor, code.expose()).unwrap();
    let verified = session(world.store(), new.secret.expose(), world.now())
        .unwrap()
        .unwrap();
    let refused = door.by_password(&visitor, "a wrong password").unwrap_err();
    let csrf = verified.csrf_token();
    watch.shown(format!(
        "{code:?} {new:?} {verified:?} {csrf:?} {refused:?} {refused}"
    ));
    for secret in [
        code.expose(),
        new.secret.expose(),
        new.browser.expose(),
        csrf.expose(),
        "correct horse battery",
        "a wrong password",
    ] {
        watch.secret(secret);
    }
    watch.check(&world);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn any_parameters_are_answered_without_panic_and_without_token(
        texts in proptest::collection::vec(any::<String>(), 8),
        json in "[\\[{\"a-z_:,0-9*\\]} ]{0,60}",
    ) {
        let world = World::new();
        let client = client(&world);
        let names = ["grant_type", "code", "refresh_token", "device_code", "code_verifier", "token", "redirect_uri", "resource"];
        for way in ["authorization_code", "refresh_token", DEVICE] {
            let mut pairs: Vec<(&str, &str)> = names.into_iter().zip(texts.iter().map(String::as_str)).collect();
            pairs.push(("client_id", client.client_id.as_str()));
            prop_assert!(issuer(&world).token(&pairs.iter().copied().collect()).is_err());
            pairs[0].1 = way;
            prop_assert!(issuer(&world).token(&pairs.into_iter().collect()).is_err());
        }
        for text in texts.iter().chain([&json]) {
            let _ = issuer(&world).register(text);
            let _ = issuer(&world).client(text);
            prop_assert!(issuer(&world).accept_document(text, json.as_bytes(), None).is_err());
            prop_assert!(!issuer(&world).introspect(text).unwrap().active);
            prop_assert!(issuer(&world).request_of_user_code(text).is_err());
            prop_assert!(issuer(&world).pending(text).is_err());
            prop_assert!(session(world.store(), text.as_str(), world.now()).unwrap().is_none());
            prop_assert!(!client.may_redirect_to(text));
            if let Err(error) = ask(&world, &client, &[("state", text), ("resource", text)])
                && let Some(back) = error.back
            {
                let address = back.with_error(&error.error, ORIGIN);
                prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
