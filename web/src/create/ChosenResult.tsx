import { text } from '../text/create';
import { IconButton } from '../ui/Button';
import { Empty } from '../ui/States';
import styles from './Create.module.css';
import { useCreatePage } from './context';
import { focusResult } from './keys';
import { ResultPanel } from './ResultPanel';
import type { Result } from './results';

/** ChosenResult is the third column of wide screens: the chosen result, large, with its facts. */
export function ChosenResult({ results }: { results: Result[] }) {
  const page = useCreatePage();
  const at = Math.max(
    0,
    results.findIndex((result) => result.id === page.chosenId),
  );
  const result = results[at];
  const move = (step: number) => {
    const next = results[at + step];
    if (next) {
      page.choose(next.id);
      focusResult(next.id);
    }
  };

  return (
    <aside className={styles.chosenResult} aria-label={text.chosen}>
      {result ? (
        <>
          <header className={styles.chosenHead}>
            <span className="strong num">{text.place(result.place, result.of)}</span>
            <span className="grow" />
            <IconButton icon="chevronLeft" label={text.previous} disabled={at === 0} onClick={() => move(-1)} />
            <IconButton
              icon="chevronRight"
              label={text.next}
              disabled={at >= results.length - 1}
              onClick={() => move(1)}
            />
            <IconButton
              icon="expand"
              label={text.showLarge}
              onClick={() => page.open({ kind: 'viewer', id: result.id })}
            />
          </header>
          <ResultPanel result={result} />
        </>
      ) : (
        <Empty title={text.nothingChosen}>{text.nothingChosenHint}</Empty>
      )}
    </aside>
  );
}
