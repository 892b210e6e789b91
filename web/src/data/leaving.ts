import { useEffect } from 'react';

type Ask = (go: () => void) => void;

/** The page that has unsaved changes, and how it asks before it is left. */
let guard: { ask: Ask; href: string; pathname: string } | undefined;

/** guardNavigation lets the page that has unsaved changes ask before another page is opened. */
export function guardNavigation(navigate: () => void, from: string, to: string): void {
  const path = (address: string) => address.split(/[?#]/)[0];
  if (guard && path(from) !== path(to)) {
    guard.ask(navigate);
  } else {
    navigate();
  }
}

/** useLeaveGuard asks before the page is left, as long as it is on; `ask` gets what opens the other page. */
export function useLeaveGuard(on: boolean, ask: Ask): void {
  useEffect(() => {
    if (!on) {
      return;
    }
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    guard = { ask, href: location.href, pathname: location.pathname };
    addEventListener('beforeunload', stay);
    return () => {
      guard = undefined;
      removeEventListener('beforeunload', stay);
    };
  }, [on, ask]);
}

// The browser's button for the page before: this page is put back, and asks. Listeners of the window are called in their
// order, so this one is there before the router's.
globalThis.addEventListener?.('popstate', (event) => {
  if (!guard || location.pathname === guard.pathname) {
    return;
  }
  event.stopImmediatePropagation();
  history.pushState(null, '', guard.href);
  guard.ask(() => {
    guard = undefined;
    history.go(-1);
  });
});
