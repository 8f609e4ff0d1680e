//! How our types stand in columns, and how they are read back.

use std::str::FromStr;

use model::{Digest, OsText, Timestamp};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::Serialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use super::error::StoreError;

/// A column that holds a type's text form.
#[derive(Debug)]
pub(super) struct Value<T>(pub(super) T);

impl<T: FromStr<Err: std::error::Error + Send + Sync + 'static>> FromSql for Value<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(FromSqlError::other)
    }
}

/// A column that holds a type's JSON form.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_slice(value.as_bytes()?).map(Self).map_err(FromSqlError::other)
    }
}

/// A column that holds one of the words that a unit variant has in JSON.
#[derive(Debug)]
pub(super) struct Word<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word: StrDeserializer<'_, serde::de::value::Error> = value.as_str()?.into_deserializer();
        T::deserialize(word).map(Self).map_err(FromSqlError::other)
    }
}

/// A column that holds bytes: a digest, or a name as the kernel takes it.
#[derive(Debug)]
pub(super) struct Raw<T>(pub(super) T);

impl FromSql for Raw<Digest> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(|bytes| Self(Digest::from_bytes(bytes)))
    }
}

impl FromSql for Raw<OsText> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        OsText::new(value.as_blob()?).map(Self).map_err(FromSqlError::other)
    }
}

/// A column that holds a number without a sign, bit for bit.
#[derive(Debug)]
pub(super) struct Unsigned(pub(super) u64);

impl FromSql for Unsigned {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(|number| Self(number.cast_unsigned()))
    }
}

impl FromSql for Raw<Timestamp> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Unsigned::column_result(value).map(|number| Self(Timestamp::from_nanos(number.0)))
    }
}

/// Returns the column for a moment.
pub(super) fn time(time: Timestamp) -> i64 {
    time.as_nanos().cast_signed()
}

/// Returns the JSON form of one of our types for a column.
pub(super) fn json(what: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| StoreError::Value { what, source: source.into() })
}
