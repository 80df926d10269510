//! Tables in Markdown.

use kendall_analysis::Table;

/// A table in Markdown, whose first columns are words.
pub(super) fn write_table(page: &mut String, table: &Table, words: usize) {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    page.push_str(&line(&table.head));
    let rule = |column: usize| if column < words { "---" } else { "---:" }.to_owned();
    page.push_str(&line(&(0..table.head.len()).map(rule).collect::<Vec<_>>()));
    table.rows.iter().for_each(|row| page.push_str(&line(row)));
}
