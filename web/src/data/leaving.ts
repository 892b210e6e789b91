import { useEffect } from 'react';

type Guard = (go: () => void) => void;

let guard: Guard | undefined;

/** guardNavigation lets the page that has unsaved changes ask before another page is opened. */
export function guardNavigation(navigate: () => void, from: string, to: string): void {
  const path = (address: string) => address.split(/[?#]/)[0];
  if (guard && path(from) !== path(to)) {
    guard(navigate);
  } else {
    navigate();
  }
}

/** useLeaveGuard asks before the page is left, as long as it is on; `ask` gets what opens the other page. */
export function useLeaveGuard(on: boolean, ask: Guard): void {
  useEffect(() => {
    if (!on) {
      return;
    }
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    guard = ask;
    addEventListener('beforeunload', stay);
    return () => {
      guard = undefined;
      removeEventListener('beforeunload', stay);
    };
  }, [on, ask]);
}
