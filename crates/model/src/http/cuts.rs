//! However the bytes of an answer are portioned, it is the same answer (a property of every adapter). And answers that
//! come slowly.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{HttpLimits, Reader};
use crate::http::read_answer;
use crate::{Answer, Delta};

/// The bytes of pieces that each come after some seconds.
pub(crate) fn slowly<const N: usize>(pieces: [(u64, String); N]) -> BoxStream<'static, Result<Bytes, String>> {
    let comes = |(after, piece)| async move {
        tokio::time::sleep(Duration::from_secs(after)).await;
        Ok(Bytes::from(piece))
    };
    stream::iter(pieces).then(comes).boxed()
}

/// Reads an answer within the default limits.
pub(crate) async fn read(source: BoxStream<'_, Result<Bytes, String>>, reader: impl Reader + 'static) -> Answer {
    read_answer(source, HttpLimits::default(), Box::new(reader), &|_| {}).await.expect("an answer")
}

/// Reads `text` in one piece and in many cuttings, and wants equal answers and equal deltas.
pub(crate) fn same_however_cut<R: Reader + 'static>(text: &str, reader: impl Fn() -> R) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let read = |pieces: Vec<Bytes>| {
        let heard = std::sync::Mutex::new(Vec::new());
        let source = stream::iter(pieces.into_iter().map(Ok::<_, String>));
        let answer = runtime.block_on(read_answer(source, HttpLimits::default(), Box::new(reader()), &|delta| {
            // How often bytes come is all that may differ.
            if delta != Delta::Alive {
                heard.lock().expect("lock").push(format!("{delta:?}"));
            }
        }));
        (answer.expect("an answer"), heard.into_inner().expect("lock"))
    };
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let whole = read(vec![bytes.clone()]);
    let each: Vec<Bytes> = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();
    assert_eq!(read(each), whole, "byte by byte");
    let cuts = prop::collection::btree_set(0..bytes.len(), 0..40);
    let test = |cuts: std::collections::BTreeSet<usize>| {
        let ends = cuts.iter().copied().chain([bytes.len()]);
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let pieces = starts.zip(ends).map(|(start, end)| bytes.slice(start..end));
        prop_assert_eq!(read(pieces.collect()), whole.clone());
        Ok(())
    };
    TestRunner::default().run(&cuts, test).expect("the same answer");
}
