//! What stands around the content of every page: the navigation, the session of its forms, and on whose behalf records
//! are shown.

use grants::sign_in::Session;

use super::address::Address;
use super::{moment, session};

pub(super) struct Frame {
    /// The CSRF token of the session's forms; empty where nobody is signed in.
    pub(super) session: String,
    /// Whether the navigation is shown.
    has_nav: bool,
    /// The page of the navigation that this one belongs to.
    section: Section,
    pub(super) seen_as: Option<SeenAs>,
}

/// The grant through which records are shown.
#[derive(Debug, Clone)]
pub(crate) struct SeenAs {
    pub(super) id: String,
    pub(super) client: String,
    /// The same page as the owner sees it.
    pub(super) leave: String,
    /// Why its client gets nothing of this now; empty where it does.
    pub(super) refused: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Search,
    Browse,
    Timeline,
    Grants,
    Import,
    Settings,
    /// A page that is reached from elsewhere.
    None,
}

pub(super) struct NavLink {
    pub(super) name: &'static str,
    /// The outline of its icon.
    pub(super) icon: &'static str,
    pub(super) address: String,
    pub(super) here: bool,
}

/// A section that has a page.
struct Page {
    section: Section,
    name: &'static str,
    icon: &'static str,
    path: &'static str,
    /// Whether it can be seen as a grant sees it.
    shows_records: bool,
}

const PAGES: [Page; 7] = [
    Page {
        section: Section::Overview,
        name: "Overview",
        icon: "M4 4h7v7H4zM13.5 4H20v4.5h-6.5zM13.5 11.5H20V20h-6.5zM4 14h7v6H4z",
        path: "/",
        shows_records: true,
    },
    Page {
        section: Section::Search,
        name: "Search",
        icon: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM20 20l-4.9-4.9",
        path: "/search",
        shows_records: true,
    },
    Page {
        section: Section::Browse,
        name: "Browse",
        icon: "M4 5h16v14H4zM4 10h16M4 14.5h16M10 10v9",
        path: "/browse",
        shows_records: true,
    },
    Page {
        section: Section::Timeline,
        name: "Timeline",
        icon: "M4 20h16M7 20v-6M12 20V6M17 20v-9",
        path: "/timeline",
        shows_records: true,
    },
    Page {
        section: Section::Grants,
        name: "Grants",
        icon: "M12 3l7 3v5c0 4.6-2.9 8-7 10-4.1-2-7-5.4-7-10V6zM9 12l2.2 2.2 4.3-4.4",
        path: "/grants",
        shows_records: false,
    },
    Page {
        section: Section::Import,
        name: "Import",
        icon: "M12 4v11M7.5 10.5L12 15l4.5-4.5M4 19h16",
        path: "/import",
        shows_records: false,
    },
    Page {
        section: Section::Settings,
        name: "Settings",
        icon: "M4 7h9M18 7h2M4 17h2M11 17h9M15.5 4.7v4.6M8.5 14.7v4.6",
        path: "/settings",
        shows_records: false,
    },
];

impl Frame {
    /// A page before anybody has signed in.
    pub(super) fn signed_out() -> Self {
        Self {
            session: String::new(),
            has_nav: false,
            section: Section::None,
            seen_as: None,
        }
    }

    /// A page that does not know who looks at it: it leads on, and has no form.
    pub(super) fn without_session(seen_as: Option<SeenAs>) -> Self {
        Self {
            has_nav: true,
            seen_as,
            ..Self::signed_out()
        }
    }

    pub(super) fn new(session: &Session, section: Section) -> Self {
        Self {
            session: session::csrf_token(session),
            has_nav: true,
            section,
            seen_as: None,
        }
    }

    /// The zone of the times on the page.
    #[expect(clippy::unused_self, reason = "templates ask the frame")]
    pub(super) fn zone(&self) -> String {
        moment::zone_name()
    }

    pub(super) fn nav(&self) -> Vec<NavLink> {
        let pages = PAGES.iter().filter(|_| self.has_nav);
        let link = |page: &Page| NavLink {
            name: page.name,
            icon: page.icon,
            address: match &self.seen_as {
                Some(seen_as) if page.shows_records => {
                    Address::new(page.path).with("as", &seen_as.id).to_string()
                }
                _ => page.path.to_owned(),
            },
            here: page.section == self.section,
        };
        pages.map(link).collect()
    }
}
