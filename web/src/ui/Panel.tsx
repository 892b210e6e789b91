import type { ReactNode } from 'react';
import styles from './Panel.module.css';

/** Panel is a framed part of a page with a heading. */
export function Panel({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.panel} aria-label={title}>
      <header>
        <h2>{title}</h2>
        <div className={styles.actions}>{actions}</div>
      </header>
      {children}
    </section>
  );
}

/** Column is the one scrolling column of a page such as Reports or You. */
export function Column({ children }: { children: ReactNode }) {
  return (
    <div className={styles.scroll}>
      <div className={styles.column}>{children}</div>
    </div>
  );
}
