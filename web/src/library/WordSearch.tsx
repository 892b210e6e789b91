import { useEffect, useRef, useState } from 'react';
import { text } from '../text/library';
import { SearchInput } from '../ui/Field';
import styles from './FilterBar.module.css';

const searchDelay = 300;

/** WordSearch searches in prompts once the typing pauses. */
export function WordSearch({
  words,
  onWords,
}: {
  words: string | undefined;
  onWords: (words: string | undefined) => void;
}) {
  const [typed, setTyped] = useState(words ?? '');
  const timer = useRef(0);
  const sent = useRef(words ?? '');

  useEffect(() => {
    if ((words ?? '') !== sent.current) {
      sent.current = words ?? '';
      setTyped(words ?? '');
    }
  }, [words]);

  const send = (value: string) => {
    clearTimeout(timer.current);
    sent.current = value.trim();
    onWords(value.trim() || undefined);
  };

  return (
    <SearchInput
      label={text.search}
      className={styles.search}
      data-filter=""
      value={typed}
      maxLength={200}
      onChange={(event) => {
        const { value } = event.target;
        setTyped(value);
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => send(value), searchDelay);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter') {
          send(typed);
        }
        if (event.key === 'Escape' && typed) {
          event.stopPropagation();
          setTyped('');
          send('');
        }
      }}
    />
  );
}
