//! The known word that somebody may have meant.

/// How much of a word is compared: words that people type are short.
const COMPARED: usize = 64;

/// The known word with the fewest edits to `word`, the first of them where several are as near; `None` if none is known.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known.into_iter().min_by_key(|candidate| edits(word, candidate))
}

/// Levenshtein distance.
#[must_use]
pub fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(COMPARED).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(COMPARED).enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_the_one_with_the_fewest_edits() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(nearest("efect", ["action", "effect", "expires_at"]), Some("effect"));
        assert_eq!(nearest("paths", ["path", "match"]), Some("path"));
        assert_eq!(nearest("paths", []), None);
    }
}
