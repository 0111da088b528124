//! Enums whose variants have names: each stands in one table, and what is read, written and listed follows from it.

/// One of a few words.
pub trait Named: Copy + 'static {
    /// All of them by their names, as they stand in the table.
    const NAMED: &'static [(&'static str, Self)];

    fn name(self) -> &'static str;
}

/// Declares an enum with a name for each variant.
#[macro_export]
macro_rules! names {
    ($(#[$about:meta])* $seen:vis enum $kind:ident {
        $($(#[$note:meta])* $variant:ident = $name:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $seen enum $kind {
            $($(#[$note])* $variant,)+
        }

        impl $kind {
            $seen const NAMES: &'static [&'static str] = &[$($name),+];
            $seen const ALL: [Self; Self::NAMES.len()] = [$(Self::$variant),+];

            $seen const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            $seen fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }

        impl $crate::names::Named for $kind {
            const NAMED: &'static [(&'static str, Self)] = &[$(($name, Self::$variant)),+];

            fn name(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
