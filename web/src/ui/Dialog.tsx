import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import { Button, IconButton } from './Button';
import { classes } from './classes';
import styles from './Dialog.module.css';

type Props = {
  open: boolean;
  onClose: () => void;
  title: string;
  children: ReactNode;
  /** Buttons at the foot. */
  actions?: ReactNode;
  /** `sheet` rises from the foot of small screens, `full` fills the window, `palette` stands near its head. */
  kind?: 'dialog' | 'wide' | 'sheet' | 'full' | 'palette';
  /** Hides the head with the title, which is then read aloud only. */
  bare?: boolean;
};

/** Dialog is the browser's own modal dialog: it holds the focus, and Escape or a click beside it closes it. */
export function Dialog({ open, onClose, title, children, actions, kind = 'dialog', bare }: Props) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);

  useLayoutEffect(() => {
    const element = dialog.current;
    if (!open || !element) {
      return;
    }
    const opener = document.activeElement;
    if (!element.open) {
      element.showModal();
      // A form begins in its first field, not at the button that closes it.
      element.querySelector<HTMLElement>('form :is(input, select, textarea):not(:disabled)')?.focus();
    }

    // The browser returns the focus only if the dialog is still in the page when it closes.
    return () => {
      element.close();
      if (opener instanceof HTMLElement && opener.isConnected) {
        opener.focus();
      }
    };
  }, [open]);

  if (!open) {
    return null;
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself; the click is a shortcut for the mouse.
    <dialog
      ref={dialog}
      className={classes(styles.dialog, styles[kind])}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) {
          onClose();
        }
      }}
    >
      <div className={styles.body}>
        <header className={bare ? 'unseen' : styles.head}>
          <h2 id={id}>{title}</h2>
          {!bare && <IconButton icon="close" label="Close" onClick={onClose} />}
        </header>
        <div className={classes(styles.content, bare && styles.flush)}>{children}</div>
        {actions && <footer className={styles.actions}>{actions}</footer>}
      </div>
    </dialog>
  );
}

type ConfirmProps = {
  open: boolean;
  title: string;
  children: ReactNode;
  /** What the button does, as a verb. */
  action: string;
  danger?: boolean;
  busy?: boolean;
  onConfirm: () => void;
  onClose: () => void;
};

/** Confirm asks before something that cannot be undone. */
export function Confirm({ open, title, children, action, danger, busy, onConfirm, onClose }: ConfirmProps) {
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind={danger ? 'danger' : 'main'} disabled={busy} onClick={onConfirm}>
        {action}
      </Button>
    </>
  );

  return (
    <Dialog open={open} onClose={onClose} title={title} actions={actions}>
      {children}
    </Dialog>
  );
}
