import { useLayoutEffect, useRef } from 'react';
import { Link } from 'wouter';
import { Icon } from './Icon';
import type { IconName } from './icons';
import styles from './PartNav.module.css';

export type Part = { id: string; label: string; href: string; icon?: IconName; count?: number };

/** PartNav lists the parts of a page as links side by side; the list scrolls sideways where it is too long. */
export function PartNav({ label, parts, current }: { label: string; parts: Part[]; current: string }) {
  const nav = useRef<HTMLElement>(null);

  // The open part is seen even where the list is longer than the screen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another part is another link.
  useLayoutEffect(() => {
    const list = nav.current;
    const link = list?.querySelector<HTMLElement>('[aria-current]');
    if (list && link) {
      list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
    }
  }, [current]);

  return (
    <nav ref={nav} className={styles.nav} aria-label={label}>
      <ul>
        {parts.map((part) => (
          <li key={part.id}>
            <Link href={part.href} aria-current={part.id === current ? 'page' : undefined}>
              {part.icon && <Icon name={part.icon} small />}
              {part.label}
              {part.count !== undefined && part.count > 0 && <span className={styles.count}>{part.count}</span>}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
