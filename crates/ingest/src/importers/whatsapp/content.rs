//! What stands behind the moment of a `WhatsApp` message: who wrote it and what, and what the app says in their place.
//! The app speaks the language of the phone. Where it marks its own words with U+200E, that tells; where it does not,
//! the usual languages are known, and in others its words are taken for a text.

use super::stamp::is_mark;

/// The mark before words of the app itself.
const MARK: char = '\u{200e}';

/// What Android writes instead of a file that was not exported.
const NOT_EXPORTED: [&str; 14] = [
    "<media omitted>",
    "<medien ausgeschlossen>",
    "<multimedia omitido>",
    "<archivo omitido>",
    "<médias omis>",
    "<fichier omis>",
    "<mídia oculta>",
    "<arquivo de mídia oculto>",
    "<media omessi>",
    "<media weggelaten>",
    "<без медиафайлов>",
    "<pominięto multimedia>",
    "<medya dahil edilmedi>",
    "<media utelämnat>",
];

/// How an iPhone ends the same sentence: `image omitted`, `Bild weggelassen`.
const LEFT_OUT: [&str; 16] = [
    "omitted",
    "weggelassen",
    "omitido",
    "omitida",
    "omis",
    "omise",
    "absent",
    "absente",
    "ocultado",
    "ocultada",
    "omesso",
    "omessa",
    "weggelaten",
    "pominięto",
    "пропущено",
    "utelämnad",
];

/// What Android writes behind the name of a file.
const ATTACHED: [&str; 9] = [
    "(file attached)",
    "(datei angehängt)",
    "(archivo adjunto)",
    "(fichier joint)",
    "(arquivo anexado)",
    "(file allegato)",
    "(bestand bijgevoegd)",
    "(файл добавлен)",
    "(plik załączony)",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    /// Somebody sent a file, with or without words.
    Media,
    /// The app notes something: a new member, a call, another subject.
    System,
}

/// A message, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content<'t> {
    pub(super) kind: Kind,
    pub(super) author: Option<&'t str>,
    pub(super) text: String,
    pub(super) attachment: Option<&'t str>,
    pub(super) edited: bool,
}

/// What Android calls files in languages that are not among the above: part of `<…>` that stands alone.
const MEDIA_WORDS: [&str; 20] = [
    "media",
    "médi",
    "mídia",
    "multim",
    "medie",
    "mediá",
    "медиа",
    "медіа",
    "мультим",
    "πολυμέσ",
    "미디어",
    "メディア",
    "媒",
    "وسائط",
    "رسانه",
    "מדיה",
    "मीडिया",
    "মিডিয়া",
    "phương tiện",
    "สื่อ",
];

/// How iPhones say in further languages that a file was left out.
const LEFT_OUT_ELSEWHERE: [&str; 20] = [
    "省略",
    "忽略",
    "略去",
    "略過",
    "생략",
    "استبعاد",
    "محذوف",
    "הושמט",
    "छोड़",
    "dahil edilmedi",
    "utelatt",
    "utelämna",
    "udeladt",
    "jätetty pois",
    "jätettiin pois",
    "vynechán",
    "kihagyva",
    "tidak disertakan",
    "παραλείφθηκ",
    "bỏ qua",
];

/// How Android ends a text that was edited.
const EDITED: [&str; 8] = [
    "this message was edited",
    "diese nachricht wurde bearbeitet",
    "se editó este mensaje",
    "ce message a été modifié",
    "essa mensagem foi editada",
    "questo messaggio è stato modificato",
    "dit bericht is bewerkt",
    "данное сообщение изменено",
];

/// What Android writes instead of a text that was deleted.
const DELETED: [&str; 18] = [
    "this message was deleted",
    "you deleted this message",
    "diese nachricht wurde gelöscht",
    "du hast diese nachricht gelöscht",
    "se eliminó este mensaje",
    "eliminaste este mensaje",
    "ce message a été supprimé",
    "vous avez supprimé ce message",
    "mensagem apagada",
    "você apagou esta mensagem",
    "questo messaggio è stato eliminato",
    "hai eliminato questo messaggio",
    "dit bericht is verwijderd",
    "je hebt dit bericht verwijderd",
    "данное сообщение удалено",
    "вы удалили данное сообщение",
    "삭제된 메시지입니다",
    "このメッセージは削除されました",
];

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Media => "media",
            Self::System => "system",
        }
    }
}

/// Takes apart what follows the moment. An iPhone lets the app speak in the name of the chat, or of whom it speaks of.
pub(super) fn read<'t>(rest: &'t str, chat: Option<&str>) -> Content<'t> {
    let (author, said) = split_author(rest);
    let Some(author) = author else {
        return Content {
            kind: Kind::System,
            author: None,
            text: said.trim_start_matches(is_mark).to_owned(),
            attachment: None,
            edited: false,
        };
    };
    let (said, suffix) = split_suffix(said);
    let edited = matches!(suffix, Some(Suffix::Edited));
    let (attachment, text) = match suffix {
        Some(Suffix::Attached(file)) => (Some(file), said.trim_matches(is_mark)),
        _ => split_file(said),
    };
    let marked = said.starts_with(MARK);
    let plain = text.trim_start_matches(is_mark);
    let (first_line, below) = plain.split_once('\n').unwrap_or((plain, ""));
    let (kind, text) = if attachment.is_some() {
        (Kind::Media, plain)
    } else if is_left_out(first_line, marked) {
        (Kind::Media, below)
    } else if marked && (chat == Some(author) || plain.starts_with(author)) {
        (Kind::System, plain)
    } else {
        (Kind::Message, plain)
    };
    Content {
        kind,
        author: Some(author),
        text: text.to_owned(),
        attachment,
        edited,
    }
}

impl Content<'_> {
    /// What kind it is shown as, and whether it was edited. A key is made of what [`read`] says, which must stay; what further
    /// languages write is known here, and its words stay in the text.
    pub(super) fn shown(&self, rest: &str) -> (Kind, bool) {
        let (_, said) = split_author(rest);
        let marked = self.author.is_some() && said.starts_with(MARK);
        let kind = match self.kind {
            // Android names documents so, with nothing behind the point; keys know such a message as a text.
            Kind::Message if is_attached(&self.text) => Kind::Media,
            Kind::Message | Kind::System
                if self.author.is_some()
                    && is_instead_of_file(&self.text)
                    && (marked || self.text.starts_with('<')) =>
            {
                Kind::Media
            }
            Kind::Message if is_deleted(&self.text) || (marked && is_note(&self.text)) => {
                Kind::System
            }
            kind => kind,
        };
        (kind, self.edited || is_edited(&self.text))
    }
}

/// Whether a text is what the app writes instead of a file, in a language that keys of messages know nothing of.
pub(super) fn is_instead_of_file(text: &str) -> bool {
    let words = text.trim().to_lowercase();
    if words.contains('\n') || words.chars().count() > 60 {
        return false;
    }
    let angled = words.strip_prefix('<').and_then(|it| it.strip_suffix('>'));
    match angled {
        Some(inside) => !inside.contains(['<', '/', '=']) && contains_any(inside, &MEDIA_WORDS),
        None => words.split(' ').count() <= 5 && contains_any(&words, &LEFT_OUT_ELSEWHERE),
    }
}

/// Whether the first line is the name of a file with the words that say so.
fn is_attached(text: &str) -> bool {
    let first_line = text.lines().next().unwrap_or_default().to_lowercase();
    let first_line = first_line.trim_matches(is_mark);
    let mut attached = ATTACHED.iter();
    first_line.starts_with("doc-") && attached.any(|words| first_line.ends_with(words))
}

fn contains_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

fn is_edited(text: &str) -> bool {
    let inside = text
        .strip_suffix('>')
        .and_then(|open| open.rsplit_once('<'));
    inside.is_some_and(|(_, inside)| {
        EDITED.contains(&inside.trim_end_matches('.').to_lowercase().as_str())
    })
}

fn is_deleted(text: &str) -> bool {
    let words = text.trim_end_matches(['.', '。']).to_lowercase();
    DELETED.contains(&words.as_str())
}

/// Whether words that an iPhone marks as the app's are a note. What somebody shares is marked too: a place, a poll.
fn is_note(text: &str) -> bool {
    !text.contains('\n') && !text.contains("://")
}

/// Who wrote it, and the rest. Without an author it is a line of the app.
pub(super) fn split_author(rest: &str) -> (Option<&str>, &str) {
    let first_line = rest.split('\n').next().unwrap_or_default();
    let end = first_line
        .find(": ")
        .or_else(|| first_line.ends_with(':').then(|| first_line.len() - 1));
    let Some(end) = end else {
        return (None, rest);
    };
    let (author, said) = (first_line.get(..end), rest.get(end + 1..));
    let author = author
        .unwrap_or_default()
        .trim_matches(|c: char| is_mark(c) || c == ' ');
    // The app quotes what it speaks of: a new subject may hold a colon, the name of a person holds no quotes.
    if author.is_empty() || author.contains(['"', '“', '”', '„', '«', '»']) {
        return (None, rest);
    }
    let said = said.unwrap_or_default();
    (Some(author), said.strip_prefix(' ').unwrap_or(said))
}

/// What the app adds behind a text.
enum Suffix<'t> {
    Attached(&'t str),
    Edited,
}

/// Cuts off `<attached: name.jpg>` and `<This message was edited>`, which follow U+200E.
fn split_suffix(said: &str) -> (&str, Option<Suffix<'_>>) {
    let found = said
        .strip_suffix('>')
        .and_then(|open| open.rsplit_once("\u{200e}<"))
        .filter(|(_, inside)| !inside.contains(['\n', '<']));
    let Some((before, inside)) = found else {
        return (said, None);
    };
    let suffix = match inside.rsplit_once(": ") {
        Some((_, file)) if is_file_name(file) => Suffix::Attached(file.trim_matches(is_mark)),
        _ if before.trim_matches(is_mark).is_empty() => return (said, None),
        _ => Suffix::Edited,
    };
    (before.trim_end_matches([' ', MARK]), Some(suffix))
}

/// Cuts off `IMG-20231231-WA0001.jpg (file attached)` and leaves the words below it.
fn split_file(said: &str) -> (Option<&str>, &str) {
    let (first_line, below) = said.split_once('\n').unwrap_or((said, ""));
    let Some((file, note)) = first_line.rsplit_once(" (") else {
        return (None, said);
    };
    let name = file.trim_matches(is_mark);
    let noted = ATTACHED.iter().any(|attached| {
        attached.strip_prefix('(') == Some(note.to_lowercase().trim_matches(is_mark))
    });
    let attached = noted || (file.starts_with(MARK) && note.ends_with(')'));
    if is_file_name(name) && attached {
        (Some(name), below)
    } else {
        (None, said)
    }
}

fn is_file_name(text: &str) -> bool {
    let ending = text.trim_matches(is_mark).rsplit_once('.');
    ending.is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Whether the words say that a file was left out of the export.
fn is_left_out(text: &str, marked: bool) -> bool {
    let words = text.to_lowercase();
    let last = words.rsplit(' ').next().unwrap_or_default();
    NOT_EXPORTED.contains(&words.as_str())
        || (marked && words.split(' ').count() <= 4 && LEFT_OUT.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> (Kind, Option<&str>, String, Option<&str>, bool) {
        let content = read(rest, Some("Family"));
        (
            content.kind,
            content.author,
            content.text,
            content.attachment,
            content.edited,
        )
    }

    #[test]
    fn words_of_people_are_kept_as_they_are() {
        for (rest, author, text) in [
            ("Anna: hello: you", "Anna", "hello: you"),
            (
                "Anna: one\ntwo: three\n\nfour ",
                "Anna",
                "one\ntwo: three\n\nfour ",
            ),
            (
                "\u{202a}+49 170 0000000\u{202c}: hi",
                "+49 170 0000000",
                "hi",
            ),
            ("Anna:", "Anna", ""),
            ("Anna: \nbelow", "Anna", "\nbelow"),
            ("Anna: <b>bold</b>", "Anna", "<b>bold</b>"),
            ("Anna: <html>", "Anna", "<html>"),
            ("Anna: notes.txt (old)", "Anna", "notes.txt (old)"),
            ("Anna: all omitted", "Anna", "all omitted"),
            (
                "Anna: \u{200e}You deleted this message.",
                "Anna",
                "You deleted this message.",
            ),
        ] {
            let expected = (Kind::Message, Some(author), text.to_owned(), None, false);
            assert_eq!(parse(rest), expected, "{rest}");
        }
    }

    #[test]
    fn files_are_told_apart_from_words() {
        for (rest, text, file) in [
            ("Anna: <Media omitted>", "", None),
            ("Anna: <Medien ausgeschlossen>", "", None),
            ("Anna: <Media omitted>\nThe cake", "The cake", None),
            ("Anna: \u{200e}image omitted", "", None),
            ("Anna: \u{200e}Bild weggelassen", "", None),
            (
                "Anna: IMG-20231231-WA0001.jpg (file attached)\nThe cake",
                "The cake",
                Some("IMG-20231231-WA0001.jpg"),
            ),
            (
                "Anna: \u{200e}PTT-20231231-WA0002.opus (in some language)",
                "",
                Some("PTT-20231231-WA0002.opus"),
            ),
            (
                "Anna: \u{200e}<attached: 00000012-PHOTO-2023-12-31-21-15-07.jpg>",
                "",
                Some("00000012-PHOTO-2023-12-31-21-15-07.jpg"),
            ),
            (
                "Anna: menu.pdf • \u{200e}3 pages \u{200e}<attached: 00000021-menu.pdf>",
                "menu.pdf • \u{200e}3 pages",
                Some("00000021-menu.pdf"),
            ),
        ] {
            let expected = (Kind::Media, Some("Anna"), text.to_owned(), file, false);
            assert_eq!(parse(rest), expected, "{rest}");
        }
    }

    #[test]
    fn what_the_app_notes_is_told_apart_from_what_people_write() {
        for (rest, author, text) in [
            ("Anna added Ben", None, "Anna added Ben"),
            (
                "Anna changed the subject from “A: b” to “C”",
                None,
                "Anna changed the subject from “A: b” to “C”",
            ),
            (
                "Family: \u{200e}Anna created this group",
                Some("Family"),
                "Anna created this group",
            ),
            (
                "Anna: \u{200e}Anna changed this group's icon",
                Some("Anna"),
                "Anna changed this group's icon",
            ),
        ] {
            let expected = (Kind::System, author, text.to_owned(), None, false);
            assert_eq!(parse(rest), expected, "{rest}");
        }
    }

    #[test]
    fn further_languages_tell_what_kind_it_is_and_keep_their_words() {
        for (rest, kind, edited) in [
            ("A: <미디어 파일 생략>", Kind::Media, false),
            ("A: <メディアは含まれていません>", Kind::Media, false),
            ("A: <省略多媒体文件>", Kind::Media, false),
            ("A: <تم استبعاد الوسائط>", Kind::Media, false),
            ("A: <המדיה לא נכללה>", Kind::Media, false),
            ("A: <Média vynechána>", Kind::Media, false),
            ("A: <media type=a>", Kind::Message, false),
            ("A: <b>media</b>", Kind::Message, false),
            ("A: \u{200e}画像は省略されました", Kind::Media, false),
            ("A: \u{200e}이미지 생략됨", Kind::Media, false),
            ("A: 생략", Kind::Message, false),
            (
                "A: \u{200e}Messages and calls are end-to-end encrypted.",
                Kind::System,
                false,
            ),
            (
                "A: \u{200e}Missed voice call, \u{200e}Tap to call back",
                Kind::System,
                false,
            ),
            (
                "A: \u{200e}POLL:\nWhere?\n\u{200e}OPTION: Here (1 vote)",
                Kind::Message,
                false,
            ),
            (
                "A: \u{200e}Location: https://maps.google.com/?q=1,2",
                Kind::Message,
                false,
            ),
            ("A: Diese Nachricht wurde gelöscht.", Kind::System, false),
            ("A: 삭제된 메시지입니다.", Kind::System, false),
            ("A: at ten <This message was edited>", Kind::Message, true),
            ("A: at ten <b>", Kind::Message, false),
        ] {
            assert_eq!(
                read(rest, Some("Family")).shown(rest),
                (kind, edited),
                "{rest}"
            );
        }
    }

    #[test]
    fn an_edited_text_is_the_text_and_a_flag() {
        let expected = (Kind::Message, Some("Anna"), "at ten".to_owned(), None, true);
        assert_eq!(
            parse("Anna: at ten \u{200e}<This message was edited>"),
            expected
        );
        assert_eq!(
            parse("Anna: at ten \u{200e}<Diese Nachricht wurde bearbeitet.>"),
            expected
        );
    }
}
