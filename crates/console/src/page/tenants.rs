//! The tenants and their traffic.

use super::{Align, Block, Cell, Section, Table};
use crate::human::Count;
use crate::status::{Tenant, Tenants};

pub(super) fn section(tenants: &Tenants) -> Section {
    let known = format!("{} of at most {} are told apart", Count(tenants.known), Count(tenants.most));
    let full = tenants.known >= tenants.most;
    let known = if full { format!("{known}; later ones share the entry `other`") } else { known };
    let blocks = vec![
        Block::Say(Cell::new(known).bad_if(full)),
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

fn row(tenant: &Tenant) -> Vec<Cell> {
    let refused = match tenant.mostly {
        Some(reason) => Cell::new(format!("{} (mostly {reason})", Count(tenant.refused))),
        None => Cell::count(tenant.refused),
    };
    vec![
        Cell::new(&*tenant.name),
        Cell::count(tenant.received),
        Cell::count(tenant.accepted),
        refused,
        Cell::count(tenant.open),
        Cell::count(tenant.items),
        Cell::bytes(tenant.bytes),
        Cell::bytes(tenant.held),
    ]
}
