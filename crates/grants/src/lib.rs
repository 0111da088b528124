//! Who may read what: from a selection to a frozen grant, from a token to an authority, and the log of what left.
//!
//! [`Selection`] says what is asked, [`issue`] freezes it against the catalog into grants with one token, [`resolve`]
//! turns a presented token into the authority it stands for, and [`DisclosureLog`] keeps what was disclosed under it.
//! [`oauth`] holds the rules by which applications come to grants through the owner's browser, [`sign_in`] those by which
//! the owner is known there. A secret exists in clear only in the value that issuing returns.

#![warn(clippy::indexing_slicing)]

pub mod budget;
mod disclosures;
mod documents;
mod issue;
mod listing;
pub mod oauth;
pub mod receipts;
mod secret;
mod selection;
pub mod sign_in;
pub mod step_up;
mod templates;
mod token;
mod words;

pub use disclosures::{DisclosureLog, LogError, verify};
pub use issue::{
    IssueError, Issued, IssuedStream, OwnerToken, Preview, Recipient, issue, owner_token, preview,
};
pub use listing::{
    BudgetState, DisclosedCall, GrantDetails, IdNotFound, Overview, OwnerTokenOverview,
    RevokeError, RevokedKind, Revoking, ShowError, State, TOKENS_ENDED, list, owner_tokens, revoke,
    show,
};
pub use secret::Secret;
pub use selection::{
    ChosenStream, Draft, Flags, Mistake, Offer, Selection, SelectionError, rules_for_details,
};
pub use templates::{
    OfferedTemplate, Template, TemplateError, remove_template, save_template, save_template_from,
    template, templates,
};
pub use token::{Resolved, Surface, TokenError, TokenKind, authority_of, resolve, resolve_for};
pub use words::{Harmless, Wording, part_in_words};
