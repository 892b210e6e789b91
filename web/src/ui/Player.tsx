import styles from './Player.module.css';

type Props = { kind: 'VID' | 'AUDIO'; src: string; poster?: string | null; label: string; autoPlay?: boolean };

/** Player plays video and sound in place, with the browser's own controls. */
export function Player({ kind, src, poster, label, autoPlay }: Props) {
  if (kind === 'AUDIO') {
    return (
      <audio className={styles.sound} src={src} controls preload="metadata" aria-label={label} autoPlay={autoPlay} />
    );
  }
  return (
    <video
      className={styles.video}
      src={src}
      poster={poster ?? undefined}
      controls
      playsInline
      loop
      preload="metadata"
      aria-label={label}
      autoPlay={autoPlay}
    />
  );
}
