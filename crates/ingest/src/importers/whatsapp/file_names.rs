//! What `WhatsApp` calls the file of a chat: the name of the chat, and words of the phone's language before it or behind it.

/// The words before the name of the chat, and those behind it.
const FILE_NAMES: [(&str, &str); 58] = [
    ("WhatsApp Chat with ", ""),
    ("WhatsApp Chat - ", ""),
    ("WhatsApp Chat mit ", ""),
    ("WhatsApp-Chat mit ", ""),
    ("WhatsApp Chat met ", ""),
    ("WhatsApp Chat kay ", ""),
    ("WhatsApp-chat met ", ""),
    ("WhatsApp-chatt med ", ""),
    ("WhatsApp chat med ", ""),
    ("WhatsApp-samtale med ", ""),
    ("WhatsApp-keskustelu henkilön ", " kanssa"),
    ("WhatsApp Gesprek met ", ""),
    ("Chat de WhatsApp con ", ""),
    ("Chat WhatsApp con ", ""),
    ("Chat di WhatsApp con ", ""),
    ("Xat de WhatsApp amb ", ""),
    ("Conversa do WhatsApp com ", ""),
    ("Conversa no WhatsApp com ", ""),
    ("Discussion WhatsApp avec ", ""),
    ("Conversație WhatsApp cu ", ""),
    ("Chat WhatsApp dengan ", ""),
    ("Sembang WhatsApp dengan ", ""),
    ("Chat WhatsApp s uživatelem ", ""),
    ("WhatsApp chat s používateľom ", ""),
    ("WhatsApp csevegés vele ", ""),
    ("WhatsApp razgovor s ", ""),
    ("WhatsApp klepet z ", ""),
    ("WhatsApp pokalbis su ", ""),
    ("WhatsApp sarakste ar ", ""),
    ("WhatsApp'i vestlus kontaktiga ", ""),
    ("Biseda me ", " në WhatsApp"),
    ("Soga za WhatsApp na ", ""),
    ("Czat WhatsApp z ", ""),
    ("Чат WhatsApp с ", ""),
    ("WhatsApp Чат с ", ""),
    ("Бесіда WhatsApp з ", ""),
    ("WhatsApp разговор со ", ""),
    ("WhatsApp Ћаскање са ", ""),
    ("Συνομιλία WhatsApp με ", ""),
    ("Trò chuyện WhatsApp với ", ""),
    ("แชท WhatsApp กับ ", ""),
    ("دردشة واتساب مع ", ""),
    ("گفتگوی WhatsApp با ", ""),
    ("צ'אט WhatsApp עם ", ""),
    ("", " ile WhatsApp Sohbeti"),
    ("", " ilə WhatsApp Söhbəti"),
    ("", " bilan WhatsApp chati"),
    ("", "님과의 WhatsApp 대화"),
    ("", "とのWhatsAppチャット"),
    ("WhatsApp 与 ", " 的对话"),
    ("WhatsApp 與 ", " 的對話"),
    ("", " के साथ WhatsApp चैट"),
    ("", " सोबतच्या WhatsApp गप्पा"),
    ("", " এর সাথে WhatsApp চ্যাট"),
    ("", " સાથેની WhatsApp વાત"),
    ("", " உடன் WhatsApp உரையாடல்"),
    ("", " తో WhatsApp సంభాషణ"),
    ("", " کے ساتھ WhatsApp بات چیت"),
];

/// The name of the chat, if the app named the file. A number that a browser put behind it, because the file was there already, is no part.
pub(super) fn named_by_app(name: &str) -> Option<&str> {
    let name = without_number(name);
    let mut known = FILE_NAMES.iter();
    known.find_map(|(before, behind)| name.strip_prefix(before)?.strip_suffix(behind))
}

/// Without ` (1)` or `(1)` at the end.
fn without_number(name: &str) -> &str {
    let cut = name
        .strip_suffix(')')
        .and_then(|open| open.rsplit_once('('))
        .filter(|(_, number)| {
            matches!(number.len(), 1 | 2) && number.bytes().all(|b| b.is_ascii_digit())
        });
    cut.map_or(name, |(before, _)| before.trim_end())
}
