import { useEffect, useRef, useState } from 'react';
import { averageColor } from '../ui/blurhash';
import { Placeholder } from '../ui/Placeholder';
import styles from './Tile.module.css';

type Props = {
  src: string;
  blurhash: string | null;
  /** Shows the average colour only, while the list flies by. */
  quick: boolean;
};

// A picture that comes within this time needs no placeholder but its colour.
const lateMs = 300;

/** TilePicture is a picture among many that move past. It shows the average colour at once and the picture when it is there. The blurred placeholder is drawn only for a picture that is late: each is a layer of its own, which costs as much as the rest of the tile. */
export function TilePicture({ src, blurhash, quick }: Props) {
  const image = useRef<HTMLImageElement>(null);
  const [late, setLate] = useState(false);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another address starts anew.
  useEffect(() => {
    const timer = setTimeout(() => setLate(!image.current?.complete), lateMs);

    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [src, quick]);

  return (
    <div className={styles.picture} style={{ background: blurhash ? averageColor(blurhash) : undefined }}>
      {late && blurhash && !quick && <Placeholder hash={blurhash} />}
      {!quick && (
        <img
          ref={image}
          src={src}
          alt=""
          className={styles.image}
          decoding="async"
          draggable={false}
          onLoad={() => setLate(false)}
        />
      )}
    </div>
  );
}
