import { useCallback, useMemo } from 'react';
import { useLocation, useSearch } from 'wouter';

/** useSearchValues reads the page's search parameters; the setter changes some of them and keeps the rest. */
export function useSearchValues(): [
  URLSearchParams,
  (change: Record<string, string | undefined>, replace?: boolean) => void,
] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const values = useMemo(() => new URLSearchParams(search), [search]);

  const set = useCallback(
    (change: Record<string, string | undefined>, replace = true) => {
      const next = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(change)) {
        if (value) {
          next.set(name, value);
        } else {
          next.delete(name);
        }
      }
      const query = next.toString();
      navigate(query ? `${path}?${query}` : path, { replace });
    },
    [path, navigate],
  );

  return [values, set];
}
