//! Writes data as JSON in the canonical form of RFC 8785, in one pass and without making a tree of values first.
//!
//! The members of an object are sorted by the UTF-16 code units of their names. They are written in the order in which
//! they come, and moved once all of them are there, unless they came in order.

use std::{
    cell::{Cell, RefCell},
    cmp::Ordering,
    io::{self, Write},
    ops::Range,
};

use serde::Serialize;
use serde_json::{
    Serializer,
    ser::{CompactFormatter, Formatter},
    value::RawValue,
};

use super::json::Output;

/// The largest integer that all programs read in the same way: RFC 8785 treats numbers as doubles.
const MAX_INTEGER: u64 = (1 << 53) - 1;

thread_local! {
    // True while this thread writes this form. A serializer does not say which form it writes.
    static IS_WRITTEN: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if this thread is writing the canonical form, so that a part that knows its own can take that.
pub(crate) fn is_written_here() -> bool {
    IS_WRITTEN.get()
}

/// Appends the canonical form of `data` to `out`.
///
/// # Errors
///
/// If the data contains an integer beyond 2⁵³, which has no canonical form. `out` then ends in a part of it.
pub(crate) fn write<T: Serialize + ?Sized>(data: &T, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let output = RefCell::new(std::mem::take(out));
    let form = CanonicalFormatter { output: &output, members: Vec::new(), objects: Vec::new() };
    let written = {
        let _writing = Writing::begin();
        data.serialize(&mut Serializer::with_formatter(Output(&output), form))
    };
    *out = output.into_inner();
    written
}

/// Returns the canonical form of `data`.
///
/// # Errors
///
/// As [`write()`].
pub(crate) fn text<T: Serialize + ?Sized>(data: &T) -> Result<Box<RawValue>, serde_json::Error> {
    let mut out = Vec::with_capacity(1024);
    write(data, &mut out)?;
    RawValue::from_string(String::from_utf8(out).expect("JSON is UTF-8"))
}

/// Marks this thread as writing the form, until it is dropped: also if a panic ends the writing.
struct Writing {
    before: bool,
}

impl Writing {
    fn begin() -> Self {
        Self { before: IS_WRITTEN.replace(true) }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        IS_WRITTEN.set(self.before);
    }
}

/// A formatter that sorts the members of objects.
struct CanonicalFormatter<'o> {
    output: &'o RefCell<Vec<u8>>,
    /// The members of the objects that are being written, those of the innermost object last.
    members: Vec<Member>,
    /// The numbers of members before those of each of these objects.
    objects: Vec<usize>,
}

/// The place of a member in the output.
struct Member {
    /// The name, in quotes.
    name: Range<usize>,
    /// The end of the value.
    end: usize,
    /// True if the order of the name's bytes is that of its UTF-16 code units: all are ASCII, and none is escaped.
    is_plain: bool,
}

impl CanonicalFormatter<'_> {
    fn position(&self) -> usize {
        self.output.borrow().len()
    }
}

impl Formatter for CanonicalFormatter<'_> {
    fn write_i64<W: ?Sized + Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        check_size(value.unsigned_abs())?;
        CompactFormatter.write_i64(writer, value)
    }

    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        check_size(value)?;
        CompactFormatter.write_u64(writer, value)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(&serde_json_canonicalizer::to_vec(&value)?)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.objects.push(self.members.len());
        CompactFormatter.begin_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        CompactFormatter.begin_object_key(writer, first)?;
        let begin = self.position();
        self.members.push(Member { name: begin..begin, end: begin, is_plain: true });
        Ok(())
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        let output = self.output.borrow();
        let member = self.members.last_mut().expect("a member has begun");
        member.name.end = output.len();
        member.is_plain = output[member.name.clone()].iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        Ok(())
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        let end = self.position();
        self.members.last_mut().expect("a member has begun").end = end;
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let first = self.objects.pop().expect("an object has begun");
        sort(&mut self.output.borrow_mut(), &mut self.members[first..]);
        self.members.truncate(first);
        CompactFormatter.end_object(writer)
    }
}

fn check_size(integer: u64) -> io::Result<()> {
    match integer <= MAX_INTEGER {
        true => Ok(()),
        false => Err(io::Error::other("an integer is too large for the canonical form")),
    }
}

/// Moves the members of an object, which are at the end of the output, into the order of their names.
fn sort(output: &mut Vec<u8>, members: &mut [Member]) {
    let in_order = |one: &Member, other: &Member| order(output, one, other);
    if members.is_sorted_by(|one, other| in_order(one, other) != Ordering::Greater) {
        return;
    }
    let (begin, end) = (members[0].name.start, output.len());
    members.sort_by(in_order);
    for (place, member) in members.iter().enumerate() {
        if place > 0 {
            output.push(b',');
        }
        output.extend_from_within(member.name.start..member.end);
    }
    output.copy_within(end.., begin);
    output.truncate(end);
}

/// Returns the order of two members: that of the UTF-16 code units of their names.
fn order(output: &[u8], one: &Member, other: &Member) -> Ordering {
    let name = |member: &Member| &output[member.name.clone()];
    if one.is_plain && other.is_plain {
        let without_last_quote = |member: &Member| &output[member.name.start..member.name.end - 1];
        return without_last_quote(one).cmp(without_last_quote(other));
    }
    let text = |member| serde_json::from_slice::<String>(name(member)).expect("a name was just written");
    text(one).encode_utf16().cmp(text(other).encode_utf16())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn written<T: Serialize + ?Sized>(data: &T) -> String {
        let mut out = b"before ".to_vec();
        write(data, &mut out).unwrap();
        String::from_utf8(out).unwrap().strip_prefix("before ").expect("it is appended").to_owned()
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_form_is_that_of_the_library(value in any_value()) {
            prop_assert_eq!(written(&value).into_bytes(), serde_json_canonicalizer::to_vec(&value).unwrap());
        }
    }

    #[derive(Serialize)]
    struct Sample<'a> {
        zone: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u8>,
        #[serde(flatten)]
        inner: Inner,
        by_number: BTreeMap<i32, Kind>,
        kinds: Vec<Kind>,
    }

    #[derive(Serialize)]
    struct Inner {
        version: u32,
        key: (),
    }

    #[derive(Serialize)]
    enum Kind {
        Unit,
        Newtype(i64),
        Tuple(char, bool),
        Struct { z: f32, a: [u8; 2] },
    }

    #[test]
    fn typed_data_is_written_like_the_values_that_it_becomes() {
        let kinds = || vec![Kind::Unit, Kind::Newtype(-7), Kind::Tuple('"', true), Kind::Struct { z: 0.5, a: [1, 2] }];
        let by_number = [(-3, Kind::Unit), (10, Kind::Newtype(0)), (9, Kind::Unit)].into_iter().collect();
        let inner = Inner { version: 3, key: () };
        let sample = Sample { zone: "Europe/Berlin", absent: None, inner, by_number, kinds: kinds() };
        assert_eq!(written(&sample), written(&serde_json::to_value(&sample).unwrap()));
        assert_eq!(
            written(&sample),
            r#"{"by_number":{"-3":"Unit","10":{"Newtype":0},"9":"Unit"},"key":null,"kinds":["Unit",{"Newtype":-7},{"Tuple":["\"",true]},{"Struct":{"a":[1,2],"z":0.5}}],"version":3,"zone":"Europe/Berlin"}"#
        );
    }

    #[test]
    fn the_form_matches_the_examples_of_the_rfc() {
        // RFC 8785, 3.2.2 and 3.2.3.
        let written = |json: &str| written(&serde_json::from_str::<Value>(json).unwrap());
        let serialized = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let canonical = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(written(serialized), canonical);
        let sorted = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let names = ["Carriage Return", "One", "Control", "Latin", "Euro Sign", "Emoji", "Hebrew"];
        let written = written(sorted);
        let places: Vec<_> = names.iter().map(|name| written.find(name).unwrap()).collect();
        assert!(places.is_sorted(), "keys are in order of their UTF-16 code units: {written}");
    }

    #[test]
    fn integers_that_doubles_cannot_hold_have_no_canonical_form() {
        let refuses = |value: Value| write(&value, &mut Vec::new()).is_err();
        assert!(!refuses(json!({ "n": [(1_u64 << 53) - 1, -3, 1e300, -((1_i64 << 53) - 1)] })));
        assert!(refuses(json!({ "n": [1_u64 << 53] })) && refuses(json!(i64::MIN)) && refuses(json!(u64::MAX)));
    }

    #[test]
    fn numbers_are_written_as_in_the_rfc() {
        // RFC 8785, appendix B.
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(written(&f64::from_bits(bits)), text);
        }
    }
}
