import type { ReactNode } from 'react';
import { classes } from './classes';
import { Icon } from './Icon';
import type { IconName } from './icons';
import styles from './Notice.module.css';

type Props = { icon?: IconName; tone?: 'plain' | 'warn' | 'good'; children: ReactNode; actions?: ReactNode };

/** Notice is a remark in place of, or beside, something that a person looks for, such as why it cannot be done. */
export function Notice({ icon = 'info', tone = 'plain', children, actions }: Props) {
  return (
    <div className={classes(styles.notice, styles[tone])}>
      <Icon name={icon} />
      <div className="grow">{children}</div>
      {actions && <div className="row">{actions}</div>}
    </div>
  );
}
