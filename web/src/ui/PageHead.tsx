import type { ReactNode } from 'react';
import styles from './PageHead.module.css';

type Props = { title: string; note?: ReactNode; children?: ReactNode };

/** PageHead is the head of a page: its title, what to choose from, and actions at the right. */
export function PageHead({ title, note, children }: Props) {
  return (
    <header className={styles.head}>
      <h1>{title}</h1>
      {note && <span className="soft num">{note}</span>}
      {children}
    </header>
  );
}
