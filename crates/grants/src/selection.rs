//! A selection: what should be granted, and its resolution against the catalog.
//!
//! A selection comes from flags, from authorization details or from the owner's choice. Resolving closes it: every
//! connection, stream and field is named, exactly what was requested, nothing added. An empty selection is a mistake, never
//! "everything", and every mistake says where it is and what would be valid there.

mod chosen;
mod details;
mod document;
mod flags;
mod redact;
mod resolve;
mod rules;

use contract::declaration::Source;
use contract::document::Mistakes;
use contract::grant::{AccessMode, GrantedStream, Redaction, RowRule};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Store;

pub use chosen::ChosenStream;
pub(crate) use chosen::narrow;
pub use contract::document::{Mistake, Mistakes as SelectionError};
pub(crate) use details::AI_TRAINING;
pub use rules::rules_for_details;

/// What `pdpp grant create` takes without a details file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flags {
    pub connections: Vec<String>,
    pub streams: Vec<String>,
    /// Only these fields, of exactly one stream.
    pub fields: Vec<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    /// Only records that meet all of these, each written as a filter.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// No record that meets any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// How much is shown of fields that are not shown whole: `field=how`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
}

/// What should be granted, not yet resolved against the catalog.
#[derive(Debug, Clone)]
pub struct Selection(Origin);

#[derive(Debug, Clone)]
enum Origin {
    Flags(Flags),
    Details(Vec<details::Detail>),
    Chosen(Vec<ChosenStream>, AccessMode),
}

impl Selection {
    pub fn from_flags(flags: Flags) -> Result<Selection, SelectionError> {
        flags::check(&flags)?;
        Ok(Selection(Origin::Flags(flags)))
    }

    /// A selection by RFC 9396 authorization details: a JSON array of them, or one alone.
    pub fn from_details(text: &str) -> Result<Selection, SelectionError> {
        details::parse(text).map(|details| Selection(Origin::Details(details)))
    }

    /// A selection by what the owner ticked, one grant for each connection.
    pub fn from_choice(chosen: Vec<ChosenStream>, access_mode: AccessMode) -> Selection {
        Selection(Origin::Chosen(chosen, access_mode))
    }

    /// Resolves the selection against the current catalog, one draft per grant.
    pub(crate) fn resolve(&self, store: &dyn Store) -> Result<Vec<Draft>, SelectionError> {
        match &self.0 {
            Origin::Flags(flags) => flags::resolve(flags, store),
            Origin::Details(details) => details::resolve(details, store),
            Origin::Chosen(chosen, mode) => chosen::resolve(chosen, *mode, store),
        }
    }

    /// The part of the selection that can be granted, and why the rest cannot.
    pub(crate) fn offer(&self, store: &dyn Store) -> Offer {
        let resolved = match &self.0 {
            Origin::Details(details) => return details::offer(details, store),
            Origin::Flags(_) | Origin::Chosen(..) => self.resolve(store),
        };
        let (drafts, missing) = match resolved {
            Ok(drafts) => (drafts, Vec::new()),
            Err(mistakes) => (Vec::new(), mistakes.0),
        };
        Offer { drafts, missing }
    }
}

/// A request resolved against the catalog, for the owner to choose from.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// What can be granted, never more than was requested.
    pub drafts: Vec<Draft>,
    /// What cannot, or only once the owner has chosen which one is meant.
    pub missing: Vec<Mistake>,
}

/// A grant without its id, its client and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    pub source: Source,
    /// Against which declaration it was resolved.
    pub declaration_version: String,
    /// Why, as a URI.
    pub purpose_code: String,
    /// Why, in the client's words.
    pub purpose_description: Option<String>,
    /// Once or until it ends.
    pub access_mode: AccessMode,
    /// What may be read; closed.
    pub streams: Vec<GrantedStream>,
    pub selection_preset: Option<String>,
    /// What the client promises about keeping data.
    pub retention: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    path: String,
    text: String,
}

#[derive(Debug, Clone)]
struct StreamRequest {
    path: String,
    name: Named,
    part: FieldsRequest,
    time: Option<TimeRequest>,
    resources: Option<Vec<Named>>,
    only: Option<Vec<RuleRequest>>,
    except: Option<Vec<RuleRequest>>,
    redact: Option<Vec<RedactionRequest>>,
    connections: Option<Vec<Named>>,
}

#[derive(Debug, Clone)]
struct RuleRequest {
    path: String,
    rule: RowRule,
    /// Whether it was written as a condition, in which a dot leads to a related record.
    by_condition: bool,
}

#[derive(Debug, Clone)]
struct RedactionRequest {
    path: String,
    field: String,
    how: Redaction,
}

#[derive(Debug, Clone)]
enum FieldsRequest {
    Whole,
    Fields(Vec<Named>),
    View(Named),
}

#[derive(Debug, Clone)]
struct TimeRequest {
    path: String,
    since: Option<String>,
    until: Option<String>,
}

/// `known: a, b, c`, or that there are none.
fn known<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 20;
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return "there are none".to_owned();
    }
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<&str> = names.into_iter().take(SHOWN).collect();
    let rest = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("known: {}{rest}", shown.join(", "))
}
