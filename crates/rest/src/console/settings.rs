//! Settings: the password, where the server is, whether the data is whole, and a backup of everything.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use contract::time::Instant;
use grants::sign_in::{PasswordError, Session, has_password, sessions, set_password};
use store::inspection::{Depth, Inspection};

use super::format::format_number;
use super::frame::{Frame, Section};
use super::moment::Moment;
use super::overview::indexing_words;
use super::sign_in_attempt::{self, Attempt, SignInSecret};
use super::{html, see_other, session};
use crate::form::Form;
use crate::history;
use crate::owner::blocking;
use crate::owner::maintenance;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// How long after signing in a first password can be set: a session that others came by later must not become theirs for good.
const FRESH: Duration = Duration::from_mins(15);

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    has_password: bool,
    /// Why the password was not set.
    mistake: String,
    public_url: String,
    console_url: String,
    mcp_url: String,
    version: &'static str,
    records: String,
    model: String,
    last_backup: Option<Moment>,
    /// How far the index is, while it is not whole.
    indexing: String,
    /// What is wrong with the data.
    findings: Vec<String>,
}

/// `GET /settings`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    settings(&context.service, &session, StatusCode::OK, String::new()).await
}

async fn settings(
    service: &Arc<Service>,
    session: &Session,
    status: StatusCode,
    mistake: String,
) -> HandlerResult {
    let frame = Frame::new(session, Section::Settings);
    let page = blocking(Arc::clone(service), move |service| {
        page(service, frame, mistake)
    });
    html(status, &page.await?)
}

/// `POST /settings/password`: sets a password. Every browser has to sign in with it then.
pub(super) async fn password(mut context: RequestContext) -> HandlerResult {
    let (session, form) = session::sent_form(&mut context, "/sign-in").await?;
    let service = Arc::clone(&context.service);
    let mut mistake = refusal(&context, &session, &form).await?;
    if mistake.is_none() {
        let new = form.value("new").to_owned();
        let set = blocking(Arc::clone(&service), move |service| {
            match set_password(&*service.store, &new, service.now()) {
                Ok(()) => Ok(None),
                Err(error @ PasswordError::Length) => Ok(Some(error.to_string())),
                Err(error) => Err(Problem::internal("the password was not set", &error)),
            }
        });
        mistake = set.await?;
    }
    match mistake {
        Some(mistake) => settings(&service, &session, StatusCode::BAD_REQUEST, mistake).await,
        None => Ok(see_other("/sign-in?return_to=%2Fsettings")),
    }
}

/// Why this session may not set the password that a form has. The future borrows nothing of the request, whose body is not
/// `Sync`.
fn refusal(
    context: &RequestContext,
    session: &Session,
    form: &Form,
) -> impl Future<Output = Result<Option<String>, Problem>> + Send + use<> {
    let (id, service) = (session.id().to_owned(), Arc::clone(&context.service));
    let differ = form.value("new") != form.value("again");
    let current = SignInSecret::Password(form.value("current").to_owned());
    let attempt = sign_in_attempt::enter(context, current);
    async move {
        if differ {
            return Ok(Some("The two new passwords differ.".to_owned()));
        }
        let known = blocking(service, move |service| known(service, &id)).await?;
        if !known.password {
            let late = "You have been signed in for a while. Sign in with a new link of `pdpp sign-in`, and set the password within 15 minutes.";
            return Ok((!known.is_fresh).then(|| late.to_owned()));
        }
        Ok(match attempt.await? {
            Attempt::Entered(_) => None,
            Attempt::Wrong => Some("That is not the password.".to_owned()),
            Attempt::Unchecked => {
                Some("Too many passwords are being checked. Try again in a moment.".to_owned())
            }
        })
    }
}

/// What decides who may set a password.
struct Known {
    password: bool,
    /// Whether the session has begun shortly before.
    is_fresh: bool,
}

fn known(service: &Service, session: &str) -> Result<Known, Problem> {
    let failed = |error| Problem::internal("the password could not be looked up", &error);
    let (store, now) = (&*service.store, service.now());
    let mut all = sessions(store, now).map_err(failed)?.into_iter();
    let own = all.find(|one| one.id == session);
    let started = own.and_then(|own| Instant::parse(&own.started_at));
    let age = started.map(|started| now.0.saturating_sub(started.0));
    let fresh = i64::try_from(FRESH.as_micros()).unwrap_or(i64::MAX);
    Ok(Known {
        password: has_password(store, now).map_err(failed)?,
        is_fresh: age.is_some_and(|age| age < fresh),
    })
}

fn page(service: &Service, frame: Frame, mistake: String) -> Result<SettingsPage, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::internal("the settings", error);
    let looked = service
        .store
        .inspect(Depth::Glance)
        .map_err(|error| failed(&error))?;
    let now = service.now();
    let model = service.store.model();
    let last_backup = history::last_backup(&*service.store, now);
    let status = service.store.index_status();
    Ok(SettingsPage {
        frame,
        mistake,
        has_password: has_password(&*service.store, now).map_err(|error| failed(&error))?,
        public_url: service.public_url.to_string(),
        console_url: service.console.origin().to_owned(),
        mcp_url: format!("{}/mcp", service.public_url),
        version: env!("CARGO_PKG_VERSION"),
        records: format_number(looked.records),
        model: match model {
            Some(_) => "A sentence model is there: searches by meaning are possible.".to_owned(),
            None => String::new(),
        },
        last_backup: last_backup
            .map_err(|error| failed(&error))?
            .and_then(Moment::new),
        indexing: indexing_words(&status.map_err(|error| failed(&error))?).unwrap_or_default(),
        findings: findings(&looked),
    })
}

fn findings(looked: &Inspection) -> Vec<String> {
    let damaged = [
        ("records", &looked.damaged_records),
        ("files", &looked.damaged_blobs),
        ("index", &looked.damaged_index),
    ];
    let mut findings: Vec<String> = Vec::new();
    for (what, damage) in damaged {
        findings.extend(damage.iter().map(|one| format!("{what}: {}", one.detail)));
    }
    if looked.traces_left {
        findings.push("Something was erased of which bytes may still be on the disk.".to_owned());
    }
    findings.extend(
        looked
            .unwritable
            .iter()
            .map(|why| format!("Nothing can be written: {why}")),
    );
    findings.extend(looked.unmarked.clone());
    if looked.waiting > 0 {
        findings.push("Some entries of the log wait to be written.".to_owned());
    }
    findings
}

/// `POST /settings/backup`: everything as one archive, which `pdpp restore` takes.
pub(super) async fn backup(mut context: RequestContext) -> HandlerResult {
    session::sent_form(&mut context, "/sign-in").await?;
    let mut response = maintenance::backup(context).await?;
    for (name, value) in [
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"pdpp-backup.tar\"",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told() {
        assert!(findings(&Inspection::default()).is_empty());
        let looked = Inspection {
            unwritable: Some("the disk is full".to_owned()),
            traces_left: true,
            ..Inspection::default()
        };
        assert_eq!(findings(&looked).len(), 2);
    }
}
