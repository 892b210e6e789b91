import type { ComponentProps, ReactNode } from 'react';
import styles from './Chip.module.css';
import { classes } from './classes';
import { Icon } from './Icon';
import type { IconName } from './icons';

type ChipProps = ComponentProps<'button'> & { icon?: IconName; on?: boolean; removable?: boolean };

/** Chip is a filter that is on or off. */
export function Chip({ icon, on, removable, children, className, ...rest }: ChipProps) {
  return (
    <button type="button" className={classes(styles.chip, on && styles.on, className)} aria-pressed={on} {...rest}>
      {icon && <Icon name={icon} small full={on && icon === 'heart'} />}
      {children}
      {on && removable && <Icon name="close" small />}
    </button>
  );
}

/** Tag is a short word about the state or the kind of a thing. */
export function Tag({ tone, children }: { tone?: 'good' | 'warn' | 'bad' | 'hot'; children: ReactNode }) {
  return <span className={classes(styles.tag, tone && styles[tone])}>{children}</span>;
}
