import { useState } from 'react';
import { Button } from './Button';
import styles from './CopyCode.module.css';

/** CopyCode shows a text in a fixed-width font with a button that copies it. */
export function CopyCode({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);

  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };

  return (
    <div className={styles.frame}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard. */}
      <pre className={styles.code} tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <Button small icon={copied ? 'check' : 'copy'} className={styles.copy} onClick={() => void copy()}>
        {copied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  );
}
