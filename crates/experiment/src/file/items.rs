//! The items of a TOML table and their positions in the file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key, where it stands, and its value.
pub(super) type Item<'a> = (&'a str, Range<usize>, &'a Spanned<DeValue<'a>>);

/// Where the value of a key in a table stands.
pub(super) fn value_in(table: &Spanned<DeValue<'_>>, key: &str) -> Option<Range<usize>> {
    let items = in_order(table.get_ref().as_table()?);
    items.into_iter().find(|item| item.0 == key).map(|item| item.2.span())
}

/// The items of a table in the order in which they stand in the file.
pub(super) fn in_order<'t>(table: &'t DeTable<'_>) -> Vec<Item<'t>> {
    let mut items: Vec<Item<'t>> =
        table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value)).collect();
    items.sort_by_key(|item| item.1.start);
    items
}
