//! The reference's authorization server, as a client meets it: a device must name what it asks for and gets a token without an
//! end, a browser may leave the choice to the owner and gets a package that `/v1` refuses, tokens with a refresh token live
//! ten minutes, and what has ended is told by codes of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::call::Call;
use super::reply::{Failure, Reply};

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
const DETAILS: &str = "authorization_details";
/// The members of a registration; others are refused.
const REGISTRATION: [&str; 6] = [
    "application_type",
    "client_name",
    "grant_types",
    "redirect_uris",
    "response_types",
    "token_endpoint_auth_method",
];
/// The members of a detail that must be there.
const NEEDED: [&str; 5] = ["type", "source", "purpose_code", "access_mode", "streams"];
/// How long a token lives that can be renewed.
const LIFETIME: u64 = 600;

/// What the owner does, as soon as somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    Yes,
    /// Refuses. A browser is not sent back then.
    No,
}

/// An authorization server beside the resource server.
#[derive(Debug, Clone)]
pub struct Issuer {
    decides: Decides,
    /// Whether its documents say what a device must send.
    describes_devices: bool,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    given: usize,
    clients: BTreeMap<String, Value>,
    codes: BTreeMap<String, PendingCode>,
    tokens: BTreeMap<String, Token>,
    /// Refresh tokens and the client that may trade them, once.
    refresh: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
struct PendingCode {
    client: String,
    /// Where the browser goes back to, and the PKCE challenge.
    browser: Option<(String, String)>,
    is_package: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Live,
    Package,
    Ended,
    Revoked,
}

impl Issuer {
    pub fn new(decides: Decides) -> Issuer {
        Issuer {
            decides,
            describes_devices: true,
            memory: Arc::default(),
        }
    }

    /// The same, but its documents do not say what a device must send.
    #[must_use]
    pub fn undescribed(mut self) -> Issuer {
        self.describes_devices = false;
        self
    }

    pub fn end_tokens(&self) {
        for token in self.memory().tokens.values_mut() {
            *token = Token::Ended;
        }
    }

    /// Revokes every grant: its tokens and whatever could renew them.
    pub fn revoke(&self) {
        let mut memory = self.memory();
        memory.refresh.clear();
        for token in memory.tokens.values_mut() {
            *token = Token::Revoked;
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the resource server takes a token.
    pub(crate) fn admit(&self, authorization: Option<&str>) -> Result<(), Failure> {
        let Some(token) = authorization.and_then(|text| text.strip_prefix("Bearer ")) else {
            return Err(Failure::new(
                401,
                "authentication_error",
                "Missing Bearer token",
            ));
        };
        let refused = |status, code, message| Err(Failure::new(status, code, message));
        match self.memory().tokens.get(token) {
            Some(Token::Live) => Ok(()),
            Some(Token::Package) => refused(403, "permission_error", "Unsupported token kind"),
            Some(Token::Ended) => refused(403, "grant_expired", "Grant has expired"),
            Some(Token::Revoked) => refused(403, "grant_revoked", "Grant has been revoked"),
            None => refused(
                401,
                "context.active_false",
                "Token introspection failed closed",
            ),
        }
    }

    pub(crate) fn answer(&self, call: &Call) -> Option<Reply> {
        let base = format!("http://{}", call.host);
        let answered = match (call.method.as_str(), call.path.as_str()) {
            ("GET", "/.well-known/oauth-protected-resource") => Ok(json!({
                "resource": base,
                "authorization_servers": [base],
                "pdpp_token_kinds_supported": ["owner", "client"],
            })),
            ("GET", "/.well-known/oauth-authorization-server") => Ok(self.document(&base)),
            ("POST", "/oauth/register") => return Some(self.register(call)),
            ("POST", "/oauth/device_authorization") => self.device(&call.form(), &base),
            ("GET", "/oauth/authorize") => return Some(self.authorize(call)),
            ("POST", "/oauth/token") => self.token(&call.form()),
            _ => return None,
        };
        Some(match answered {
            Ok(body) => Reply::json(200, &body),
            Err((code, told)) => refusal(code, told),
        })
    }

    fn document(&self, base: &str) -> Value {
        let mut document = json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/oauth/authorize"),
            "token_endpoint": format!("{base}/oauth/token"),
            "registration_endpoint": format!("{base}/oauth/register"),
            "device_authorization_endpoint": format!("{base}/oauth/device_authorization"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "grant_types_supported": [DEVICE_CODE, "authorization_code", "refresh_token"],
        });
        if self.describes_devices {
            document["pdpp_device_authorization_profiles_supported"] = json!([
                {"profile": "grant_scoped_mcp", "pdpp_token_kind": "client",
                 "required_parameters": ["client_id", "resource", DETAILS]},
                {"profile": "trusted_owner_agent", "pdpp_token_kind": "owner"},
            ]);
        }
        document
    }

    fn register(&self, call: &Call) -> Reply {
        let metadata: Value = serde_json::from_str(&call.body).unwrap_or_default();
        let known = |name: &String| REGISTRATION.contains(&name.as_str());
        let fits = metadata
            .as_object()
            .is_some_and(|all| all.keys().all(known));
        let types = &metadata["grant_types"];
        let has = |name: &str| {
            types
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == name))
        };
        let redirects = metadata["redirect_uris"].is_array();
        let whole = has("authorization_code") == redirects
            && (has("authorization_code") || !has("refresh_token"));
        if !fits || !whole {
            return refusal("invalid_client_metadata", "Unsupported client metadata");
        }
        let mut memory = self.memory();
        let id = memory.next("cli");
        memory.clients.insert(id.clone(), metadata);
        Reply::json(201, &json!({"client_id": id}))
    }

    fn device(&self, form: &Call, base: &str) -> Result<Value, Refused> {
        let resource = form.value("resource").unwrap_or_default();
        let Some(details) = form.value(DETAILS) else {
            return Err((
                "invalid_request",
                "authorization_details is required for MCP device authorization",
            ));
        };
        let path = resource.split('/').skip(3).collect::<Vec<_>>().join("/");
        if path != "mcp" {
            return Err(("invalid_request", "resource must be the MCP endpoint"));
        }
        let mut memory = self.memory();
        let client = memory.client(form)?;
        checked(details)?;
        let code = memory.next("dc");
        let asked = PendingCode {
            client,
            browser: None,
            is_package: false,
        };
        memory.codes.insert(code.clone(), asked);
        Ok(json!({
            "device_code": code,
            "user_code": "7AB3F0",
            "verification_uri": format!("{base}/consent"),
            "verification_uri_complete": format!("{base}/consent?request_uri=urn:pdpp:pending-consent:x"),
            "expires_in": 300,
            "interval": 1,
        }))
    }

    /// Where a browser is sent; the owner decides at once.
    fn authorize(&self, call: &Call) -> Reply {
        let mut memory = self.memory();
        let client = match memory.client(call) {
            Ok(client) => client,
            Err((code, told)) => return refusal(code, told),
        };
        let value = |name| call.value(name).unwrap_or_default();
        let redirect = value("redirect_uri");
        let registered = &memory.clients[&client]["redirect_uris"];
        let registered = registered.as_array().into_iter().flatten();
        let is_known = registered
            .filter_map(Value::as_str)
            .any(|one| one == redirect);
        let asks = value("response_type") == "code" && value("code_challenge_method") == "S256";
        if !is_known || !asks || value("code_challenge").len() != 43 {
            return refusal("invalid_request", "The request cannot be staged");
        }
        let details = call.value(DETAILS);
        if let Some(Err((code, told))) = details.map(checked) {
            return refusal(code, told);
        }
        if self.decides == Decides::No {
            return Reply::new(200, "text/html", "<p>Denied</p>");
        }
        let code = memory.next("oacode");
        let asked = PendingCode {
            client,
            browser: Some((redirect.to_owned(), value("code_challenge").to_owned())),
            is_package: details.is_none(),
        };
        memory.codes.insert(code.clone(), asked);
        let back = format!("{redirect}?code={code}&state={}", value("state"));
        Reply::new(302, "text/plain", "").header("location", &back)
    }

    fn token(&self, form: &Call) -> Result<Value, Refused> {
        let mut memory = self.memory();
        let client = memory.client(form)?;
        let grant_type = form.value("grant_type").unwrap_or_default();
        let asked = match grant_type {
            "refresh_token" => {
                let traded = memory
                    .refresh
                    .remove(form.value("refresh_token").unwrap_or_default());
                if traded.is_none_or(|owner| owner != client) {
                    return Err(("invalid_grant", "Refresh token is not active"));
                }
                return Ok(memory.give(&client, true, false));
            }
            "authorization_code" => memory.codes.remove(form.value("code").unwrap_or_default()),
            DEVICE_CODE => memory
                .codes
                .get(form.value("device_code").unwrap_or_default())
                .cloned(),
            _ => return Err(("unsupported_grant_type", "Unsupported grant type")),
        };
        let asked = asked.filter(|asked| asked.client == client);
        let Some(asked) = asked else {
            return Err(("invalid_grant", "Unknown code"));
        };
        if self.decides == Decides::No {
            return Err(("access_denied", "The owner denied the request"));
        }
        let Some((redirect, challenge)) = asked.browser else {
            return Ok(memory.give(&client, false, false));
        };
        let verifier = form.value("code_verifier").unwrap_or_default();
        let proved = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) == challenge;
        if !proved || form.value("redirect_uri") != Some(&redirect) {
            return Err(("invalid_grant", "The code was asked for by another"));
        }
        Ok(memory.give(&client, true, asked.is_package))
    }
}

/// A code of OAuth and what is said about it.
type Refused = (&'static str, &'static str);

impl Memory {
    fn next(&mut self, kind: &str) -> String {
        self.given += 1;
        format!("{kind}_{:016}", self.given)
    }

    fn client(&self, form: &Call) -> Result<String, Refused> {
        let id = form.value("client_id").unwrap_or_default();
        let known = self.clients.contains_key(id);
        known
            .then(|| id.to_owned())
            .ok_or(("invalid_client", "Unknown client"))
    }

    /// A new token. Only who registered for it can renew it, and only then it ends.
    fn give(&mut self, client: &str, from_browser: bool, is_package: bool) -> Value {
        let token = self.next("access");
        let kind = if is_package {
            Token::Package
        } else {
            Token::Live
        };
        self.tokens.insert(token.clone(), kind);
        let mut body = json!({"access_token": token, "token_type": "Bearer"});
        let types = self.clients[client]["grant_types"].as_array();
        let renews = types.is_some_and(|types| types.iter().any(|one| one == "refresh_token"));
        if from_browser && renews {
            let refresh = self.next("rt");
            self.refresh.insert(refresh.clone(), client.to_owned());
            body["refresh_token"] = refresh.into();
            body["expires_in"] = LIFETIME.into();
        }
        let name = if is_package {
            "grant_package_id"
        } else {
            "grant_id"
        };
        body[name] = format!("grt_{client}").into();
        body
    }
}

/// Details as the closed schema has them, as far as it matters here.
fn checked(details: &str) -> Result<(), Refused> {
    let invalid = (
        "invalid_authorization_details",
        "The details do not fit the schema",
    );
    let details: Value = serde_json::from_str(details).map_err(|_| invalid)?;
    let whole = |one: &Value| NEEDED.iter().all(|name| one.get(*name).is_some());
    let fits = details
        .as_array()
        .is_some_and(|all| all.len() == 1 && all.iter().all(whole));
    fits.then_some(()).ok_or(invalid)
}

fn refusal(code: &str, told: &str) -> Reply {
    Reply::json(
        400,
        &json!({"error": code, "error_description": told, "request_id": "req_1"}),
    )
}
