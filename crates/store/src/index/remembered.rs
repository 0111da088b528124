//! Answers that hold until something is written or declared.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::head::Head;
use super::sources::Sources;

/// How many answers are kept; a store has far fewer streams and grants.
const KEPT: usize = 256;

pub(super) struct Remembered<K, V>(Mutex<State<K, V>>);

struct State<K, V> {
    /// The head they were made at, with its mark: a history that was rewritten has the same versions again. And the sources.
    as_of: Option<(Head, Arc<Sources>)>,
    known: HashMap<K, V>,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::new(State {
            as_of: None,
            known: HashMap::new(),
        }))
    }
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    pub(super) fn get(&self, head: &Head, sources: &Arc<Sources>, key: &K) -> Option<V> {
        self.at(head, sources).known.get(key).cloned()
    }

    pub(super) fn keep(&self, head: &Head, sources: &Arc<Sources>, key: K, value: V) {
        self.at(head, sources).known.insert(key, value);
    }

    /// The answers, forgotten if anything changed since.
    fn at(&self, head: &Head, sources: &Arc<Sources>) -> MutexGuard<'_, State<K, V>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let as_of = state.as_of.as_ref();
        let holds = as_of.is_some_and(|(at, of)| at == head && Arc::ptr_eq(of, sources));
        if !holds || state.known.len() >= KEPT {
            state.known.clear();
            state.as_of = Some((head.clone(), Arc::clone(sources)));
        }
        state
    }
}
