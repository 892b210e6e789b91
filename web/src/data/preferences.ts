import { useSyncExternalStore } from 'react';

// Settings of this browser: how the studio looks and what it may do here. They are no secret and no data of the account.

export type Preferences = {
  theme: 'system' | 'light' | 'dark';
  /** Whether single letters are keys (WCAG 2.1.4 asks that they can be switched off). */
  letterKeys: boolean;
  /** Whether a notification tells that a run has ended while the page is in the background. */
  notifications: boolean;
};

const defaults: Preferences = { theme: 'system', letterKeys: true, notifications: false };
const storageKey = 'atelier-preferences';
const listeners = new Set<() => void>();
let current = read();

function read(): Preferences {
  try {
    return { ...defaults, ...JSON.parse(localStorage.getItem(storageKey) ?? '{}') };
  } catch {
    return defaults;
  }
}

function apply(): void {
  if (current.theme === 'system') {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = current.theme;
  }
}

/** applyPreferences makes the page look as chosen; it is called before the first view. */
export function applyPreferences(): void {
  apply();
  addEventListener('storage', (event) => {
    if (event.key === storageKey) {
      current = read();
      apply();
      for (const listener of listeners) {
        listener();
      }
    }
  });
}

/** setPreferences changes some settings of this browser. */
export function setPreferences(change: Partial<Preferences>): void {
  current = { ...current, ...change };
  localStorage.setItem(storageKey, JSON.stringify(current));
  apply();
  for (const listener of listeners) {
    listener();
  }
}

/** getPreferences returns the settings of this browser. */
export const getPreferences = () => current;

/** usePreferences returns the settings of this browser, and follows their changes. */
export function usePreferences(): Preferences {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, getPreferences);
}
