import { useCallback, useState } from 'react';

/** useStored is a choice between yes and no that this browser remembers. */
export function useStored(name: string, initial: boolean): [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(() => {
    const stored = localStorage.getItem(name);
    return stored === null ? initial : stored === 'yes';
  });

  const set = useCallback(
    (next: boolean) => {
      localStorage.setItem(name, next ? 'yes' : 'no');
      setValue(next);
    },
    [name],
  );

  return [value, set];
}
