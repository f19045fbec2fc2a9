//! `merge_maps`.

use super::{editor, required, run};
use crate::any_value::{self, Entry, Pairs};
use crate::functions::json::map_and_pairs;
use crate::key_index::{self, KeyFilter, KeyIndex};
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

/// `merge_maps(target, source, strategy)`.
pub(super) static MERGE_MAPS: Signature = Signature {
    prepare: |position, literal, _| {
        let known = position != 2 || matches!(literal, "insert" | "update" | "upsert");
        (!known).then(|| Err("the strategies are `insert`, `update` and `upsert`".into()))
    },
    ..editor(
        "merge_maps",
        &[
            required("target", Type::MapTarget),
            required("source", Type::Map),
            required("strategy", Type::LiteralText),
        ],
        |machine, arguments| run(machine, arguments, merge_maps),
    )
};

fn merge_maps(machine: &mut Machine<'_>, [map, source, strategy]: &[Argument; 3]) -> Result<(), Failure> {
    let (source, keys) = map_and_pairs(machine, source)?;
    any_value::storable(&machine.memory, Value::Map(source))?;
    let strategy = machine.text(strategy)?;
    let (present, missing) = match machine.memory.get(strategy) {
        b"insert" => (false, true),
        b"update" => (true, false),
        _ => (true, true),
    };
    machine.edit_map(target(map)?, |machine, table| {
        machine.with_index(|machine, index| {
            let Machine { memory, spare, .. } = machine;
            // Keys that no entry has need no lookups. Among many entries the index is used all the same: a sender can have a
            // filter let every key through.
            let is_searched = table.entries().len() <= KeyIndex::SEARCHED;
            let is_known = |keys: &KeyFilter, entry: &Entry| {
                let name = memory.get(entry.key);
                keys.may_have(name) && key_index::search(memory, &spare.pairs, name).is_some()
            };
            let is_new = |keys: &KeyFilter| !table.entries().iter().any(|entry| is_known(keys, entry));
            if missing && is_searched && keys.as_ref().is_some_and(is_new) {
                return spare.pairs.iter().try_for_each(|pair| table.add_pair(memory, *pair));
            }
            let merge = |pair: Entry| {
                match index.find(memory, table.entries(), pair.key) {
                    Some(at) if present => table.set_at(memory, at, pair.value),
                    None if missing => table.add_pair(memory, pair)?,
                    _ => {}
                }
                Ok(())
            };
            if keys.is_some() {
                return spare.pairs.iter().copied().try_for_each(merge);
            }
            let mut pairs = Pairs::new(source);
            std::iter::from_fn(|| pairs.next(memory)).try_for_each(merge)
        })
    })
}
