import { text } from '../text/flows';
import styles from './Panel.module.css';

/** DefinitionView shows a part of a flow as it is written, where the panel has no inputs for it. */
export function DefinitionView({ value }: { value: unknown }) {
  return (
    <figure className={styles.definition}>
      <figcaption className="small soft">{text.inDefinition}</figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable with the keyboard. */}
      <pre tabIndex={0} role="region" aria-label={text.definition}>
        {JSON.stringify(value, null, 1)}
      </pre>
    </figure>
  );
}
