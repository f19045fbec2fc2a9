//! The tenants and their traffic.

use super::{Align, Block, Section, Table, TableCell};
use crate::human::HumanCount;
use crate::status::{Tenant, Tenants};

pub(super) fn section(tenants: &Tenants) -> Section {
    let known = format!("{} of at most {} tracked", HumanCount(tenants.known), HumanCount(tenants.most));
    let full = tenants.known >= tenants.most;
    let known = if full { format!("{known}; later ones share the entry `other`") } else { known };
    let blocks = vec![
        Block::Say(TableCell::new(known).bad_if(full)),
        Block::Rows(Table {
            columns: &[
                ("tenant", Align::Left),
                ("received", Align::Right),
                ("accepted", Align::Right),
                ("refused", Align::Right),
                ("open", Align::Right),
                ("items", Align::Right),
                ("bytes", Align::Right),
                ("holds", Align::Right),
            ],
            rows: tenants.shown.iter().map(row).collect(),
        }),
    ];
    Section { title: "Tenants", blocks }
}

fn row(tenant: &Tenant) -> Vec<TableCell> {
    let refused = match tenant.mostly {
        Some(reason) => TableCell::new(format!("{} (mostly {reason})", HumanCount(tenant.refused))),
        None => TableCell::count(tenant.refused),
    };
    vec![
        TableCell::new(&*tenant.name),
        TableCell::count(tenant.received),
        TableCell::count(tenant.accepted),
        refused,
        TableCell::count(tenant.open),
        TableCell::count(tenant.items),
        TableCell::bytes(tenant.bytes),
        TableCell::bytes(tenant.held),
    ]
}
