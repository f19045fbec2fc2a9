use super::*;

fn ids(field: &Field, into: &mut Vec<i32>) {
    into.push(field.metadata()[PARQUET_FIELD_ID_META_KEY].parse().unwrap());
    match field.data_type() {
        DataType::List(element) => ids(element, into),
        DataType::Struct(fields) => fields.iter().for_each(|field| ids(field, into)),
        _ => {}
    }
}

/// A file written today can be adopted into a table later only if no id ever means two things.
#[test]
fn every_field_has_an_id_of_its_own() {
    for table in Table::ALL {
        let mut seen = Vec::new();
        for field in table.schema().fields() {
            ids(field, &mut seen);
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count, "{table}");
    }
}

/// Key columns are the same in both tables, so one query can read both.
#[test]
fn both_tables_begin_with_the_same_columns() {
    let points = Table::MetricPoints.schema();
    let histograms = Table::MetricHistograms.schema();
    assert_eq!(points.fields()[..KEY_COLUMNS.len()], histograms.fields()[..KEY_COLUMNS.len()]);
    assert_eq!(Table::of_name("metric_points"), Some(Table::MetricPoints));
    assert_eq!(Table::of_name("spans"), Some(Table::Spans));
    assert_eq!(Table::of_name("profiles"), None);
}
