//! Paths, comparisons and conversions give what `pkg/ottl` gives.

use super::{Machine, compare::compare};
use crate::memory::Memory;
use crate::ottl::field::Field;
use crate::ottl::program::Comparison;
use crate::testing::{Plain, list, map, path, plain, store, with_record};
use crate::value::{Failure, Value};

fn get(machine: &mut Machine<'_>, keys: &[Plain]) -> Result<Plain, Failure> {
    let path = path(&mut machine.memory, Field::Attributes, keys);
    machine.get(&path).map(|value| plain(&machine.memory, value))
}

fn set(attributes: &Plain, keys: &[Plain], value: Plain) -> (bool, Plain) {
    let (result, left) = with_record(attributes, |machine| {
        let path = path(&mut machine.memory, Field::Attributes, keys);
        let value = store(&mut machine.memory, &value);
        machine.set(&path, value)
    });
    (result.is_ok(), left)
}

#[test]
fn a_missing_key_is_nil_and_a_bad_index_fails() {
    let attributes = map([
        ("m", map([("k", 1.into()), ("l", list(["x".into(), 2.into()]))])),
        ("s", "text".into()),
        ("e", Plain::Nil),
    ]);
    let ((), left) = with_record(&attributes, |machine| {
        assert_eq!(get(machine, &["s".into()]), Ok("text".into()));
        assert_eq!(get(machine, &["m".into(), "k".into()]), Ok(1.into()));
        assert_eq!(get(machine, &["m".into(), "l".into(), 1.into()]), Ok(2.into()));
        assert_eq!(get(machine, &["none".into()]), Ok(Plain::Nil));
        assert_eq!(get(machine, &["none".into(), "k".into()]), Ok(Plain::Nil));
        assert_eq!(get(machine, &["m".into(), "none".into(), "k".into()]), Ok(Plain::Nil));
        assert!(get(machine, &["m".into(), "l".into(), 2.into()]).is_err());
        assert!(get(machine, &["m".into(), "l".into(), (-1).into()]).is_err());
        assert!(get(machine, &["m".into(), "l".into(), "k".into()]).is_err());
        assert!(get(machine, &["m".into(), 0.into()]).is_err());
        assert!(get(machine, &["s".into(), "k".into()]).is_err());
        assert!(get(machine, &["e".into(), "k".into()]).is_err());
        assert!(get(machine, &[0.into()]).is_err());
    });
    assert_eq!(left, attributes);
}

#[test]
fn set_keeps_the_place_of_a_key_and_appends_new_ones() {
    let attributes = map([("a", 1.into()), ("b", 2.into())]);
    assert_eq!(
        set(&attributes, &["a".into()], "x".into()),
        (true, map([("a", "x".into()), ("b", 2.into())]))
    );
    assert_eq!(
        set(&attributes, &["c".into()], Plain::Nil),
        (true, map([("a", 1.into()), ("b", 2.into()), ("c", Plain::Nil)]))
    );
}

#[test]
fn set_makes_maps_and_lists_of_empty_values() {
    let attributes = map([("e", Plain::Nil), ("l", list([1.into(), 2.into()]))]);
    let (done, left) = set(&attributes, &["e".into(), "k".into(), 2.into()], 7.into());
    let inner = map([("k", list([Plain::Nil, Plain::Nil, 7.into()]))]);
    assert_eq!((done, left), (true, map([("e", inner), ("l", list([1.into(), 2.into()]))])));

    let (done, left) = set(&attributes, &["l".into(), 0.into()], map([("x", 1.5.into())]));
    let changed = list([map([("x", 1.5.into())]), 2.into()]);
    assert_eq!((done, left), (true, map([("e", Plain::Nil), ("l", changed)])));

    assert_eq!(set(&attributes, &["l".into(), 2.into()], 1.into()), (false, attributes.clone()));
    assert_eq!(set(&attributes, &["l".into(), "k".into()], 1.into()), (false, attributes.clone()));
    assert_eq!(set(&attributes, &["e".into(), i64::MAX.into()], 1.into()), (false, attributes));
}

#[test]
fn a_failed_set_leaves_an_empty_value_for_a_new_key() {
    let attributes = map([("a", 1.into()), ("m", map([("k", 1.into())]))]);
    let time = || Plain::Other(Value::Time(1));
    assert_eq!(set(&attributes, &["a".into()], time()), (false, attributes.clone()));
    assert_eq!(set(&attributes, &["m".into(), "k".into()], time()), (false, attributes.clone()));
    let m = || map([("k", 1.into())]);
    assert_eq!(
        set(&attributes, &["t".into()], time()),
        (false, map([("a", 1.into()), ("m", m()), ("t", Plain::Nil)]))
    );
    assert_eq!(
        set(&attributes, &["m".into(), "t".into()], time()),
        (false, map([("a", 1.into()), ("m", map([("k", 1.into()), ("t", Plain::Nil)]))]))
    );
    let empty = map([("e", Plain::Nil)]);
    assert_eq!(
        set(&empty, &["e".into(), "k".into(), 1.into()], time()),
        (false, map([("e", map([("k", list([Plain::Nil, Plain::Nil]))]))]))
    );
}

#[test]
fn a_whole_map_is_replaced_and_nil_clears_it() {
    let attributes = map([("a", 1.into())]);
    let other = map([("a", 1.into()), ("b", list([]))]);
    assert_eq!(set(&attributes, &[], other.clone()), (true, other));
    assert_eq!(set(&attributes, &[], Plain::Nil), (true, map([])));
    assert_eq!(set(&attributes, &[], 1.into()), (false, attributes));
}

#[test]
fn values_do_not_nest_without_end() {
    let mut deep = map([]);
    for _ in 0..200 {
        deep = map([("k", deep)]);
    }
    let (done, left) = set(&map([]), &["a".into()], deep);
    assert_eq!((done, left), (false, map([("a", Plain::Nil)])));
}

#[test]
fn an_equal_value_is_no_change() {
    let attributes = map([("a", 1.into()), ("m", map([("k", "v".into())]))]);
    with_record(&attributes, |machine| {
        for (keys, value) in [
            (vec!["a".into()], 1.into()),
            (vec!["m".into(), "k".into()], "v".into()),
            (vec![], attributes.clone()),
        ] {
            let path = path(&mut machine.memory, Field::Attributes, &keys);
            let value = store(&mut machine.memory, &value);
            machine.set(&path, value).unwrap();
            let table = machine.record.table(&mut machine.memory, path.context, path.field).unwrap();
            assert!(!table.is_changed(), "{keys:?}");
        }
    });
}

#[test]
fn comparisons_are_those_of_the_collector() {
    use Comparison::{Equal, Greater, Less, LessOrEqual, NotEqual};
    let bytes = |bytes: &[u8]| Plain::Bytes(bytes.to_vec());
    let time = |at| Plain::Other(Value::Time(at));
    let cases: Vec<(Plain, Comparison, Plain, bool)> = vec![
        (Plain::Nil, Equal, Plain::Nil, true),
        (Plain::Nil, LessOrEqual, Plain::Nil, true),
        (Plain::Nil, Less, 5.into(), false),
        (Plain::Nil, NotEqual, 5.into(), true),
        (5.into(), Greater, Plain::Nil, false),
        ("0".into(), Equal, 0.into(), false),
        (0.into(), Equal, 0.0.into(), true),
        (1.into(), Less, 1.5.into(), true),
        (2.5.into(), Greater, 2.into(), true),
        (f64::NAN.into(), Equal, f64::NAN.into(), false),
        (f64::NAN.into(), NotEqual, f64::NAN.into(), true),
        (true.into(), Greater, false.into(), true),
        ("a".into(), Less, "b".into(), true),
        ("b".into(), LessOrEqual, "a".into(), false),
        (bytes(b"\x01"), Less, bytes(b"\x02"), true),
        (bytes(b""), Equal, Plain::Nil, true),
        (bytes(b""), Equal, bytes(b""), true),
        (bytes(b""), Equal, bytes(b"a"), false),
        (bytes(b"a"), Equal, "a".into(), false),
        (time(1), Less, time(2), true),
        (time(1), Equal, 1.into(), false),
        (Plain::Other(Value::Duration(3)), Greater, Plain::Other(Value::Duration(2)), true),
        (map([("a", 1.into()), ("b", 2.into())]), Equal, map([("b", 2.into()), ("a", 1.into())]), true),
        (map([("a", 1.into())]), Equal, map([("a", 1.0.into())]), false),
        (map([("a", 1.into())]), NotEqual, map([]), true),
        (map([]), Less, map([]), false),
        (list([1.into(), "x".into()]), Equal, list([1.into(), "x".into()]), true),
        (list([1.into()]), Equal, list([1.into(), 2.into()]), false),
        (list([]), NotEqual, Plain::Nil, true),
        (Plain::Nil, NotEqual, list([]), true),
    ];
    let mut temporary = vec![0; 1 << 16];
    let mut memory = Memory::new(b"", b"", &mut temporary);
    for (left, comparison, right, holds) in cases {
        let (one, other) = (store(&mut memory, &left), store(&mut memory, &right));
        assert_eq!(compare(&memory, comparison, one, other), holds, "{left:?} {comparison:?} {right:?}");
    }
}

#[test]
fn trace_states_are_read_and_set_by_member() {
    with_record(&map([]), |machine| {
        let state = |machine: &mut Machine<'_>, text: &str| {
            let whole = path(&mut machine.memory, Field::TraceState, &[]);
            let text = machine.memory.store(text.as_bytes()).unwrap();
            machine.set(&whole, Value::Text(text)).unwrap();
            whole
        };
        let whole = state(machine, "a=1, b@c=x y ,d=2");
        let member = |machine: &mut Machine<'_>, key: &str| {
            let path = path(&mut machine.memory, Field::TraceState, &[key.into()]);
            let value = machine.get(&path).unwrap();
            plain(&machine.memory, value)
        };
        assert_eq!(member(machine, "a"), "1".into());
        assert_eq!(member(machine, "b@c"), "x y".into());
        assert_eq!(member(machine, "none"), "".into());
        let d = path(&mut machine.memory, Field::TraceState, &["d".into()]);
        let new = Value::Text(machine.memory.store(b"new").unwrap());
        machine.set(&d, new).unwrap();
        let now = machine.get(&whole).unwrap();
        assert_eq!(plain(&machine.memory, now), "d=new,a=1,b@c=x y".into());
        assert!(machine.set(&d, Value::Int(1)).is_err());
        state(machine, "A=1");
        assert_eq!(member(machine, "a"), Plain::Nil);
    });
}

#[test]
fn values_become_the_text_that_go_makes() {
    let value = map([
        ("b", 1.into()),
        ("a", list([true.into(), Plain::Nil, 0.5.into(), "<\"\n\u{1}\u{2028}é".into()])),
        ("c", Plain::Bytes(b"hi".to_vec())),
        ("d", map([("z", 1e21.into()), ("y", 1e-7.into())])),
        ("e", 5.0.into()),
    ]);
    let texts = with_record(&map([]), |machine| {
        let value = store(&mut machine.memory, &value);
        let plainly = machine.as_text(value).unwrap();
        let escaped = machine.like_text(value).unwrap().unwrap();
        [plainly, escaped].map(|slice| String::from_utf8(machine.memory.get(slice).to_vec()).unwrap())
    });
    let rest = |small: &str| format!(r#""b":1,"c":"aGk=","d":{{"y":{small},"z":1e+21}},"e":5}}"#);
    let (plainly, escaped) = (rest("1e-7"), rest("1e-07"));
    assert_eq!(texts.0[0], format!("{{\"a\":[true,null,0.5,\"<\\\"\\n\\u0001\\u2028é\"],{plainly}"));
    assert_eq!(texts.0[1], format!("{{\"a\":[true,null,0.5,\"\\u003c\\\"\\n\\u0001\\u2028é\"],{escaped}"));
}
