import { text } from '../text/library';
import { IconButton } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Progress } from '../ui/Progress';
import styles from './SendingList.module.css';
import type { Sending } from './useSending';

type Props = { list: Sending[]; onStop: (number: number) => void; onAgain: (entry: Sending) => void };

/** SendingList shows files on their way, and those that were refused with the reason. */
export function SendingList({ list, onStop, onAgain }: Props) {
  if (list.length === 0) {
    return null;
  }
  return (
    <section className={styles.panel} aria-label={text.uploading}>
      <ul>
        {list.map((entry) => (
          <li key={entry.number} className={styles.entry}>
            <div className="grow">
              <p className="cut strong small">{entry.file.name}</p>
              {entry.problem ? (
                <p className={styles.problem} role="alert">
                  <Icon name="alert" small />
                  {entry.problem}
                </p>
              ) : (
                <Progress label={text.sending(entry.file.name)} value={entry.waiting ? 0 : entry.part} />
              )}
            </div>
            {entry.problem && (
              <IconButton
                small
                icon="repeat"
                label={text.tryUploadAgain(entry.file.name)}
                onClick={() => onAgain(entry)}
              />
            )}
            <IconButton
              small
              icon="close"
              label={entry.problem ? text.dismiss(entry.file.name) : text.stopUpload(entry.file.name)}
              onClick={() => onStop(entry.number)}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}
