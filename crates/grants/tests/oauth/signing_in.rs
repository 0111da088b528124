//! How the owner signs in, stays signed in and is signed out.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use contract::time::Instant;
use grants::oauth::Decider;
use grants::sign_in::{
    NewSession, PasswordError, Session, SignIn, SignInError, Visitor, end_all_sessions,
    end_other_sessions, end_session, has_password, known_browser, new_code, remove_password,
    session, sessions, set_password,
};
use store::{PostgresOptions, PostgresStore};

use crate::flow::{ask, client, issuer, mail, review, winners};
use crate::world::World;

const PASSWORD: &str = "correct horse battery";
const DAY: Duration = Duration::from_hours(24);

fn visitor() -> Visitor {
    Visitor {
        address: "203.0.113.9".parse().unwrap(),
        browser: "A browser\u{7}".to_owned(),
        known: None,
    }
}

fn door(world: &World) -> SignIn<'_> {
    SignIn {
        store: world.store(),
        now: world.now(),
    }
}

fn signed_in(world: &World) -> NewSession {
    let code = new_code(world.store(), world.now()).unwrap();
    door(world).by_code(&visitor(), code.expose()).unwrap()
}

fn verified(world: &World, new: &NewSession) -> Option<Session> {
    session(world.store(), new.secret.expose(), world.now()).unwrap()
}

#[test]
fn a_password_lets_its_owner_in_and_nobody_else() {
    let world = World::new();
    let enter = |password: &str| door(&world).by_password(&visitor(), password);
    assert!(
        matches!(enter(PASSWORD), Err(SignInError::Refused { .. })),
        "none is set"
    );
    for short in ["", "short", "elevenchars"] {
        let error = set_password(world.store(), short, world.now()).unwrap_err();
        assert!(matches!(error, PasswordError::Length));
    }
    set_password(world.store(), PASSWORD, world.now()).unwrap();
    assert!(has_password(world.store(), world.now()).unwrap());
    for wrong in ["", "correct horse batterx", "correct horse battery "] {
        assert!(matches!(enter(wrong), Err(SignInError::Refused { .. })));
    }
    let old = enter(PASSWORD).unwrap();
    assert!(verified(&world, &old).is_some());
    set_password(world.store(), "another good password", world.now()).unwrap();
    assert!(
        verified(&world, &old).is_none(),
        "a new password ends sessions"
    );
    assert!(matches!(enter(PASSWORD), Err(SignInError::Refused { .. })));
    assert!(enter("another good password").is_ok());
    remove_password(world.store(), world.now()).unwrap();
    assert!(!has_password(world.store(), world.now()).unwrap());
}

#[test]
fn a_sign_in_code_works_once_within_a_quarter_of_an_hour() {
    let world = World::new();
    let code = new_code(world.store(), world.now()).unwrap();
    assert!(
        verified(
            &world,
            &door(&world).by_code(&visitor(), code.expose()).unwrap()
        )
        .is_some()
    );
    let again = door(&world).by_code(&visitor(), code.expose());
    assert!(matches!(again, Err(SignInError::Refused { .. })));
    let late = new_code(world.store(), world.now()).unwrap();
    world.wait(Duration::from_mins(15));
    let refused = door(&world).by_code(&visitor(), late.expose());
    assert!(matches!(refused, Err(SignInError::Refused { .. })));
    let raced = new_code(world.store(), world.now()).unwrap();
    let enter = || door(&world).by_code(&visitor(), raced.expose()).ok();
    assert_eq!(winners(enter), 1);
}

#[test]
fn wrong_guesses_wait_and_the_right_one_never_does() {
    // TR-06: whatever is guessed, and however often.
    let world = World::new();
    set_password(world.store(), PASSWORD, world.now()).unwrap();
    let wait = |refused: Result<NewSession, SignInError>| match refused.unwrap_err() {
        SignInError::Refused { wait } => wait.as_secs(),
        other => panic!("{other}"),
    };
    for _ in 0..10 {
        wait(door(&world).by_password(&visitor(), "wrong"));
        wait(door(&world).by_code(&visitor(), "wrong"));
    }
    let slow = door(&world).by_password(&visitor(), "wrong");
    assert_eq!(wait(slow), 5);
    assert!(door(&world).by_password(&visitor(), PASSWORD).is_ok());
    let code = new_code(world.store(), world.now()).unwrap();
    let new = door(&world).by_code(&visitor(), code.expose()).unwrap();
    // The browser is known from now on, whatever others do at its address.
    let known = |new: &NewSession| known_browser(world.store(), new.browser.expose(), world.now());
    let own = Visitor {
        known: known(&new).unwrap(),
        ..visitor()
    };
    assert!(own.known.is_some());
    assert_eq!(wait(door(&world).by_password(&own, "wrong")), 0);
    let again = door(&world).by_password(&own, PASSWORD).unwrap();
    assert_eq!(again.browser.expose(), new.browser.expose());
    assert!(
        known_browser(world.store(), "pdpp_browser_made-up", world.now())
            .unwrap()
            .is_none()
    );
    set_password(world.store(), "another good password", world.now()).unwrap();
    assert!(known(&new).unwrap().is_none(), "a new password forgets it");
}

#[test]
fn a_session_rests_seven_days_at_most() {
    let world = World::new();
    let new = signed_in(&world);
    for _ in 0..3 {
        world.wait(DAY * 6);
        assert!(verified(&world, &new).is_some());
    }
    world.wait(DAY * 7);
    assert!(verified(&world, &new).is_none());
}

#[test]
fn sessions_are_listed_and_ended() {
    let world = World::new();
    let (one, two, three) = (signed_in(&world), signed_in(&world), signed_in(&world));
    let listed = sessions(world.store(), world.now()).unwrap();
    assert_eq!(listed.len(), 3);
    assert!(
        listed.iter().all(|session| session.browser == "A browser"),
        "no control characters"
    );
    assert!(end_session(world.store(), &one.id, world.now()).unwrap());
    assert!(!end_session(world.store(), &one.id, world.now()).unwrap());
    assert!(verified(&world, &one).is_none() && verified(&world, &two).is_some());
    let four = signed_in(&world);
    end_other_sessions(world.store(), &two.id, world.now()).unwrap();
    assert!(verified(&world, &two).is_some());
    assert!(verified(&world, &three).is_none() && verified(&world, &four).is_none());
    let three = signed_in(&world);
    end_all_sessions(world.store(), world.now()).unwrap();
    assert!(verified(&world, &two).is_none() && verified(&world, &three).is_none());
    for text in ["", "pdpp_session_", three.id.as_str()] {
        assert!(session(world.store(), text, world.now()).unwrap().is_none());
    }
}

#[test]
fn a_form_carries_the_token_of_its_own_session() {
    let world = World::new();
    let (one, two) = (signed_in(&world), signed_in(&world));
    let [one, two] = [&one, &two].map(|new| verified(&world, new).unwrap());
    assert!(one.checks_csrf(one.csrf_token().expose()));
    for wrong in [
        "",
        two.csrf_token().expose(),
        &one.csrf_token().expose()[1..],
    ] {
        assert!(!one.checks_csrf(wrong));
    }
}

#[test]
fn a_session_decides() {
    let world = World::new();
    let session = verified(&world, &signed_in(&world)).unwrap();
    let request = ask(&world, &client(&world), &[]).unwrap();
    let digest = review(&world, &request, mail()).digest;
    assert!(
        issuer(&world)
            .approve(&request, &digest, Decider::Session(&session))
            .is_ok()
    );
}

/// An owner of a PostgreSQL that the environment names, on two nodes.
#[expect(
    clippy::disallowed_methods,
    reason = "says where tests run, and nothing of the program"
)]
fn two_nodes(folder: &Path, now: Instant) -> Option<[PostgresStore; 2]> {
    let url = std::env::var("TEST_POSTGRES").ok()?;
    let started = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let owner = format!("g{}-{}", std::process::id(), started.as_nanos());
    Some(["a", "b"].map(|node| {
        let options = PostgresOptions {
            url: url.clone(),
            ca: None,
            owner: owner.clone(),
            add_owner: true,
            data_dir: folder.join(node),
            blobs: store::BlobPlace::Folder(folder.join("blobs")),
            node: format!("{node}-{owner}"),
            holder: "a test".to_owned(),
            clock: Arc::new(now),
            secret: [7; 32],
            other_secret: None,
        };
        PostgresStore::open(options).unwrap()
    }))
}

#[test]
fn wrong_guesses_count_on_every_node() {
    // TR-06
    let (folder, now) = (tempfile::tempdir().unwrap(), Instant(1_000_000_000_000_000));
    let Some(nodes) = two_nodes(folder.path(), now) else {
        return;
    };
    let wait = |node: &PostgresStore| {
        let door = SignIn { store: node, now };
        match door.by_code(&visitor(), "wrong").unwrap_err() {
            SignInError::Refused { wait } => wait.as_millis(),
            other => panic!("{other}"),
        }
    };
    let waits: Vec<u128> = nodes.iter().cycle().take(8).map(wait).collect();
    assert_eq!(waits, [0, 0, 0, 0, 0, 250, 500, 1_000]);
    // Also where they guess at the same time.
    std::thread::scope(|scope| {
        for node in nodes.iter().cycle().take(4) {
            scope.spawn(move || wait(node));
        }
    });
    assert_eq!(wait(&nodes[0]), 5_000);
}
