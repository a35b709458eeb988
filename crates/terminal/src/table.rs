//! Columns of text, in as much room as there is.

use crate::rows;

/// Columns without lines, for people and for `awk`.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header.to_vec());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The same cut to the width of the terminal it goes to: the widest cells give way, except in `whole` columns. Elsewhere
/// nothing is cut.
pub fn table_within(columns: Option<usize>, whole: &[usize], header: &[&str], mut rows: Vec<Vec<String>>) -> String {
    const LEAST: usize = 6;
    const BETWEEN: usize = 2;
    let Some(columns) = columns else { return table(header, rows) };
    let wide = |text: &str| text.chars().map(rows::width).sum::<usize>();
    let mut widths: Vec<usize> = header.iter().map(|name| wide(name)).collect();
    for (at, cell) in rows.iter().flat_map(|row| row.iter().enumerate()) {
        widths[at] = widths[at].max(wide(cell));
    }
    let before = widths.clone();
    while widths.iter().sum::<usize>() + BETWEEN * (widths.len() - 1) > columns {
        let least = |at: usize| LEAST.max(wide(header[at]));
        let gives = (0..widths.len()).filter(|at| !whole.contains(at) && widths[*at] > least(*at));
        let Some(at) = gives.max_by_key(|at| widths[*at]) else { break };
        widths[at] -= 1;
    }
    for row in &mut rows {
        for (at, cell) in row.iter_mut().enumerate().filter(|(at, _)| widths[*at] < before[*at]) {
            // The end of a path tells most of it.
            let cut = if cell.starts_with('/') { rows::ending } else { rows::beginning };
            *cell = cut(cell, widths[at]);
        }
    }
    table(header, rows)
}
