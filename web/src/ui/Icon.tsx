import { createElement } from 'react';
import styles from './Icon.module.css';
import { type IconName, icons } from './icons';

type Props = { name: IconName; small?: boolean; full?: boolean };

/** Icon draws an outline beside a text; it is hidden from screen readers, which read the text. */
export function Icon({ name, small, full }: Props) {
  const className = [styles.icon, small && styles.small, full && styles.full].filter(Boolean).join(' ');

  return (
    <svg className={className} viewBox="0 0 24 24" aria-hidden="true">
      {icons[name].map(([tag, attributes], index) => createElement(tag, { key: index, ...attributes }))}
    </svg>
  );
}
