import { type RefObject, useLayoutEffect, useMemo, useState } from 'react';
import { useSmallScreen, useWideScreen } from '../ui/screen';
import { type Layout, layOut } from './geometry';

/** useGridLayout measures the area that scrolls, and lays the tiles out in it. */
export function useGridLayout(scroller: RefObject<HTMLElement | null>, dense: boolean): Layout | undefined {
  const small = useSmallScreen();
  const large = useWideScreen();
  const [size, setSize] = useState({ width: 0, height: 0 });

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) {
      return;
    }
    const measure = () => {
      const next = { width: element.clientWidth, height: element.clientHeight };
      setSize((known) => (known.width === next.width && known.height === next.height ? known : next));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller]);

  return useMemo(() => {
    if (size.width === 0 || size.height === 0) {
      return undefined;
    }
    const tile = large ? 188 : 126;
    const frame = small
      ? { left: 3, right: 3, top: 3, bottom: 84, gap: 3 }
      : { left: 24, right: 40, top: 10, bottom: 84, gap: 6 };
    return layOut({ ...size, ...frame, tile: dense ? tile * 0.62 : tile });
  }, [size, small, large, dense]);
}
