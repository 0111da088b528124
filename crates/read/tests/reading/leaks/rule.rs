//! A random rule on rows, and which records meet it.

use serde_json::{Value, json};
use testkit::Dice;

use super::scene::{IDS, MOMENTS, Members, WORDS};

pub(crate) struct Rule {
    pub(crate) field: &'static str,
    pub(crate) document: Value,
    test: Test,
}

enum Test {
    OneOf(Vec<Value>),
    /// From the first on, before the second.
    Range(Option<Value>, Option<Value>),
    Prefix(&'static str),
    Word(&'static str),
}

impl Rule {
    /// No rules, or a few.
    pub(crate) fn some(dice: &mut Dice, stream: &str) -> Vec<Self> {
        let many = if dice.once_in(2) {
            0
        } else {
            dice.below(2) + 1
        };
        (0..many).map(|_| Self::random(dice, stream)).collect()
    }

    fn random(dice: &mut Dice, stream: &str) -> Self {
        if stream == "parts" {
            return Self::one_of(dice, "pnote", &IDS.map(Value::from));
        }
        match dice.below(8) {
            0 => Self::one_of(dice, "eamount", &[0, 1, 2, 3, 4].map(Value::from)),
            1 => Self::one_of(dice, "gflag", &[true, false].map(Value::from)),
            2 => Self::one_of(dice, "dmoment", &MOMENTS.map(Value::from)),
            3 => Self::range(dice, "eamount", &[1, 2, 3].map(Value::from)),
            6 => {
                let beginning = dice.pick(&["t", "tea", "milk", "x"]);
                Self {
                    field: "ftag",
                    document: json!({"field": "ftag", "prefix": beginning}),
                    test: Test::Prefix(beginning),
                }
            }
            7 => {
                let (field, word) = (dice.pick(&["btitle", "cbody"]), dice.pick(&WORDS));
                Self {
                    field,
                    document: json!({"field": field, "word": word}),
                    test: Test::Word(word),
                }
            }
            4 => Self::range(dice, "dmoment", &MOMENTS.map(Value::from)),
            _ => Self::one_of(dice, "ftag", &WORDS.map(Value::from)),
        }
    }

    fn one_of(dice: &mut Dice, field: &'static str, values: &[Value]) -> Self {
        let chosen: Vec<usize> = dice.some(&(0..values.len()).collect::<Vec<_>>());
        let chosen: Vec<Value> = chosen.into_iter().map(|at| values[at].clone()).collect();
        let texts: Vec<String> = chosen.iter().map(text).collect();
        let document = match texts.as_slice() {
            [only] if dice.once_in(2) => json!({"field": field, "eq": only}),
            texts => json!({"field": field, "in": texts}),
        };
        Self {
            field,
            document,
            test: Test::OneOf(chosen),
        }
    }

    fn range(dice: &mut Dice, field: &'static str, values: &[Value]) -> Self {
        let at = dice.below(values.len() - 1);
        let low = (!dice.once_in(3)).then(|| values[at].clone());
        let high = (low.is_none() || dice.once_in(2)).then(|| values[at + 1].clone());
        let mut document = json!({"field": field});
        for (operator, bound) in [("gte", &low), ("lt", &high)] {
            if let Some(bound) = bound {
                document[operator] = text(bound).into();
            }
        }
        Self {
            field,
            document,
            test: Test::Range(low, high),
        }
    }

    pub(crate) fn holds(&self, members: &Members) -> bool {
        let value = members.iter().find(|(name, _)| *name == self.field);
        let Some((_, value)) = value else {
            return false;
        };
        match &self.test {
            Test::OneOf(values) => values.contains(value),
            Test::Prefix(beginning) => text(value).starts_with(beginning),
            Test::Word(word) => text(value).split(' ').any(|one| one == *word),
            Test::Range(low, high) => {
                // Numbers here have one digit and moments one form, so texts are in the order of what they say.
                let value = text(value);
                low.as_ref().is_none_or(|low| value >= text(low))
                    && high.as_ref().is_none_or(|high| value < text(high))
            }
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
