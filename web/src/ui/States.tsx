import { type ReactNode, useEffect, useState } from 'react';
import { Button } from './Button';
import { Icon } from './Icon';
import styles from './States.module.css';

/** Empty says why there is nothing to see, and what to do about it. */
export function Empty({ title, children, actions }: { title: string; children?: ReactNode; actions?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {actions && <div className="row">{actions}</div>}
    </div>
  );
}

type FaultProps = {
  message: string;
  /** The id of the request in the service's logs. */
  traceId?: string;
  offline?: boolean;
  onRetry?: () => void;
};

/** Fault shows why something could not be done, with the id of the request to copy. */
export function Fault({ message, traceId, offline, onRetry }: FaultProps) {
  return (
    <div className={styles.fault} role="alert">
      <Icon name={offline ? 'offline' : 'alert'} />
      <div className="grow">
        <p className="strong">{message}</p>
        {traceId && (
          <p className="small soft">
            Request <code>{traceId}</code>
            <Button kind="bare" small icon="copy" onClick={() => void navigator.clipboard.writeText(traceId)}>
              Copy
            </Button>
          </p>
        )}
      </div>
      {onRetry && (
        <Button small onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Waiting keeps the room of what is loading, and says so in words after four seconds. */
export function Waiting({ children, label = 'Loading' }: { children?: ReactNode; label?: string }) {
  const [slow, setSlow] = useState(false);

  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 4000);
    return () => clearTimeout(timer);
  }, []);

  return (
    <div className={styles.waiting} aria-busy="true">
      {children}
      <p role="status" className={slow ? 'small soft' : 'unseen'}>
        {slow ? 'This takes longer than usual. It goes on by itself.' : label}
      </p>
    </div>
  );
}

/** Bone is a grey shape in place of something that is loading. */
export function Bone({ height, ratio }: { height?: number; ratio?: number }) {
  return <div className={styles.bone} style={{ height, aspectRatio: ratio }} />;
}
