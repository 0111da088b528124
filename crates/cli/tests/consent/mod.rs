//! The whole way an agent comes to read: a server, a device that asks, an owner who decides on the pages, the tools, a
//! token that ends and is renewed, and the end of the grant.

mod served;
mod visitor;
mod whole;
mod wording;
