import type { ComponentProps, ReactNode } from 'react';
import { Link } from 'wouter';
import styles from './Button.module.css';
import { classes } from './classes';
import { Icon } from './Icon';
import type { IconName } from './icons';

type Look = {
  /** `main` is the one action of a view, `bare` has no frame, `danger` deletes. */
  kind?: 'plain' | 'main' | 'bare' | 'danger' | 'pill';
  small?: boolean;
  /** Shown as chosen. */
  on?: boolean;
  icon?: IconName;
  iconFull?: boolean;
};

function lookClasses({ kind = 'plain', small, on }: Look, square: boolean, extra?: string): string {
  return classes(styles.button, styles[kind], small && styles.small, on && styles.on, square && styles.square, extra);
}

type ButtonProps = Look & ComponentProps<'button'>;

/** Button is a button with a text, and an icon before it where one is named. */
export function Button({ kind, small, on, icon, iconFull, className, children, ...rest }: ButtonProps) {
  return (
    <button type="button" className={lookClasses({ kind, small, on }, false, className)} {...rest}>
      {icon && <Icon name={icon} small={small} full={iconFull} />}
      {children}
    </button>
  );
}

type IconButtonProps = Look & Omit<ComponentProps<'button'>, 'children'> & { icon: IconName; label: string };

/** IconButton is a button with an icon only; its label is read aloud and shown as a tooltip. */
export function IconButton({ kind = 'bare', small, on, icon, iconFull, label, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      className={lookClasses({ kind, small, on }, true, className)}
      aria-label={label}
      title={label}
      {...rest}
    >
      <Icon name={icon} small={small || kind === 'pill'} full={iconFull} />
    </button>
  );
}

type ButtonLinkProps = Look & {
  href: string;
  /** What is read aloud in place of the text, where several links on a page have the same text. */
  label?: string;
  className?: string;
  children: ReactNode;
  external?: boolean;
};

/** ButtonLink leads to another page and looks like a button; `external` pages are not part of the studio. */
export function ButtonLink({ kind, small, on, icon, href, label, className, children, external }: ButtonLinkProps) {
  const look = lookClasses({ kind, small, on }, false, className);
  const content = (
    <>
      {icon && <Icon name={icon} small={small} />}
      {children}
    </>
  );

  if (external) {
    return (
      <a className={look} href={href} aria-label={label}>
        {content}
      </a>
    );
  }
  return (
    <Link className={look} href={href} aria-label={label}>
      {content}
    </Link>
  );
}
