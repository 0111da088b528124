//! The elements of a JSON document that is too large to hold: of the list that it is, or of lists that are members of the object
//! that it is.

use std::io::BufRead;

use super::outline::Outline;
use crate::error::InputError;

pub(super) struct JsonPieces<R> {
    outline: Outline<R>,
    /// The members whose elements are wanted. Without any, an object is one piece.
    members: &'static [&'static str],
    state: State,
    /// The member that is read, or was read last.
    member: Option<&'static str>,
    line: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    /// In the list that the document is.
    List,
    /// Between members of the object that the document is.
    Object,
    /// In a list that is a member.
    Member,
    /// Behind an object that was taken whole.
    End,
}

impl<R: BufRead> JsonPieces<R> {
    pub(super) fn new(reader: R, members: &'static [&'static str]) -> Self {
        Self {
            outline: Outline::new(reader),
            members,
            state: State::Begin,
            member: None,
            line: 1,
        }
    }

    /// The member in whose list the piece stands that was taken.
    pub(super) fn member(&self) -> Option<&'static str> {
        self.member
    }

    /// The line at which the piece that was taken begins.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn taken(&self) -> &[u8] {
        self.outline.taken()
    }

    /// Takes the next piece. Says whether it fits the limit; nothing at the end.
    pub(super) fn take(&mut self, limit: usize) -> Result<Option<bool>, InputError> {
        loop {
            match self.state {
                State::Begin if self.outline.enter(b'[')? => self.state = State::List,
                State::Begin if !self.members.is_empty() && self.outline.enter(b'{')? => {
                    self.state = State::Object;
                }
                State::Begin => {
                    self.state = State::End;
                    return self.piece(limit);
                }
                State::List | State::Member if self.outline.element()? => return self.piece(limit),
                State::Member => self.state = State::Object,
                State::Object => match self.outline.member()? {
                    None => return self.ended(),
                    Some(name) => {
                        let known = self.members.iter().find(|known| **known == name);
                        if known.is_some() && self.outline.enter(b'[')? {
                            (self.state, self.member) = (State::Member, known.copied());
                        } else {
                            self.outline.skip()?;
                        }
                    }
                },
                State::List => return self.ended(),
                State::End => return Ok(None),
            }
        }
    }

    fn piece(&mut self, limit: usize) -> Result<Option<bool>, InputError> {
        self.line = self.outline.line();
        self.outline.take(limit).map(Some)
    }

    fn ended(&mut self) -> Result<Option<bool>, InputError> {
        self.state = State::End;
        match self.outline.peek()? {
            None => Ok(None),
            Some(_) => Err(self.outline.broken("something follows the end of the list")),
        }
    }
}
