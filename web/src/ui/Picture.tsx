import { useEffect, useRef, useState } from 'react';
import { averageColor } from './blurhash';
import { classes } from './classes';
import styles from './Picture.module.css';
import { Placeholder } from './Placeholder';

type Props = {
  src: string | null | undefined;
  alt: string;
  blurhash?: string | null;
  /** Width by height; the room is kept before the picture is there. */
  ratio?: number;
  fit?: 'cover' | 'contain';
  /** Loads the picture at once, not when it is near the window. */
  eager?: boolean;
  /** Loads the picture at once and before others, and shows it as it comes, without a fade. */
  first?: boolean;
  className?: string;
  draggable?: boolean;
};

/** Picture shows a placeholder until its picture is there; nothing moves when it arrives. */
export function Picture({ src, alt, blurhash, ratio, fit = 'cover', eager, first, className, draggable }: Props) {
  const [shown, setShown] = useState(false);
  const image = useRef<HTMLImageElement>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new address starts anew.
  useEffect(() => {
    setShown(Boolean(image.current?.complete && image.current.naturalWidth > 0));
  }, [src]);

  return (
    <div
      className={classes(styles.picture, className)}
      style={{ aspectRatio: ratio, background: blurhash ? averageColor(blurhash) : undefined }}
    >
      {blurhash && !shown && <Placeholder hash={blurhash} />}
      {src && (
        <img
          ref={image}
          src={src}
          alt={alt}
          className={classes(styles.image, fit === 'contain' && styles.contain, (shown || first) && styles.shown)}
          loading={eager || first ? 'eager' : 'lazy'}
          fetchPriority={first ? 'high' : undefined}
          decoding="async"
          draggable={draggable}
          onLoad={() => setShown(true)}
        />
      )}
    </div>
  );
}
