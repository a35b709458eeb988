//! The text model gives back every byte.

use portcullis_base::LineRange;
use portcullis_sandbox::{LineEnding, TextFile};
use proptest::prelude::*;

fn text(bytes: &[u8]) -> TextFile {
    TextFile::parse(bytes.to_vec()).expect("text")
}

#[test]
fn lines_and_line_ends_are_counted_as_the_contract_does() {
    let cases: [(&str, u64, LineEnding); 7] = [
        ("", 0, LineEnding::None),
        ("a", 1, LineEnding::None),
        ("a\n", 1, LineEnding::Lf),
        ("a\n\n", 2, LineEnding::Lf),
        ("a\r\nb", 2, LineEnding::CrLf),
        ("a\r\nb\n", 2, LineEnding::Mixed),
        ("a\rb", 1, LineEnding::None),
    ];
    for (content, lines, ending) in cases {
        let file = text(content.as_bytes());
        assert_eq!((file.line_count(), file.line_ending()), (lines, ending), "{content:?}");
    }
}

#[test]
fn pages_and_tails_keep_exact_bytes() {
    let file = text(b"one\r\ntwo\nthree");
    assert_eq!(file.lines(LineRange { first: 1, last: 2 }), "one\r\ntwo\n");
    assert_eq!(file.lines(LineRange { first: 3, last: 99 }), "three");
    assert_eq!(file.lines(LineRange { first: 4, last: 9 }), "");
    assert_eq!(file.lines(LineRange { first: 0, last: u64::MAX }), "one\r\ntwo\nthree");
    assert_eq!(file.tail(2), LineRange { first: 2, last: 3 });
    assert_eq!(file.tail(0).len(), 0);
    assert_eq!(file.tail(9), LineRange { first: 1, last: 3 });
    assert!(text(b"").tail(3).is_empty());
}

#[test]
fn a_byte_order_mark_is_kept_apart() {
    let file = text(b"\xef\xbb\xbfa\n");
    assert!(file.has_bom());
    assert_eq!(file.text(), "a\n");
    assert_eq!(file.with_text("b\n".to_owned()).to_bytes(), b"\xef\xbb\xbfb\n");
}

#[test]
fn what_is_no_text_says_what_it_is() {
    let error = TextFile::parse(b"\x89PNG\r\n\x1a\n\0".to_vec()).expect_err("an image");
    assert_eq!((error.mime, error.size), (Some("image/png"), 9));
    assert_eq!(TextFile::parse(b"a\0".to_vec()).expect_err("binary").mime, None);
}

proptest! {
    #[test]
    fn every_byte_comes_back_whole_and_by_pages(content in "\u{feff}?([a-cé\u{feff}]|\r|\n|\r\n){0,40}", page in 1u64..6) {
        let file = text(content.as_bytes());
        prop_assert_eq!(file.to_bytes(), content.as_bytes());
        let mut joined = String::new();
        let mut first = 1;
        while first <= file.line_count() {
            joined.push_str(file.lines(LineRange { first, last: first + page - 1 }));
            first += page;
        }
        prop_assert_eq!(joined, file.text());
        prop_assert_eq!(file.line_count() as usize, file.text().split_inclusive('\n').count());
        for (at, _) in file.text().char_indices() {
            let naive = file.text()[..at].matches('\n').count() as u64 + 1;
            prop_assert_eq!(file.line_at(at), naive);
        }
    }
}
