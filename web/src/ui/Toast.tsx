import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { Button, IconButton } from './Button';
import styles from './Toast.module.css';

type Toast = {
  text: string;
  /** An action such as undo, with its name. */
  action?: { label: string; run: () => void; key?: string };
  /** Called when the toast goes and its action was not taken. */
  onGone?: () => void;
  seconds?: number;
};

const ToastContext = createContext<(toast: Toast) => void>(() => {});

/** useToast returns a function that shows a short message at the foot of the page. */
export function useToast(): (toast: Toast) => void {
  return useContext(ToastContext);
}

function isFocused(region: HTMLElement | null): boolean {
  return region?.contains(document.activeElement) ?? false;
}

/** ToastRegion shows one toast at a time, in one live region for screen readers. */
export function ToastRegion({ children }: { children: ReactNode }) {
  const [toast, setToast] = useState<Toast & { number: number }>();
  const shown = useRef<Toast>(undefined);
  const count = useRef(0);
  const region = useRef<HTMLDivElement>(null);
  // What had the focus when the toast came; it gets the focus back from the toast's buttons.
  const opener = useRef<Element>(null);

  const show = useCallback((next: Toast) => {
    shown.current?.onGone?.();
    shown.current = next;
    count.current += 1;
    if (!isFocused(region.current)) {
      opener.current = document.activeElement;
    }
    setToast({ ...next, number: count.current });
  }, []);

  const end = useCallback((acted: boolean) => {
    const last = shown.current;
    shown.current = undefined;
    if (isFocused(region.current) && opener.current instanceof HTMLElement) {
      opener.current.focus({ preventScroll: true });
    }
    setToast(undefined);
    if (acted) {
      last?.action?.run();
    } else {
      last?.onGone?.();
    }
  }, []);

  useEffect(() => {
    if (!toast) {
      return;
    }
    // A toast whose buttons have the focus stays, so that nobody has to hurry.
    const leave = () => !isFocused(region.current) && end(false);
    const timer = setInterval(leave, (toast.seconds ?? 7) * 1000);
    return () => clearInterval(timer);
  }, [toast, end]);

  useEffect(() => {
    const leave = () => shown.current && end(false);
    addEventListener('pagehide', leave);
    return () => removeEventListener('pagehide', leave);
  }, [end]);

  const value = useMemo(() => show, [show]);

  return (
    <ToastContext value={value}>
      {children}
      <div ref={region} role="status" aria-live="polite" className={styles.region}>
        {toast && (
          <div key={toast.number} className={styles.toast}>
            <span>{toast.text}</span>
            {toast.action && (
              <Button small className={styles.action} data-toast-key={toast.action.key ?? ''} onClick={() => end(true)}>
                {toast.action.label}
                {toast.action.key && <kbd>{toast.action.key}</kbd>}
              </Button>
            )}
            <IconButton small icon="close" label="Dismiss" className={styles.close} onClick={() => end(false)} />
          </div>
        )}
      </div>
    </ToastContext>
  );
}
