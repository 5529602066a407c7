//! A JSON text with the places of its parts, so that it can be compared part by part without being parsed.
//!
//! The places are noted while the library writes the text, by its formatter.

use std::{
    cell::Cell,
    io::{self, Write},
    ops::Range,
};

use serde::Serialize;
use serde_json::{
    Serializer,
    ser::{CompactFormatter, Formatter},
};

use super::json::Json;

/// A JSON text with the places of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Indexed {
    json: Json,
    /// The members and elements, each before those that it contains.
    places: Vec<Place>,
}

/// The place of a member of an object or an element of a list.
#[derive(Clone, Debug, Default)]
struct Place {
    /// The name of a member, in quotes. Empty for an element.
    name: Range<usize>,
    value: Range<usize>,
    /// The number of members and elements in the value, including those within others.
    contains: usize,
}

impl Indexed {
    /// Writes data as JSON.
    ///
    /// # Panics
    ///
    /// As [`Json::of`].
    pub(crate) fn of<T: Serialize + ?Sized>(data: &T) -> Self {
        let (text, places) = write(data);
        Self { json: Json::written(text), places }
    }

    /// Writes an object that has the members of `head` and, as the last one, a value that is written already. The name must
    /// need no escapes.
    ///
    /// # Panics
    ///
    /// As [`Json::of`], and if `head` is not an object with members.
    pub(crate) fn of_object<T: Serialize + ?Sized>(head: &T, name: &str, last: Part<'_>) -> Self {
        let (mut text, mut places) = write(head);
        assert_eq!(text.pop().filter(|_| !places.is_empty()), Some('}'), "an object with members");
        text.push(',');
        let begin = text.len();
        text.extend(["\"", name, "\""]);
        let end = text.len();
        text.push(':');
        let value = text.len();
        text.push_str(last.text);
        places.push(Place { name: begin..end, value: value..text.len(), contains: last.places.len() });
        text.push('}');
        let old_value = last.text.as_ptr().addr() - last.source.as_ptr().addr();
        let moved = |range: &Range<usize>| range.start - old_value + value..range.end - old_value + value;
        places.extend(last.places.iter().map(|place| Place {
            name: moved(&place.name),
            value: moved(&place.value),
            contains: place.contains,
        }));
        Self { json: Json::written(text), places }
    }

    /// Returns the same without room for further places, to be kept.
    pub(crate) fn without_room(mut self) -> Self {
        self.places.shrink_to_fit();
        self
    }

    /// Returns JSON `null`.
    pub(crate) fn null() -> Self {
        Self { json: Json::null(), places: Vec::new() }
    }

    /// Returns the text.
    pub(crate) fn json(&self) -> &Json {
        &self.json
    }

    /// Returns the whole.
    pub(crate) fn whole(&self) -> Part<'_> {
        let text = self.json.text();
        Part { source: text, text, places: &self.places }
    }
}

fn write<T: Serialize + ?Sized>(data: &T) -> (String, Vec<Place>) {
    let (length, mut places) = (Cell::new(0), Vec::with_capacity(512));
    let output = Measured { bytes: Vec::with_capacity(8192), length: &length };
    let formatter = IndexFormatter { length: &length, places: &mut places, open: Vec::with_capacity(16) };
    let mut serializer = Serializer::with_formatter(output, formatter);
    data.serialize(&mut serializer).expect("stored data is plain data with text keys");
    let text = String::from_utf8(serializer.into_inner().bytes).expect("JSON is UTF-8");
    (text, places)
}

/// A value in a text.
#[derive(Clone, Copy)]
pub(crate) struct Part<'t> {
    /// The whole text.
    source: &'t str,
    text: &'t str,
    /// The places of the members and elements in the value.
    places: &'t [Place],
}

/// The kinds of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    List,
    /// A text, a number, `true`, `false` or `null`.
    Leaf,
}

impl<'t> Part<'t> {
    /// Returns the text of the value.
    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the kind of the value.
    pub(crate) fn kind(&self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            _ => Kind::Leaf,
        }
    }

    /// Returns the members or elements, each with its name in quotes, which is empty for an element.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'t str, Part<'t>)> + use<'t> {
        let (source, mut rest) = (self.source, self.places);
        std::iter::from_fn(move || {
            let (Place { name, value, contains }, following) = rest.split_first()?;
            let (places, others) = following.split_at(*contains);
            rest = others;
            Some((&source[name.clone()], Part { source, text: &source[value.clone()], places }))
        })
    }

    /// Returns the last member or element, with its name as above.
    pub(crate) fn last_part(&self) -> Option<(&'t str, Part<'t>)> {
        self.parts().last()
    }
}

/// An output whose length its formatter knows.
struct Measured<'o> {
    bytes: Vec<u8>,
    length: &'o Cell<usize>,
}

impl Write for Measured<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.length.set(self.bytes.len());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A formatter that notes the places of members and elements.
struct IndexFormatter<'o> {
    /// The length of what is written.
    length: &'o Cell<usize>,
    places: &'o mut Vec<Place>,
    /// The positions in `places` of the members and elements that are being written.
    open: Vec<usize>,
}

impl IndexFormatter<'_> {
    fn begin(&mut self) {
        let at = self.length.get();
        self.open.push(self.places.len());
        self.places.push(Place { name: at..at, value: at..at, contains: 0 });
    }

    fn end(&mut self) {
        let place = self.open.pop().expect("a part has begun");
        let contains = self.places.len() - place - 1;
        let place = &mut self.places[place];
        (place.value.end, place.contains) = (self.length.get(), contains);
    }

    /// Returns the member that is being written.
    fn member(&mut self) -> &mut Place {
        let member = *self.open.last().expect("a member has begun");
        &mut self.places[member]
    }
}

impl Formatter for IndexFormatter<'_> {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        CompactFormatter.begin_array_value(writer, first)?;
        self.begin();
        Ok(())
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.end();
        Ok(())
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        CompactFormatter.begin_object_key(writer, first)?;
        self.begin();
        Ok(())
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.member().name.end = self.length.get();
        Ok(())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        CompactFormatter.begin_object_value(writer)?;
        self.member().value.start = self.length.get();
        Ok(())
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.end();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Puts a value together from its parts.
    fn put_together(part: Part<'_>) -> Value {
        match part.kind() {
            Kind::Leaf => serde_json::from_str(part.text()).unwrap(),
            Kind::List => part.parts().map(|(_, part)| put_together(part)).collect(),
            Kind::Object => part
                .parts()
                .map(|(name, part)| (serde_json::from_str::<String>(name).unwrap(), put_together(part)))
                .collect::<Value>(),
        }
    }

    #[derive(Serialize)]
    enum Kinds {
        Struct { a: u8, list: Vec<(u8, bool)> },
        Newtype(Value),
    }

    #[test]
    fn a_part_can_be_the_last_member_of_another_object() {
        let value = json!({ "a": 1, "z": { "list": [1, { "b": "ü" }], "text": "t" } });
        let earlier = Indexed::of(&value);
        for part in [earlier.whole(), earlier.whole().last_part().unwrap().1, earlier.whole().parts().next().unwrap().1]
        {
            let whole = Indexed::of_object(&json!({ "head": ["h"], "longer": true }), "state", part);
            let state = put_together(part);
            let expected = json!({ "head": ["h"], "longer": true, "state": state });
            assert_eq!(whole.json().read::<Value>().unwrap(), expected);
            assert_eq!(put_together(whole.whole()), expected);
        }
    }

    #[test]
    fn a_value_is_the_sum_of_its_parts() {
        let value = json!({
            "a": "quoted \" and \\", "b\"": [1, "]", { "c": null }, []], "": {}, "d": true, "e": -1.5e300, "ü": ["ä"],
        });
        let kinds = [Kinds::Struct { a: 1, list: vec![(1, true), (2, false)] }, Kinds::Newtype(value)];
        let indexed = Indexed::of(&kinds);
        assert_eq!(indexed.json().text(), serde_json::to_string(&kinds).unwrap());
        assert_eq!(put_together(indexed.whole()), serde_json::to_value(&kinds).unwrap());
        assert_eq!(put_together(Indexed::null().whole()), Value::Null);
    }
}
