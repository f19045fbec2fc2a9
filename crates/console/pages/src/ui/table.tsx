// Rows under columns; on a narrow screen each row is a block of names and values.
import type { ComponentChildren } from "preact";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** Numbers stand to the right. */
  right?: boolean;
  /** The row's name: a header of its own. */
  head?: boolean;
  /** Takes what width is left, and may break lines. */
  wide?: boolean;
  /** Left out where there is less room: what it says is on the page of the row, too. */
  minor?: boolean;
  /** Sorts by it, when its title is pressed. */
  sort?: () => void;
  sorted?: "ascending" | "descending" | undefined;
}

interface TableProps<T> {
  caption: string;
  columns: Column<T>[];
  rows: readonly T[];
  id: (row: T, index: number) => string;
  tone?: (row: T) => string;
  none?: string;
}

const classOf = <T,>(column: Column<T>): string => [column.right && "right", column.wide && "wide", column.minor && "minor"].filter(Boolean).join(" ");

export function Table<T>({ caption, columns, rows, id, tone, none = "none" }: TableProps<T>) {
  if (rows.length === 0) return <p class="none">{none}</p>;
  return (
    <div class="table-box">
      <table role="table" class={columns.length <= 4 ? "few" : ""}>
        <caption class="unseen">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th role="columnheader" key={column.title} scope="col" class={classOf(column)} aria-sort={column.sorted}>
                {column.sort ? (
                  <button type="button" class="sort" onClick={column.sort}>
                    {column.title}
                    <span aria-hidden="true">{column.sorted === "descending" ? " ↓" : column.sorted === "ascending" ? " ↑" : ""}</span>
                  </button>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row, index) => (
            <tr role="row" key={id(row, index)} class={tone?.(row) ?? ""}>
              {columns.map((column) =>
                column.head ? (
                  <th role="rowheader" key={column.title} scope="row" class={classOf(column)} data-label={column.title}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td role="cell" key={column.title} class={classOf(column)} data-label={column.title}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
