import type { ReactNode } from 'react';
import { classes } from './classes';
import styles from './Table.module.css';

export type Column<T> = {
  head: string;
  cell: (row: T) => ReactNode;
  end?: boolean;
  /** Whether the head is read aloud only, such as over a column of buttons. */
  quiet?: boolean;
  /** Whether the column is left out on small screens. */
  wideOnly?: boolean;
  /** Whether the text may break into lines; otherwise the table scrolls sideways. */
  wrap?: boolean;
};

type Props<T> = {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  /** Whether the table never scrolls, so that the keyboard need not reach it. */
  fixed?: boolean;
};

/** Table shows rows; on small screens it scrolls sideways by itself. */
export function Table<T>({ label, columns, rows, keyOf, fixed }: Props<T>) {
  const lookOf = (column: Column<T>) =>
    classes(column.end && styles.end, column.wideOnly && 'hide-small', column.wrap && styles.wrap);

  return (
    <div role="group" className={fixed ? undefined : styles.scroll} aria-label={label} tabIndex={fixed ? undefined : 0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" className={lookOf(column)}>
                {column.quiet ? <span className={classes('unseen', styles.quiet)}>{column.head}</span> : column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.head} className={lookOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
