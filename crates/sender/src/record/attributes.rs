//! Keys with values, walked where the caller has them.

use std::fmt;

/// A value, borrowed from the caller.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Value<'a> {
    /// nothing
    Empty,
    /// text
    Str(&'a str),
    /// true or false
    Bool(bool),
    /// a whole number
    Int(i64),
    /// any other number
    Double(f64),
    /// bytes that are not text
    Bytes(&'a [u8]),
    /// text that is made while it is written. It is made twice; should the second differ in length from the
    /// first, it is cut, or filled up with spaces.
    Display(&'a dyn fmt::Display),
    /// several values
    List(&'a dyn Values),
    /// keys with values
    Map(&'a dyn Attributes),
}

/// Keys with values: `[("user", 7.into()), ("path", "/".into())]`, or any type that can show its own.
pub trait Attributes {
    /// Shows each in order, and the same ones each time it is asked.
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>));
}

/// Several values of one list.
pub trait Values {
    /// Shows each in order, and the same ones each time it is asked.
    fn each(&self, visit: &mut dyn FnMut(Value<'_>));
}

/// No attributes, events or links.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAttributes;

impl Attributes for NoAttributes {
    fn each(&self, _visit: &mut dyn FnMut(&str, Value<'_>)) {}
}

impl<const N: usize> Attributes for [(&str, Value<'_>); N] {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        self.as_slice().each(visit);
    }
}

impl Attributes for &[(&str, Value<'_>)] {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for (key, value) in *self {
            visit(key, *value);
        }
    }
}

impl Attributes for Vec<(String, String)> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for (key, value) in self {
            visit(key, Value::Str(value));
        }
    }
}

impl Values for &[Value<'_>] {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        self.iter().copied().for_each(visit);
    }
}

impl<const N: usize> Values for [Value<'_>; N] {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        self.iter().copied().for_each(visit);
    }
}

impl Values for &[&str] {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        self.iter().copied().map(Value::Str).for_each(visit);
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Str(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Value::Str(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(bytes)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Double(value)
    }
}

impl From<f32> for Value<'_> {
    fn from(value: f32) -> Self {
        Value::Double(f64::from(value))
    }
}

macro_rules! whole {
    ($($number:ty)*) => {$(
        impl From<$number> for Value<'_> {
            fn from(value: $number) -> Self {
                Value::Int(i64::from(value))
            }
        }
    )*};
}

whole!(i8 i16 i32 i64 u8 u16 u32);
