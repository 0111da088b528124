//! Granting at the terminal: what is issued, shown, listed, revoked and verified, and that no secret shows elsewhere.

mod afterwards;
mod issuing;
mod secrets;
mod world;
