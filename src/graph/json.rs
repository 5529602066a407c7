//! JSON that is kept as text: it is written and stored as it is, and no tree of values is made of it.

use std::{
    cell::RefCell,
    fmt,
    io::{self, Write},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser};
use serde_json::{Value, value::RawValue};

/// A JSON text. Copies share it.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// Writes data as JSON.
    ///
    /// # Panics
    ///
    /// If the data cannot be written as JSON, such as a map whose keys are not texts. No stored data is of that kind.
    pub fn of<T: Serialize + ?Sized>(data: &T) -> Self {
        Self(serde_json::to_string(data).expect("stored data is plain data with text keys").into())
    }

    /// Returns JSON `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Takes a text that the library for JSON wrote.
    pub(crate) fn written(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Reads the data.
    ///
    /// # Errors
    ///
    /// If the text is of another kind of data.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Two texts are equal if their values are, whatever the order of the members.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        let values = || Ok::<_, serde_json::Error>((self.read::<Value>()?, other.read::<Value>()?));
        self.text() == other.text() || values().is_ok_and(|(one, other)| one == other)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::of(&value)
    }
}

/// An output of the library's serializer that its formatter can read as well.
pub(crate) struct Output<'o>(pub(crate) &'o RefCell<Vec<u8>>);

impl Write for Output<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    impl Json {
        /// Returns the tree of values that the text stands for.
        pub(crate) fn value(&self) -> Value {
            self.read().unwrap()
        }
    }

    #[test]
    fn the_order_of_members_makes_no_difference() {
        let [one, two, other] = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"a":2,"b":1}"#]
            .map(|text| serde_json::from_str::<Json>(text).unwrap());
        assert_eq!(one, two);
        assert_ne!(one, other);
    }

    #[test]
    fn a_text_within_data_is_written_as_it_is_and_read_from_values() {
        let json = Json::of(&json!({ "b": 1, "a": [2.5] }));
        assert_eq!(serde_json::to_string(&[&json]).unwrap(), format!("[{}]", json.text()));
        let read: Vec<Json> = serde_json::from_value(json!([{ "b": 1, "a": [2.5] }])).unwrap();
        assert_eq!(read, [json]);
    }
}
