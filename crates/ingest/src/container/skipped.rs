//! What is not read of a container, and why.

use std::fmt;

/// A file inside a container that is not read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: String,
    pub why: SkipReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkipReason {
    UnsafeName,
    Link,
    Duplicate,
    Encrypted,
    UnknownMethod,
    Overlap,
    TooLarge,
    TooMany,
    TooDeep,
    NestedTwice,
    NestedTooLarge,
    Broken,
    Hidden,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::UnsafeName => "the name leads outside the archive",
            Self::Link => "it is a link",
            Self::Duplicate => "a file of that name stands before it in the archive",
            Self::Encrypted => "it is encrypted",
            Self::UnknownMethod => "it is compressed in a way that is not read here",
            Self::Overlap => "it shares bytes with another file of the archive",
            Self::TooLarge => "it, or all files together, would be larger than is read",
            Self::TooMany => "there are more files than are read",
            Self::TooDeep => "the folder is too deep inside others",
            Self::NestedTwice => "the archive is inside an archive that is inside another",
            Self::NestedTooLarge => {
                "the archive is inside another and too large for that; unpack the outer one and name this one"
            }
            Self::Broken => "it is damaged",
            Self::Hidden => "the name begins with a dot, or belongs to the system",
        })
    }
}
