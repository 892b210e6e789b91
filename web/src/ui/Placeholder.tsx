import { useEffect, useRef } from 'react';
import { decodeBlurhash } from './blurhash';
import styles from './Picture.module.css';

const side = 12;

/** Placeholder draws a blurred form of a picture that is not there yet. */
export function Placeholder({ hash }: { hash: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const pixels = decodeBlurhash(hash, side, side);
    if (pixels) {
      canvas.current?.getContext('2d')?.putImageData(new ImageData(pixels, side, side), 0, 0);
    }
  }, [hash]);

  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: this canvas cannot be focused.
  return <canvas ref={canvas} width={side} height={side} className={styles.placeholder} aria-hidden="true" />;
}
