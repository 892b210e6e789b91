import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import styles from './Combobox.module.css';
import { classes } from './classes';
import { Icon } from './Icon';

export type Choice = { id: string; section: string; content: ReactNode; run: () => void };

type Props = {
  label: string;
  query: string;
  onQuery: (query: string) => void;
  choices: Choice[];
  /** What to say if nothing matches. */
  empty: ReactNode;
};

/** Combobox is an input with a list below it: the arrow keys choose, Enter takes, and the input keeps the focus. */
export function Combobox({ label, query, onQuery, choices, empty }: Props) {
  const id = useId();
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another query starts at the first choice.
  useEffect(() => setAt(0), [query]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the chosen entry is scrolled into view when it changes.
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);

  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: choices.length - 1 };
    const next = steps[event.key];
    if (next !== undefined) {
      event.preventDefault();
      setAt((next + choices.length) % Math.max(1, choices.length));
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      choices[at]?.run();
    }
  };

  return (
    <div>
      <div className={styles.query}>
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label={label}
          placeholder={label}
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={choices[at] ? `${id}-${at}` : undefined}
          autoComplete="off"
          // biome-ignore lint/a11y/noAutofocus: the dialog around it was opened to type here.
          autoFocus
          value={query}
          onChange={(event) => onQuery(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <div ref={list} id={`${id}-list`} role="listbox" aria-label={label} className={styles.list}>
        {choices.map((choice, index) => (
          <div key={choice.id} role="presentation">
            {choice.section !== choices[index - 1]?.section && (
              <div role="presentation" className={styles.section}>
                {choice.section}
              </div>
            )}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the input. */}
            <div
              id={`${id}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === at}
              className={classes(styles.choice, index === at && styles.on)}
              onPointerMove={() => setAt(index)}
              onClick={choice.run}
            >
              {choice.content}
            </div>
          </div>
        ))}
      </div>
      {choices.length === 0 && <p className={styles.empty}>{empty}</p>}
    </div>
  );
}
