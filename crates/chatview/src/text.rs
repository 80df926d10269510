//! Text as rows of a terminal: escaped, measured in columns, and broken between words.

use kendall_chatcli::shown;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a tab is drawn as.
const TAB: &str = "    ";

/// The longest grapheme cluster that is drawn whole, in bytes; of a longer one only the first character.
const CLUSTER: usize = 64;

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// A grapheme cluster as it may be drawn.
pub(crate) fn drawn(cluster: &str) -> String {
    match cluster {
        "\t" => TAB.to_owned(),
        _ if cluster.len() > CLUSTER => shown(&cluster[..cluster.chars().next().map_or(0, char::len_utf8)]),
        _ => shown(cluster),
    }
}

/// A text of a peer on one row: control characters as their numbers, line breaks as spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.lines().map(escaped).collect::<Vec<_>>().join(" ")
}

/// A line without a line break, each cluster as it may be drawn.
fn escaped(line: &str) -> String {
    line.graphemes(true).map(drawn).collect()
}

/// The rows of a text, each at most `columns` wide. A word that is too long for a row is broken.
pub(crate) fn rows(text: &str, columns: usize) -> Vec<String> {
    // `lines` would leave out the empty line after a last line break.
    text.split('\n').flat_map(|line| wrapped(&escaped(line), columns.max(1))).collect()
}

fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for cluster in line.graphemes(true).map(|cluster| narrowed(cluster, columns)) {
        let wide = cluster.width();
        if used + wide > columns && used > 0 {
            // The row ends at its last space; what follows the space begins the next one.
            let rest = match row.rfind(' ') {
                Some(space) if cluster != " " => row.split_off(space + 1),
                _ => String::new(),
            };
            rows.push(row.trim_end_matches(' ').to_owned());
            row = rest;
            used = width(&row);
            if cluster == " " {
                continue;
            }
        }
        row.push_str(cluster);
        used += wide;
    }
    rows.push(row);
    rows
}

/// A cluster, or its first character where marks make it wider than a row.
fn narrowed(cluster: &str, columns: usize) -> &str {
    match cluster.chars().next() {
        Some(first) if cluster.width() > columns.max(2) => &cluster[..first.len_utf8()],
        _ => cluster,
    }
}

/// The beginning of a text that fits, with `…` where something is left out.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 0);
    for cluster in text.graphemes(true) {
        used += cluster.width();
        if used >= columns {
            break;
        }
        short.push_str(cluster);
    }
    if columns > 0 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_break_between_words_and_within_long_ones() {
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(rows("日本語の話", 5), ["日本", "語の", "話"]);
        assert_eq!(rows("a\n\nb\n", 5), ["a", "", "b", ""]);
        assert_eq!(rows("0\u{1134b}\u{1122c}", 1), ["0"], "marks that have a width");
        assert_eq!(rows("x\ty\u{1b}[2J", 40), ["x    y\\u{1b}[2J"]);
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!((cut("lunch?", 6), cut("lunch?", 5)), ("lunch?".into(), "lunc…".into()));
        assert_eq!((cut("日本語", 4), cut("ab", 1), cut("ab", 0)), ("日…".into(), "…".into(), String::new()));
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_allowed_and_none_can_move_the_cursor(text: String, columns in 1_usize..60) {
            for row in rows(&text, columns) {
                // A wide character cannot be broken.
                prop_assert!(width(&row) <= columns.max(2), "{row:?} has more than {columns} columns");
                prop_assert!(!row.chars().any(char::is_control));
            }
            prop_assert!(width(&cut(&one_line(&text), columns)) <= columns);
        }

        #[test]
        fn rows_lose_nothing_but_spaces(text in "[a-z日\n ]{0,200}", columns in 1_usize..60) {
            let letters = |text: &str| text.chars().filter(|it| !it.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&rows(&text, columns).concat()), letters(&text));
        }
    }
}
