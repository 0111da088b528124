//! Reads a stream's `query` member: what may be asked of it beyond plain reading.

use std::collections::BTreeMap;

use super::outline::Outline;
use super::parse::objects;
use super::validate::FieldUse;
use super::{
    Aggregations, EXPAND_DEFAULT_LIMIT, EXPAND_MAX_LIMIT, Expand, FilterOperator, QueryCapabilities,
};
use crate::document::{Mistakes, Object, did_you_mean, step};
use crate::id::FieldName;
use crate::names::Named as _;

pub(super) fn read(
    stream: &mut Object,
    outline: &Outline,
    relationships: &[String],
    mistakes: &mut Mistakes,
) -> QueryCapabilities {
    let Some(mut query) = stream.object("query", mistakes) else {
        return QueryCapabilities::default();
    };
    let range_filters = read_range_filters(&mut query, outline, mistakes);
    let expand = read_expand(&mut query, relationships, mistakes);
    let (lexical_fields, semantic_fields) = read_search(&mut query, outline, mistakes);
    let aggregations = read_aggregations(&mut query, outline, mistakes);
    query.finish_with_extensions(mistakes);
    QueryCapabilities {
        range_filters,
        expand,
        lexical_fields,
        semantic_fields,
        aggregations,
    }
}

fn read_range_filters(
    query: &mut Object,
    outline: &Outline,
    mistakes: &mut Mistakes,
) -> BTreeMap<FieldName, Vec<FilterOperator>> {
    let object = query.object("range_filters", mistakes);
    let mut filters = BTreeMap::new();
    for (name, node) in object.map(|object| object.members()).unwrap_or_default() {
        let mut operators = Vec::new();
        for item in node.filled_array(mistakes).unwrap_or_default() {
            if let Some(operator) = item.choice(FilterOperator::NAMED, mistakes) {
                let rule = "operators must be unique";
                mistakes.push_unique(&mut operators, operator, &item.path, rule);
            }
        }
        let used = if operators.contains(&FilterOperator::Contains) {
            FieldUse::Contains
        } else {
            FieldUse::Range
        };
        let field = outline.field_named(&name, &node.path, used, mistakes);
        if used == FieldUse::Contains && operators.len() > 1 {
            let rule = "an array takes contains and no other operator";
            mistakes.add(&node.path, rule);
        }
        if let Some(field) = field {
            filters.insert(field, operators);
        }
    }
    filters
}

fn read_expand(
    query: &mut Object,
    relationships: &[String],
    mistakes: &mut Mistakes,
) -> Vec<Expand> {
    let mut expands: Vec<Expand> = Vec::new();
    for mut object in objects(query, "expand", mistakes) {
        let name = object.required_text("name", mistakes);
        let default_limit = object.positive("default_limit", mistakes);
        let max_limit = object.positive("max_limit", mistakes);
        let path = object.path.clone();
        object.finish_with_extensions(mistakes);
        let max_limit = max_limit.unwrap_or(EXPAND_MAX_LIMIT);
        if let Some(default_limit) = default_limit
            && default_limit > max_limit
        {
            let rule =
                format!("must not be larger than max_limit ({max_limit}), found {default_limit}");
            mistakes.add(step(&path, "default_limit"), rule);
        }
        let Some(name) = name else { continue };
        if !relationships.contains(&name) {
            let hint = did_you_mean(&name, relationships.iter().map(String::as_str));
            let rule =
                format!("must name one of this stream's relationships; there is no {name:?}{hint}");
            mistakes.add(step(&path, "name"), rule);
        }
        if expands.iter().any(|expand| expand.name == name) {
            mistakes.add(
                step(&path, "name"),
                format!("a relationship is listed once, {name} is repeated"),
            );
        }
        let default_limit = default_limit.unwrap_or(EXPAND_DEFAULT_LIMIT.min(max_limit));
        expands.push(Expand {
            name,
            default_limit,
            max_limit,
        });
    }
    expands
}

fn read_search(
    query: &mut Object,
    outline: &Outline,
    mistakes: &mut Mistakes,
) -> (Vec<FieldName>, Vec<FieldName>) {
    let Some(mut search) = query.object("search", mistakes) else {
        return (Vec::new(), Vec::new());
    };
    let lexical = read_list(
        &mut search,
        "lexical_fields",
        FieldUse::Search,
        outline,
        mistakes,
    );
    let semantic = read_list(
        &mut search,
        "semantic_fields",
        FieldUse::Search,
        outline,
        mistakes,
    );
    search.finish_with_extensions(mistakes);
    (lexical, semantic)
}

fn read_aggregations(
    query: &mut Object,
    outline: &Outline,
    mistakes: &mut Mistakes,
) -> Option<Aggregations> {
    let mut object = query.object("aggregations", mistakes)?;
    let count = object.boolean("count", mistakes).unwrap_or(false);
    let mut list =
        |name, used, mistakes: &mut Mistakes| read_list(&mut object, name, used, outline, mistakes);
    let aggregations = Aggregations {
        count,
        sum: list("sum", FieldUse::Sum, mistakes),
        min: list("min", FieldUse::Extreme, mistakes),
        max: list("max", FieldUse::Extreme, mistakes),
        group_by: list("group_by", FieldUse::Group, mistakes),
        group_by_time: list("group_by_time", FieldUse::GroupByTime, mistakes),
        count_distinct: list("count_distinct", FieldUse::Group, mistakes),
    };
    object.finish_with_extensions(mistakes);
    Some(aggregations)
}

/// An optional array of fields. Unlike a view's, it may be empty.
fn read_list(
    object: &mut Object,
    name: &'static str,
    used: FieldUse,
    outline: &Outline,
    mistakes: &mut Mistakes,
) -> Vec<FieldName> {
    let items = object.array(name, mistakes);
    outline.fields(&items.unwrap_or_default(), used, mistakes)
}
