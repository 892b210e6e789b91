import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';
import { Button, IconButton } from './Button';
import { classes } from './classes';
import { Icon } from './Icon';
import type { IconName } from './icons';
import styles from './Menu.module.css';

export type MenuItem =
  | {
      label: string;
      icon?: IconName;
      note?: string;
      checked?: boolean;
      danger?: boolean;
      disabled?: boolean;
      href?: string;
      onSelect?: () => void;
    }
  | 'line';

type Props = {
  label: string;
  icon?: IconName;
  /** What the button shows; with an icon alone it shows no text. */
  children?: ReactNode;
  /** An icon behind the text, such as an arrow that points down. */
  end?: IconName;
  items: MenuItem[];
  kind?: 'plain' | 'bare';
  small?: boolean;
  on?: boolean;
  className?: string;
};

/** Menu is a button that opens a list of actions; arrow keys move, Escape closes. */
export function Menu({ label, icon, children, end, items, kind = 'bare', small, on, className }: Props) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);

  const place = () => {
    const button = opener.current?.getBoundingClientRect();
    const menu = list.current;
    if (!button || !menu) {
      return;
    }
    const below = innerHeight - button.bottom;
    const height = menu.offsetHeight;
    const top = below > height + 12 || button.top < height + 12 ? button.bottom + 4 : button.top - height - 4;
    menu.style.top = `${Math.max(8, top)}px`;
    menu.style.left = `${Math.max(8, Math.min(button.left, innerWidth - menu.offsetWidth - 8))}px`;
  };

  const move = (event: KeyboardEvent) => {
    const entries = [...(list.current?.querySelectorAll<HTMLElement>('[role^=menuitem]:not(:disabled)') ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 };
    const next = steps[event.key];
    if (next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      entries[(next + entries.length) % entries.length]?.focus();
    }
  };

  const common = { ref: opener, popoverTarget: id, 'aria-haspopup': 'menu' as const, kind, small, on, className };

  return (
    <>
      {children ? (
        <Button icon={icon} aria-label={label} {...common}>
          {children}
          {end && <Icon name={end} small />}
        </Button>
      ) : (
        <IconButton icon={icon ?? 'more'} label={label} {...common} />
      )}
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        aria-label={label}
        className={styles.menu}
        onKeyDown={move}
        onToggle={(event) => {
          if (event.newState === 'open') {
            place();
            list.current?.querySelector<HTMLElement>('[role^=menuitem]')?.focus();
          }
        }}
      >
        {items.map((item, index) =>
          item === 'line' ? (
            <hr key={index} className={styles.line} />
          ) : (
            <Entry key={index} item={item} close={() => list.current?.hidePopover()} />
          ),
        )}
      </div>
    </>
  );
}

function Entry({ item, close }: { item: Exclude<MenuItem, 'line'>; close: () => void }) {
  const content = (
    <>
      {item.icon ? <Icon name={item.icon} /> : <span className={styles.gap} />}
      <span className="grow">{item.label}</span>
      {item.note && <span className="small soft num">{item.note}</span>}
      {item.checked && <Icon name="check" small />}
    </>
  );
  const className = classes(styles.entry, item.danger && styles.danger);

  if (item.href) {
    return (
      <a role="menuitem" className={className} href={item.href} tabIndex={-1}>
        {content}
      </a>
    );
  }
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: only the role menuitemradio gets aria-checked.
    <button
      type="button"
      role={item.checked === undefined ? 'menuitem' : 'menuitemradio'}
      aria-checked={item.checked}
      tabIndex={-1}
      className={className}
      disabled={item.disabled}
      onClick={() => {
        close();
        item.onSelect?.();
      }}
    >
      {content}
    </button>
  );
}
