import type { ReactNode } from 'react';
import styles from './Checks.module.css';

export type Check = { value: string; label: ReactNode; help?: string; disabled?: boolean };

type Props = { options: Check[]; chosen: string[]; onChange: (chosen: string[]) => void };

/** Checks is a list of options of which any number can be chosen; put it into a group field. */
export function Checks({ options, chosen, onChange }: Props) {
  const toggle = (value: string, on: boolean) =>
    onChange(on ? [...chosen, value] : chosen.filter((one) => one !== value));

  return (
    <div className={styles.checks}>
      {options.map((option) => (
        <label key={option.value} className={styles.check}>
          <input
            type="checkbox"
            checked={chosen.includes(option.value)}
            disabled={option.disabled}
            onChange={(event) => toggle(option.value, event.target.checked)}
          />
          <span>
            {option.label}
            {option.help && <span className="small soft"> {option.help}</span>}
          </span>
        </label>
      ))}
    </div>
  );
}
