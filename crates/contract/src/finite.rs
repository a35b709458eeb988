//! A serializer that writes nothing and finds what JSON cannot hold exactly: serde_json would turn
//! NaN into `null` and an integer key into text without a word.

use std::fmt::{self, Display};

use serde::ser::{self, Impossible, Serialize};

/// The largest integer every JSON reader keeps exactly.
const EXACT: u64 = 1 << 53;

#[derive(Debug)]
pub(crate) struct InexactNumber(String);

impl Display for InexactNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InexactNumber {}

impl ser::Error for InexactNumber {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Walks `value`.
pub(crate) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), InexactNumber> {
    value.serialize(Walk)
}

struct Walk;

fn integer(magnitude: u128) -> Result<(), InexactNumber> {
    if magnitude > u128::from(EXACT) {
        return Err(InexactNumber(format!("the integer {magnitude} is beyond 2^53; encode it as a string")));
    }
    Ok(())
}

macro_rules! scalars {
    ($($method:ident: $type:ty => $check:expr;)*) => {
        $(fn $method(self, value: $type) -> Result<(), InexactNumber> {
            let check: fn($type) -> Result<(), InexactNumber> = $check;
            check(value)
        })*
    };
}

impl ser::Serializer for Walk {
    type Ok = ();
    type Error = InexactNumber;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    scalars! {
        serialize_bool: bool => |_| Ok(());
        serialize_i8: i8 => |_| Ok(());
        serialize_i16: i16 => |_| Ok(());
        serialize_i32: i32 => |_| Ok(());
        serialize_i64: i64 => |v| integer(u128::from(v.unsigned_abs()));
        serialize_i128: i128 => |v| integer(v.unsigned_abs());
        serialize_u8: u8 => |_| Ok(());
        serialize_u16: u16 => |_| Ok(());
        serialize_u32: u32 => |_| Ok(());
        serialize_u64: u64 => |v| integer(u128::from(v));
        serialize_u128: u128 => integer;
        serialize_f32: f32 => |v| finite(f64::from(v));
        serialize_f64: f64 => finite;
        serialize_char: char => |_| Ok(());
        serialize_str: &str => |_| Ok(());
        serialize_bytes: &[u8] => |_| Ok(());
    }

    fn serialize_none(self) -> Result<(), InexactNumber> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), InexactNumber> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), InexactNumber> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), InexactNumber> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), InexactNumber> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), InexactNumber> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), InexactNumber> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, InexactNumber> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, InexactNumber> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, InexactNumber> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, InexactNumber> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, InexactNumber> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, InexactNumber> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, InexactNumber> {
        Ok(self)
    }
}

fn finite(value: f64) -> Result<(), InexactNumber> {
    if value.is_finite() { Ok(()) } else { Err(InexactNumber(format!("{value} is not a JSON number"))) }
}

/// Accepts text keys only.
struct Key;

macro_rules! refused_keys {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, _: $type) -> Result<(), InexactNumber> { Err(not_text()) })*
    };
}

fn not_text() -> InexactNumber {
    InexactNumber("a map key is not a string".to_owned())
}

impl ser::Serializer for Key {
    type Ok = ();
    type Error = InexactNumber;
    type SerializeSeq = Impossible<(), InexactNumber>;
    type SerializeTuple = Impossible<(), InexactNumber>;
    type SerializeTupleStruct = Impossible<(), InexactNumber>;
    type SerializeTupleVariant = Impossible<(), InexactNumber>;
    type SerializeMap = Impossible<(), InexactNumber>;
    type SerializeStruct = Impossible<(), InexactNumber>;
    type SerializeStructVariant = Impossible<(), InexactNumber>;

    refused_keys! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_bytes: &[u8],
    }

    fn serialize_str(self, _: &str) -> Result<(), InexactNumber> {
        Ok(())
    }

    fn serialize_char(self, _: char) -> Result<(), InexactNumber> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), InexactNumber> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), InexactNumber> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), InexactNumber> {
        Err(not_text())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), InexactNumber> {
        Err(not_text())
    }

    fn serialize_unit(self) -> Result<(), InexactNumber> {
        Err(not_text())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), InexactNumber> {
        Err(not_text())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), InexactNumber> {
        Err(not_text())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, InexactNumber> {
        Err(not_text())
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, InexactNumber> {
        Err(not_text())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, InexactNumber> {
        Err(not_text())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, InexactNumber> {
        Err(not_text())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, InexactNumber> {
        Err(not_text())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, InexactNumber> {
        Err(not_text())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, InexactNumber> {
        Err(not_text())
    }
}

macro_rules! parts {
    ($($trait:ident::$method:ident,)*) => {
        $(impl ser::$trait for Walk {
            type Ok = ();
            type Error = InexactNumber;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), InexactNumber> {
                check(value)
            }

            fn end(self) -> Result<(), InexactNumber> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

macro_rules! fields {
    ($($trait:ident,)*) => {
        $(impl ser::$trait for Walk {
            type Ok = ();
            type Error = InexactNumber;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), InexactNumber> {
                check(value)
            }

            fn end(self) -> Result<(), InexactNumber> {
                Ok(())
            }
        })*
    };
}

fields! { SerializeStruct, SerializeStructVariant, }

impl ser::SerializeMap for Walk {
    type Ok = ();
    type Error = InexactNumber;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), InexactNumber> {
        key.serialize(Key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), InexactNumber> {
        check(value)
    }

    fn end(self) -> Result<(), InexactNumber> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::check;

    #[test]
    fn l05_what_json_cannot_hold_exactly_is_found() {
        assert!(check(&serde_json::json!({"a": [1, 2.5, "x", null]})).is_ok());
        assert!(check(&Some(1u64 << 53)).is_ok());
        assert!(check(&vec![(1u64 << 53) + 1]).is_err());
        assert!(check(&(0, f64::NAN)).is_err());
        assert!(check(&BTreeMap::from([(1u8, "one")])).is_err());
        assert!(check(&BTreeMap::from([("one", f32::INFINITY)])).is_err());
    }
}
