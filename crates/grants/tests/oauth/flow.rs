//! The steps of a flow, as a client, a browser and an owner take them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grants::ChosenStream;
use grants::oauth::{
    Answer, AuthorizeError, Choice, Client, Decider, Issuer, Lookup, OAuthError, Parameters,
    Review, TokenResponse,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::world::World;

pub(crate) const ORIGIN: &str = "https://pdpp.example";
pub(crate) const REDIRECT: &str = "https://app.example/cb";
pub(crate) const VERIFIER: &str = "a-verifier-that-only-the-client-knows-0123456789";
pub(crate) const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

pub(crate) fn issuer(world: &World) -> Issuer<'_> {
    Issuer::new(world.store(), ORIGIN, world.now())
}

pub(crate) fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER.as_bytes()))
}

pub(crate) fn found(world: &World, id: &str) -> Client {
    match issuer(world).client(id).unwrap() {
        Lookup::Known(client) => client,
        Lookup::NeedsDocument(address) => panic!("{address} is not known"),
    }
}

pub(crate) fn register(world: &World, metadata: &Value) -> Client {
    let registered = issuer(world).register(&metadata.to_string()).unwrap();
    found(world, registered.client_id.as_str())
}

pub(crate) fn client(world: &World) -> Client {
    register(
        world,
        &json!({
            "client_name": "An app",
            "redirect_uris": [REDIRECT, "http://127.0.0.1/cb"],
            "grant_types": ["authorization_code", "refresh_token", DEVICE]
        }),
    )
}

/// The parameters, with `changes` instead of what stood there; an empty value takes one away.
pub(crate) fn parameters(base: &[(&str, &str)], changes: &[(&str, &str)]) -> Parameters {
    let kept = base
        .iter()
        .filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    kept.chain(changes)
        .filter(|(_, value)| !value.is_empty())
        .copied()
        .collect()
}

pub(crate) fn ask(
    world: &World,
    client: &Client,
    changes: &[(&str, &str)],
) -> Result<String, AuthorizeError> {
    let challenge = challenge();
    let base = [
        ("client_id", client.client_id.as_str()),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", "st&te"),
        ("scope", "whatever"),
    ];
    issuer(world).authorize(client, &parameters(&base, changes))
}

pub(crate) fn stream(connection: &str, stream: &str) -> ChosenStream {
    ChosenStream {
        connection_id: connection.to_owned(),
        stream: stream.to_owned(),
        ..ChosenStream::default()
    }
}

pub(crate) fn only(streams: &[ChosenStream]) -> Choice {
    Choice {
        streams: Some(streams.to_vec()),
        ..Choice::default()
    }
}

pub(crate) fn mail() -> Choice {
    only(&[stream("home", "messages")])
}

pub(crate) fn review(world: &World, request: &str, choice: Choice) -> Review {
    issuer(world).review(request, choice).unwrap()
}

/// Reviews and approves; the code in the address the browser is sent to.
pub(crate) fn approve(world: &World, request: &str, choice: Choice) -> String {
    let review = review(world, request, choice);
    let answer = issuer(world).approve(request, &review.digest, Decider::Terminal);
    let Answer::Redirect(address) = answer.unwrap() else {
        panic!("a code request is answered by redirect");
    };
    value_in(address.expose(), "code").unwrap()
}

/// A parameter of an address, as written.
pub(crate) fn value_in(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    Some(value.to_owned())
}

pub(crate) fn code(world: &World, client: &Client, choice: Choice) -> String {
    let request = ask(world, client, &[]).unwrap();
    approve(world, &request, choice)
}

pub(crate) fn redeem(
    world: &World,
    client: &Client,
    code: &str,
    changes: &[(&str, &str)],
) -> Result<TokenResponse, OAuthError> {
    let base = [
        ("grant_type", "authorization_code"),
        ("client_id", client.client_id.as_str()),
        ("redirect_uri", REDIRECT),
        ("code", code),
        ("code_verifier", VERIFIER),
    ];
    issuer(world).token(&parameters(&base, changes))
}

pub(crate) fn tokens(world: &World, client: &Client, choice: Choice) -> TokenResponse {
    redeem(world, client, &code(world, client, choice), &[]).unwrap()
}

pub(crate) fn refresh(
    world: &World,
    client: &Client,
    token: &str,
    changes: &[(&str, &str)],
) -> Result<TokenResponse, OAuthError> {
    let base = [
        ("grant_type", "refresh_token"),
        ("client_id", client.client_id.as_str()),
        ("refresh_token", token),
    ];
    issuer(world).token(&parameters(&base, changes))
}

pub(crate) fn refused(answer: Result<TokenResponse, OAuthError>) -> &'static str {
    answer.unwrap_err().error
}

pub(crate) fn renewing(response: &TokenResponse) -> &str {
    response.refresh_token.as_ref().unwrap().expose()
}

pub(crate) fn is_live(world: &World, response: &TokenResponse) -> bool {
    grants::resolve(world.store(), response.access_token.expose(), world.now()).is_ok()
}

/// Runs the same step several times side by side; how many succeeded.
pub(crate) fn winners<T: Send>(step: impl Fn() -> Option<T> + Sync) -> usize {
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        let run = || {
            start.wait();
            step().is_some()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
        let won = threads.into_iter().map(|thread| thread.join().unwrap());
        won.filter(|won| *won).count()
    })
}
