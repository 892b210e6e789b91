import { text } from '../text/app';
import { Dialog } from '../ui/Dialog';
import styles from './KeySheet.module.css';

/** KeySheet lists the keys of the studio. */
export function KeySheet({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title={text.keysTitle} kind="wide">
      <div className={styles.groups}>
        {text.keyGroups.map((group) => (
          <section key={group.title} aria-label={group.title}>
            <h3>{group.title}</h3>
            <dl className={styles.keys}>
              {group.keys.map(([key, meaning]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p className="small soft">{text.lettersNote}</p>
    </Dialog>
  );
}
