//! Between our types and SQLite's: ids as 16 bytes, digests as 32, times as integers, words as text.

use portcullis_base::{Digest, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Row, RowIndex};
use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer as _};

/// An id's number as it is stored: big-endian, so that byte order is number order.
pub(crate) fn id(number: u128) -> [u8; 16] {
    number.to_be_bytes()
}

/// Reads an id's number.
pub(crate) fn id_at<I: RowIndex>(row: &Row<'_>, at: I) -> rusqlite::Result<u128> {
    row.get::<_, [u8; 16]>(at).map(u128::from_be_bytes)
}

/// Reads an id's number that may be absent.
pub(crate) fn opt_id_at<I: RowIndex>(row: &Row<'_>, at: I) -> rusqlite::Result<Option<u128>> {
    let bytes: Option<[u8; 16]> = row.get(at)?;
    Ok(bytes.map(u128::from_be_bytes))
}

/// Reads a digest.
pub(crate) fn digest_at<I: RowIndex>(row: &Row<'_>, at: I) -> rusqlite::Result<Digest> {
    row.get::<_, [u8; 32]>(at).map(Digest::from_bytes)
}

/// Reads a time.
pub(crate) fn time_at<I: RowIndex>(row: &Row<'_>, at: I) -> rusqlite::Result<Timestamp> {
    row.get(at).map(Timestamp::from_micros)
}

/// Reads a time that may be absent.
pub(crate) fn opt_time_at<I: RowIndex>(row: &Row<'_>, at: I) -> rusqlite::Result<Option<Timestamp>> {
    let micros: Option<i64> = row.get(at)?;
    Ok(micros.map(Timestamp::from_micros))
}

/// Reads a yes or no. Any other number is what no writer of ours leaves.
pub(crate) fn flag_at(row: &Row<'_>, at: usize) -> rusqlite::Result<bool> {
    match row.get(at)? {
        0i64 => Ok(false),
        1 => Ok(true),
        other => Err(rusqlite::Error::IntegralValueOutOfRange(at, other)),
    }
}

fn unreadable(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}

fn unwritable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// A value as JSON text.
pub(crate) fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(unwritable)
}

/// Reads JSON text.
pub(crate) fn json_at<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    serde_json::from_str(&text).map_err(|error| unreadable(at, error))
}

/// Reads JSON text that may be absent.
pub(crate) fn opt_json_at<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(at)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| unreadable(at, error))).transpose()
}

/// The bare word of a unit variant, such as `pending`.
pub(crate) fn word<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    let quoted = json(value)?;
    Ok(quoted.trim_matches('"').to_owned())
}

/// Reads the word of a unit variant.
pub(crate) fn word_at<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    of_word(&text).map_err(|error| unreadable(at, error))
}

/// Reads the word of a unit variant that may be absent.
pub(crate) fn opt_word_at<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(at)?;
    text.map(|text| of_word(&text).map_err(|error| unreadable(at, error))).transpose()
}

fn of_word<T: DeserializeOwned>(text: &str) -> Result<T, serde::de::value::Error> {
    T::deserialize(text.into_deserializer())
}
