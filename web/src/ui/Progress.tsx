import { classes } from './classes';
import styles from './Progress.module.css';

type Props = {
  label: string;
  /** From 0 to 1; null if it is unknown. */
  value: number | null;
  tone?: 'accent' | 'light';
};

/** Progress is a bar that fills; without a value it only says that something goes on. */
export function Progress({ label, value, tone = 'accent' }: Props) {
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={value === null ? undefined : Math.round(value * 100)}
      className={classes(styles.track, styles[tone], value === null && styles.unknown)}
    >
      <i style={{ width: value === null ? undefined : `${value * 100}%` }} />
    </div>
  );
}

type MeterProps = { label: string; value: number; max: number; marks?: number[] };

/** Meter shows how much of a limit is used; it turns to a warning from 80 % and to red at 100 %. */
export function Meter({ label, value, max, marks = [] }: MeterProps) {
  const part = max > 0 ? Math.min(1, value / max) : 0;

  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={value}
      className={styles.track}
    >
      <i
        className={classes(part >= 1 && styles.full, part >= 0.8 && part < 1 && styles.near)}
        style={{ width: `${part * 100}%` }}
      />
      {marks.map((mark) => (
        <u key={mark} style={{ left: `${mark * 100}%` }} />
      ))}
    </div>
  );
}
