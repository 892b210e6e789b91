import { text } from '../text/library';
import { classes } from '../ui/classes';
import { Icon } from '../ui/Icon';
import type { IconName } from '../ui/icons';
import { Menu, type MenuItem } from '../ui/Menu';
import styles from './FilterBar.module.css';

type Props = {
  /** What the filter is about. */
  label: string;
  /** What is shown while nothing is chosen, if not the label. */
  empty?: string;
  icon: IconName;
  chosen: string | false | undefined;
  items: MenuItem[];
};

/** FilterMenu is a filter with a list of choices, which shows the chosen one. */
export function FilterMenu({ label, empty = label, icon, chosen, items }: Props) {
  return (
    <Menu
      label={chosen || empty !== label ? text.filterNamed(label, chosen || empty) : label}
      items={items}
      className={classes(styles.menu, chosen && styles.chosen)}
    >
      <Icon name={icon} small />
      {chosen || empty}
      <Icon name="chevronDown" small />
    </Menu>
  );
}
