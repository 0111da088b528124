//! The six reads at the terminal: what they show, how they continue, what they refuse, and that they agree with REST.

mod continuing;
mod desk;
mod far;
mod refusing;
mod showing;
