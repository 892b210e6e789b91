import type { Viewport } from '@xyflow/react';
import { useCallback, useEffect, useRef } from 'react';
import { useSearchValues } from '../data/search';

const keepAfter = 400;

/** readView reads where to look at a board from an address: `view=x,y,zoom`. */
export function readView(search: string): Viewport | undefined {
  const parts = new URLSearchParams(search).get('view')?.split(',').map(Number) ?? [];
  const [x, y, zoom] = parts;
  if (x === undefined || y === undefined || zoom === undefined || !parts.every(Number.isFinite) || zoom <= 0) {
    return undefined;
  }
  return { x, y, zoom: Math.min(8, Math.max(0.08, zoom)) };
}

/** writeView writes a view for the address. */
export const writeView = ({ x, y, zoom }: Viewport) =>
  `${Math.round(x)},${Math.round(y)},${Math.round(zoom * 1000) / 1000}`;

/** useViewInAddress returns a function that keeps the view in the address once it has come to rest. */
export function useViewInAddress(): (view: Viewport) => void {
  const [, setSearch] = useSearchValues();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  useEffect(() => () => clearTimeout(timer.current), []);

  return useCallback(
    (view: Viewport) => {
      clearTimeout(timer.current);
      timer.current = setTimeout(() => setSearch({ view: writeView(view) }), keepAfter);
    },
    [setSearch],
  );
}
