//! Who lives in the sample life: one person, her family and friends, her colleagues.

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: &'static str,
    pub(crate) email: &'static str,
    pub(crate) title: &'static str,
    pub(crate) time_zone: &'static str,
}

impl Person {
    pub(crate) fn first_name(&self) -> &'static str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// The part of the address before the sign.
    pub(crate) fn handle(&self) -> &'static str {
        self.email.split('@').next().unwrap_or_default()
    }
}

const fn person(
    name: &'static str,
    email: &'static str,
    title: &'static str,
    time_zone: &'static str,
) -> Person {
    Person {
        name,
        email,
        title,
        time_zone,
    }
}

pub(crate) const MARA: &str = "Mara Keller";
/// Her private address; the one at work is with the colleagues.
pub(crate) const MARA_AT_HOME: &str = "mara@keller.example";

const ZURICH: &str = "Europe/Zurich";

/// The members of the chat, Mara first.
pub(crate) const COLLEAGUES: [Person; 13] = [
    person(
        MARA,
        "mara.keller@tidewater.example",
        "Structural engineer, monitoring",
        ZURICH,
    ),
    person(
        "Jonas Weber",
        "jonas.weber@tidewater.example",
        "Project lead, bridges",
        ZURICH,
    ),
    person(
        "Amina Haddad",
        "amina.haddad@tidewater.example",
        "Structural engineer",
        "Asia/Amman",
    ),
    person(
        "Kenji Sato",
        "kenji.sato@hoshimura.example",
        "Partner engineer",
        "Asia/Tokyo",
    ),
    person(
        "Claire Moreau",
        "claire.moreau@tidewater.example",
        "Lyon office",
        "Europe/Paris",
    ),
    person(
        "Tom Whitfield",
        "tom.whitfield@tidewater.example",
        "Software",
        "Europe/London",
    ),
    person(
        "Priya Raman",
        "priya.raman@tidewater.example",
        "Data",
        ZURICH,
    ),
    person(
        "Lucía Fernández",
        "lucia.fernandez@tidewater.example",
        "Site engineer",
        ZURICH,
    ),
    person(
        "Anders Holm",
        "anders.holm@tidewater.example",
        "Finance",
        "Europe/Oslo",
    ),
    person(
        "Birgit Amsler",
        "birgit.amsler@tidewater.example",
        "Office",
        ZURICH,
    ),
    person(
        "Viktor Petrov",
        "viktor.petrov@tidewater.example",
        "Surveying",
        ZURICH,
    ),
    person(
        "Grace Mbeki",
        "grace.mbeki@tidewater.example",
        "Director",
        ZURICH,
    ),
    person(
        "Noah Steiner",
        "noah.steiner@tidewater.example",
        "Apprentice",
        ZURICH,
    ),
];

/// Family and friends, Mara at home first.
pub(crate) const HOME: [Person; 9] = [
    person(MARA, MARA_AT_HOME, "", ZURICH),
    person("Daniel Keller", "daniel@keller.example", "", ZURICH),
    person("Ruth Brunner", "ruth.brunner@post.example", "", ZURICH),
    person("Felix Brunner", "felix@brunner.example", "", ZURICH),
    person("Hedi Brunner", "hedi.brunner@post.example", "", ZURICH),
    person("Yuki Tanaka", "yuki@tanaka.example", "", "Asia/Tokyo"),
    person("Salma Idris", "salma.idris@post.example", "", ZURICH),
    person("Marco Bianchi", "marco@bianchi.example", "", ZURICH),
    person("Sophie Lang", "sophie.lang@post.example", "", ZURICH),
];

/// Name and address of somebody given by a known name, or as `Name <address>`.
pub(crate) fn address(given: &str, known: &[Person]) -> Option<(String, String)> {
    if let Some((name, rest)) = given.split_once(" <") {
        return Some((name.to_owned(), rest.trim_end_matches('>').to_owned()));
    }
    let everybody = known.iter().chain(&COLLEAGUES).chain(&HOME);
    everybody
        .into_iter()
        .find(|person| person.name == given)
        .map(|person| (person.name.to_owned(), person.email.to_owned()))
}
