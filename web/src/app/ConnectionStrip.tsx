import { useEffect, useState } from 'react';
import { retryNow } from '../api/events';
import { useConnection } from '../data/live';
import { text } from '../text/app';
import { Button } from '../ui/Button';
import { Icon } from '../ui/Icon';
import styles from './ConnectionStrip.module.css';

/** ConnectionStrip says that the service is not reached, and counts down to the next attempt. */
export function ConnectionStrip() {
  const connection = useConnection();
  const [now, setNow] = useState(Date.now());
  const [since, setSince] = useState<number>();

  useEffect(() => {
    setSince(connection.open ? undefined : (before) => before ?? Date.now());
    if (connection.open) {
      return;
    }
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [connection.open]);

  // A break of less than two seconds, such as a restart of a proxy, is not worth a word.
  if (connection.open || since === undefined || now - since < 2000) {
    return null;
  }
  const seconds = Math.ceil((connection.retryAt - now) / 1000);

  return (
    <div className={styles.strip} role="status">
      <Icon name="offline" />
      <span className="grow">{seconds > 0 ? text.away(seconds) : text.awayNow}</span>
      <Button small onClick={retryNow}>
        {text.tryNow}
      </Button>
    </div>
  );
}
