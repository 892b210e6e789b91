import { ViewportPortal } from '@xyflow/react';
import { type Ref, useImperativeHandle, useRef } from 'react';
import type { Guides } from './arrange';
import styles from './Canvas.module.css';

export type GuideHandle = { show: (guides: Guides | undefined) => void };

/** GuideLines draws the lines to which a dragged node snaps. They are moved without React, for each move of the pointer. */
export function GuideLines({ ref }: { ref: Ref<GuideHandle> }) {
  const vertical = useRef<HTMLDivElement>(null);
  const horizontal = useRef<HTMLDivElement>(null);

  useImperativeHandle(ref, () => ({
    show: (guides) => {
      const up = guides?.vertical;
      const across = guides?.horizontal;
      place(vertical.current, up && { x: up.x, y: up.from, length: up.to - up.from }, 'height');
      place(horizontal.current, across && { x: across.from, y: across.y, length: across.to - across.from }, 'width');
    },
  }));

  return (
    <ViewportPortal>
      <div ref={vertical} className={styles.guideDown} hidden />
      <div ref={horizontal} className={styles.guideAcross} hidden />
    </ViewportPortal>
  );
}

function place(
  element: HTMLDivElement | null,
  line: { x: number; y: number; length: number } | undefined,
  side: 'width' | 'height',
): void {
  if (!element) {
    return;
  }
  element.hidden = !line;
  if (line) {
    element.style.transform = `translate(${line.x}px, ${line.y}px)`;
    element.style[side] = `${line.length}px`;
  }
}
