//! The contract, from afar: asking a resource server over HTTP with a stored credential, and getting that credential.
