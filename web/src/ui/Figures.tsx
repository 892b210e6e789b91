import type { ReactNode } from 'react';
import { classes } from './classes';
import styles from './Figures.module.css';

/** FigureValue is a number that a page shows large. */
export type FigureValue = {
  label: string;
  /** Absent while it is loading. */
  value: string | undefined;
  note?: ReactNode;
  /** Whether the note is bad news. */
  bad?: boolean;
};

/** Figures shows a few numbers side by side; on small screens two by two. */
export function Figures({ label, figures }: { label: string; figures: FigureValue[] }) {
  return (
    <dl className={styles.figures} aria-label={label}>
      {figures.map((figure) => (
        <div key={figure.label} className={styles.figure}>
          <dt>{figure.label}</dt>
          <dd className={classes(styles.value, 'num', figure.value === undefined && styles.waiting)}>
            {figure.value ?? '\u00a0'}
          </dd>
          <dd className={classes(styles.note, figure.bad && styles.bad)}>{figure.note ?? '\u00a0'}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Facts shows names with their values in two columns. */
export function Facts({ facts }: { facts: Array<[name: string, value: ReactNode]> }) {
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
