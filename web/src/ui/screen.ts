import { useSyncExternalStore } from 'react';

const small = '(max-width: 860px)';
const wide = '(min-width: 1800px)';

/** useMedia follows a media query such as `(pointer: coarse)`. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query);
      list.addEventListener('change', listener);
      return () => list.removeEventListener('change', listener);
    },
    () => matchMedia(query).matches,
  );
}

/** useSmallScreen reports whether the window has the width of a telephone. */
export const useSmallScreen = () => useMedia(small);

/** useWideScreen reports whether the window has room for a third column. */
export const useWideScreen = () => useMedia(wide);
