//! What authorization details need of the walker besides [`contract::document`]: texts that keep their path, and lists that
//! may not be empty.

use std::collections::HashSet;

use contract::document::{Mistakes, Node};

use super::Named;

pub(super) fn text(node: &Node, mistakes: &mut Mistakes) -> Option<Named> {
    Some(Named {
        path: node.path.clone(),
        text: node.text(mistakes)?,
    })
}

pub(super) fn elements(node: &Node, mistakes: &mut Mistakes) -> Option<Vec<Node>> {
    let elements = node.array(mistakes)?;
    if elements.is_empty() {
        mistakes.add(
            &node.path,
            "is empty, and an empty selection grants nothing; name something or leave it out",
        );
        return None;
    }
    Some(elements)
}

/// An array of at least one text, none of them twice.
pub(super) fn texts(node: &Node, mistakes: &mut Mistakes) -> Option<Vec<Named>> {
    let mut texts: Vec<Named> = Vec::new();
    let mut known = HashSet::new();
    for element in elements(node, mistakes)? {
        let text = text(&element, mistakes)?;
        if known.insert(text.text.clone()) {
            texts.push(text);
        } else {
            mistakes.add(&text.path, format!("names {:?} a second time", text.text));
        }
    }
    Some(texts)
}
